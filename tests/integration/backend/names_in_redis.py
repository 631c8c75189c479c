#!/usr/bin/env python3
"""LOCKS REDIS, `latchctl ls --all` and `force --match`: names_in_redis.py LATCHD LATCHCTL.

What is held in Redis is listed, whoever took it, on every topology. Prints TAP.
"""
import contextlib
import os
import pathlib
import pty
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is written beside the sources
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import need, tap
from children import until
from clusters import Cluster
from resp import Error
from sentinels import Sentinels
from servers import Redis
from stage import Stage

SOON_S = 60
REDISSON = "0a1b2c3d-0000-4000-8000-000000000000:7"
MANY = 300


@contextlib.contextmanager
def stage():
    with tempfile.TemporaryDirectory(prefix="latchd-names-") as folder:
        with Stage(PROGRAM, pathlib.Path(folder)) as one:
            yield one


def others(names):
    """Without what the stage itself took, to see whether the daemon is ready."""
    return {name for name in names if not name.startswith("ready-")}


def listed(wire, *options):
    """All pages of LOCKS REDIS, and how many there were."""
    names, cursor, pages = [], "0", 0
    while pages == 0 or cursor != "0":
        cursor, page = wire.ask("LOCKS", "REDIS", "CURSOR", cursor, *options)
        names += page
        pages += 1
        assert pages < 100000
    return others(names), pages


def hold_one_of_each(wire):
    """Holds that outlive their client: returns their names."""
    for words in (["LOCK", "plain", "LEASE", 600000], ["LOCK", "fair", "FAIR", "LEASE", 600000],
                  ["LOCK", "owned", "OWNER", "ann", "LEASE", 600000],
                  ["LOCK", "read", "READ", "LEASE", 600000],
                  ["LOCK", "write", "WRITE", "OWNER", "ann", "LEASE", 600000],
                  ["LOCK", "permits", "PERMITS", 2, "OF", 5, "LEASE", 600000],
                  ["LOCK", "{tag}id", "ID", "0123456789abcdef", "LEASE", 600000]):
        assert wire.ask(*words) > 0, words
    assert wire.ask("SET", "endless", "v", "NX") == "OK"
    return {"plain", "fair", "owned", "read", "write", "permits", "{tag}id", "endless"}


def what_was_held_before_a_restart_is_listed():
    with stage() as here:
        redis = here.keep(Redis(here.folder)).ready()
        daemon = here.latchd("a", redis.url).ready()
        with daemon.wire() as wire:
            names = hold_one_of_each(wire)
            assert wire.ask("LOCK", "done") > 0
            assert wire.ask("UNLOCK", "done") == 0
        with redis.wire() as wire:  # Redisson's, and what is no lock
            wire.ask("HSET", "redissons", REDISSON, 1)
            wire.ask("PEXPIRE", "redissons", 600000)
            wire.ask("HSET", "user:1", "name", "ann")
            wire.ask("HSET", "user:2", "name", "ann")
            wire.ask("PEXPIRE", "user:2", 600000)
            wire.ask("SET", "counter", 5)
            wire.ask("RPUSH", "list", 5)
            for i in range(MANY):
                wire.ask("SET", f"page:{i}", i)
        daemon.kill()
        daemon.restart()
        daemon.ready()
        with daemon.wire() as wire:
            assert others(wire.ask("LOCKS")[1]) == set()
            got, pages = listed(wire)
            assert got == names | {"redissons"}, got
            assert pages > 2, pages
            assert listed(wire, "COUNT", 1000) == (got, 1)
            assert listed(wire, "MATCH", "re*")[0] == {"read", "redissons"}
            for words in (["LOCKS", "REDIS", "MATCH", "rea?", "COUNT", 1000], ["LOCK", "next"],
                          ["LOCKS", "REDIS", "MATCH", "nex?", "COUNT", 1000],
                          ["UNLOCK", "next"]):
                wire.send(*words)
            assert wire.receive() == ["0", ["read"]]
            assert wire.receive() > 0
            assert wire.receive() == ["0", ["next"]]
            assert wire.receive() == 0
            wire.ask("ACL", "SETUSER", "eve", "on", ">x", "+@all", "%R~re*", "%W~plain")
            assert wire.ask("AUTH", "eve", "x") == "OK"
            assert listed(wire)[0] == {"read", "redissons"}
            assert wire.ask("MULTI") == "OK"
            assert wire.ask("LOCKS", "REDIS", "MATCH", "rea?", "COUNT", 1000) == "QUEUED"
            assert wire.ask("PING") == "QUEUED"
            assert wire.ask("EXEC") == [["0", ["read"]], "PONG"]


def without_redis_the_answer_is_an_error():
    with stage() as here:
        redis = here.keep(Redis(here.folder)).ready()
        daemon = here.latchd("a", redis.url).ready()
        with daemon.wire() as wire:
            redis.pause()
            wire.send("LOCKS", "REDIS")  # Redis has it, or has hung up, and does not answer
            assert "BACKEND" in str(refused(wire)), "a Redis that hangs"
            redis.resume()
            until(lambda: answers(wire), "Redis answers again", SOON_S)
            redis.kill()
            until(lambda: not answers(wire), "Redis is gone", SOON_S)


def refused(wire):
    try:
        return wire.receive()
    except Error as error:
        return error


def answers(wire):
    try:
        return wire.ask("LOCKS", "REDIS") is not None
    except Error as error:
        assert "BACKEND" in str(error), error
        return False


def on_a_cluster_all_masters_are_gone_through():
    with stage() as here:
        cluster = Cluster(here)
        daemon = here.latchd("a", cluster.url).ready()
        names = {f"job:{i}" for i in range(MANY)}
        with daemon.wire() as wire:
            for name in names:
                assert wire.ask("LOCK", name, "LEASE", 600000) > 0
        daemon.kill()
        daemon.restart()
        daemon.ready()
        with daemon.wire() as wire:
            got, pages = listed(wire)
            assert got == names, (len(got), pages)
            assert pages >= 3


def behind_sentinels_the_master_is_gone_through():
    with stage() as here:
        sentinels = Sentinels(here)
        daemon = here.latchd("a", sentinels.url).ready()
        with daemon.wire() as wire:
            names = hold_one_of_each(wire)
        daemon.kill()
        daemon.restart()
        daemon.ready()
        with daemon.wire() as wire:
            assert listed(wire)[0] == names


def on_a_quorum_a_master_that_is_down_hides_none():
    with stage() as here:
        servers = [here.keep(Redis(here.folder)).ready() for _ in range(3)]
        daemon = here.latchd("a", "quorum " + " ".join(s.url for s in servers),
                             "--failover-quarantine", "0").ready()
        names = {f"job:{i}" for i in range(50)}
        with daemon.wire() as wire:
            for name in names:
                assert wire.ask("LOCK", name, "LEASE", 600000) > 0
            got, pages = listed(wire)
            assert got == names, (got, pages)
            servers[1].kill()
            until(lambda: answers(wire) and listed(wire)[0] == names, "two will do", SOON_S)


def ctl(daemon, *words, answer=""):
    return subprocess.run([LATCHCTL, "-s", daemon.socket, *words], capture_output=True,
                          text=True, timeout=60, check=False, input=answer)


def ctl_at_a_terminal(daemon, *words, answer):
    ours, its = pty.openpty()
    os.write(ours, answer.encode())
    done = subprocess.run([LATCHCTL, "-s", daemon.socket, *words], capture_output=True,
                          text=True, timeout=60, check=False, stdin=its)
    os.close(ours)
    os.close(its)
    return done


def names_of(daemon, *words):
    done = ctl(daemon, "ls", *words)
    assert done.returncode == 0, done
    return others(done.stdout.split())


def latchctl_shows_and_frees_what_matches():
    with stage() as here:
        redis = here.keep(Redis(here.folder)).ready()
        daemon = here.latchd("a", redis.url).ready()
        with daemon.wire() as wire:
            names = hold_one_of_each(wire)
            for i in range(3):
                assert wire.ask("LOCK", f"left:{i}", "LEASE", 600000) > 0
            assert wire.ask("SET", "left:endless", "v", "NX") == "OK"
        with redis.wire() as wire:
            wire.ask("HSET", "left:redissons", REDISSON, 1)
            wire.ask("PEXPIRE", "left:redissons", 600000)
        daemon.kill()
        daemon.restart()
        daemon.ready()
        left = {"left:0", "left:1", "left:2", "left:endless", "left:redissons"}
        assert names_of(daemon) == set()
        assert names_of(daemon, "--all") == names | left
        assert names_of(daemon, "--all", "left:*") == left
        done = ctl(daemon, "force", "--match", "left:*", answer="yes\n")
        assert done.returncode == 1 and "--yes" in done.stderr, done
        assert all(name in done.stdout for name in left), done
        assert names_of(daemon, "--all", "left:*") == left
        done = ctl_at_a_terminal(daemon, "force", "--match", "left:*", answer="no\n")
        assert done.returncode == 1 and "Free 5 names?" in done.stderr, done
        assert names_of(daemon, "--all", "left:*") == left
        done = ctl_at_a_terminal(daemon, "force", "--match", "left:?", answer="yes\n")
        assert done.returncode == 0 and "3 of 3 freed" in done.stderr, done
        left -= {"left:0", "left:1", "left:2"}
        assert names_of(daemon, "--all", "left:*") == left
        done = ctl(daemon, "force", "--match", "left:*", "--yes")
        assert done.returncode == 0 and "2 of 2 freed" in done.stderr, done
        assert names_of(daemon, "--all") == names
        done = ctl(daemon, "force", "--match", "left:*", "--yes")
        assert done.returncode == 1 and "nobody holds" in done.stderr, done
        assert ctl(daemon, "force", "plain", "--match", "x", "--yes").returncode == 125


def main():
    need("redis-server")
    return 1 if tap([(case.__name__, case) for case in (
        what_was_held_before_a_restart_is_listed, without_redis_the_answer_is_an_error,
        on_a_cluster_all_masters_are_gone_through, behind_sentinels_the_master_is_gone_through,
        on_a_quorum_a_master_that_is_down_hides_none,
        latchctl_shows_and_frees_what_matches)], at_once=3) else 0


PROGRAM, LATCHCTL = sys.argv[1:3]
sys.exit(main())
