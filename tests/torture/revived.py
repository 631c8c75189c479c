#!/usr/bin/env python3
"""What is noted beside a fault. A server of a torture that ends by itself comes back: with its
file, or, where it refuses that, without; and a master may change that was only cut off. Prints TAP.
"""
import pathlib
import sys
import tempfile
import types

sys.dont_write_bytecode = True  # nothing is written beside the sources
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
from machine import Server  # noqa: E402
from nemesis import Nemesis  # noqa: E402
from places import Place  # noqa: E402
from stand import need, tap  # noqa: E402


class Alone(Place):
    """One server, or three."""

    kinds = ()

    def __init__(self, servers):
        super().__init__(None)
        self.all = servers

    def servers(self):
        return self.all

    def settled(self):
        for server in self.all:
            assert server.answers(), "it is not back"


def faults(count, spoil):
    """What is noted when the first of so many servers is killed, and spoiled before it is
    started again; and what it has kept."""
    with tempfile.TemporaryDirectory(prefix="latchd-revived-") as name:
        servers = [Server(pathlib.Path(name)).ready() for _ in range(count)]
        try:
            stage = types.SimpleNamespace(
                book=types.SimpleNamespace(faults=[]), say=lambda _: None)
            nemesis = Nemesis(stage, Alone(servers), 1)
            nemesis.long_part = 0
            servers[0].ask("SET", "key", "value")
            with nemesis.fault("kill redis", "it"):
                servers[0].kill()
                spoil(servers[0])
                servers[0].restart()
            return [f.kind for f in stage.book.faults], servers[0].ask("GET", "key")
        finally:
            for server in servers:
                server.stop()


def garble(server):
    """The file that it writes is none any more."""
    file = next(server.folder.glob("appendonlydir/*.incr.aof"))
    file.write_bytes(b"this is no append-only file" + file.read_bytes())


def one_that_is_whole_keeps_all():
    assert faults(1, lambda _: None) == (["kill redis"], "value")


def one_that_refuses_its_file_comes_back_without():
    assert faults(1, garble) == (["kill redis", "lost file"], None)


def one_of_many_is_another_fault():
    assert faults(3, garble) == (["kill redis", "lost file of one"], None)


def one_that_ended_by_itself_is_started_again():
    with tempfile.TemporaryDirectory(prefix="latchd-revived-") as name:
        server = Server(pathlib.Path(name)).ready()
        try:
            server.ask("SET", "key", "value")
            server.child.kill()
            server.child.wait()
            stage = types.SimpleNamespace(
                book=types.SimpleNamespace(faults=[]), say=lambda _: None)
            nemesis = Nemesis(stage, Alone([server]), 1)
            nemesis.long_part = 0
            with nemesis.fault("cut", "it"):
                pass
            got, value = [f.kind for f in stage.book.faults], server.ask("GET", "key")
        finally:
            server.stop()
    assert (got, value) == (["cut", "down"], "value"), (got, value)


def a_master_that_changes_is_a_fault_of_its_own():
    for kind, noted in (("cut", ["cut", "failover"]), ("kill master", ["kill master"])):
        place = Alone([])
        place.leading = lambda at=iter("ab"): next(at)
        stage = types.SimpleNamespace(book=types.SimpleNamespace(faults=[]), say=lambda _: None)
        with Nemesis(stage, place, 1).fault(kind, "it"):
            pass
        got = [f.kind for f in stage.book.faults]
        assert got == noted, got


def main():
    need("redis-server")
    return 1 if tap([(case.__name__, case) for case in (
        one_that_is_whole_keeps_all, one_that_refuses_its_file_comes_back_without,
        one_of_many_is_another_fault, one_that_ended_by_itself_is_started_again,
        a_master_that_changes_is_a_fault_of_its_own)]) else 0


sys.exit(main())
