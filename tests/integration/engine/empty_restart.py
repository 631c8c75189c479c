#!/usr/bin/env python3
"""A Redis that keeps nothing is restarted under several daemons: empty_restart.py LATCHD.

What the clients of a daemon that lives hold is granted to nobody else. Prints TAP.
"""
import pathlib
import select
import signal
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import tap
from children import until
from clusters import Cluster
from resp import Error, Wire
from servers import Latchd, Rack, Redis

NAMES = 20
RETURN_MS = 3000  # as in engine/peers.h, and the manual
WAIT_MS = 60000
SOON_S = 60


def single(rack):
    redis = rack.keep(Redis(rack.folder).ready())
    return redis, redis.url


def behind_a_sentinel(rack):
    """Which waits for longer than the master is away."""
    redis = rack.keep(Redis(rack.folder).ready())
    file = rack.folder / "sentinel.conf"
    file.write_text(f"sentinel monitor main 127.0.0.1 {redis.port} 1\n"
                    "sentinel down-after-milliseconds main 60000\n")
    sentinel = rack.keep(Redis(rack.folder, name="sentinel", file=file).ready())
    return redis, f"sentinel://127.0.0.1:{sentinel.port}/main"


def in_a_cluster(rack):
    """One of three masters, without a replica."""
    cluster = Cluster(rack, "--appendonly", "no", replicated=False)
    return cluster.masters[0], cluster.url


class Fleet(Rack):
    """Daemons on one Redis, that know of each other."""

    def __init__(self, latchd, folder, count, *options, topology=single):
        super().__init__(folder)
        self.latchd = latchd
        self.redis, self.url = topology(self)
        self.options = options
        self.daemons = [self.start(f"d{i}") for i in range(count)]
        for daemon in self.daemons:
            until(lambda d=daemon: d.info("other_daemons") == str(count - 1),
                  "they know of each other", SOON_S)

    def start(self, name):
        return self.keep(Latchd(self.latchd, self.folder, name, self.url,
                                *self.options)).ready()

    def restart_empty(self, gone_s):
        self.redis.kill()
        time.sleep(gone_s)  # how long it is away
        self.redis.restart()


def signal_to(daemon, number):
    daemon.child.send_signal(number)


def listens(daemon):
    """Which it does before it has asked Redis anything."""
    try:
        daemon.wire().close()
        return True
    except OSError:
        return False


def lock_once(wire, name):
    """A token, None, or the word of the error."""
    try:
        return wire.ask("LOCK", name, "WAIT", 0)
    except Error as error:
        return str(error).split(" ", maxsplit=1)[0]


def names_of(turn):
    return [f"job-{turn}-{i}" for i in range(NAMES)]


def held_by(daemon, names):
    wire = Wire(daemon.socket)
    return wire, [wire.ask("LOCK", name) for name in names]


def waiting_at(rack, daemon, names):
    wires = [rack.keep(Wire(daemon.socket)) for _ in names]
    for wire, name in zip(wires, names):
        wire.send("LOCK", name, "WAIT", WAIT_MS)
    return wires


def ask_until(daemons, names, end):
    """WAIT 0 for each name at each daemon, again and again: none may be granted."""
    wires = [Wire(d.socket) for d in daemons]
    heard = set()
    while time.monotonic() < end:
        for wire in wires:
            for name in names[:5]:
                answer = lock_once(wire, name)
                heard.add(answer if isinstance(answer, (str, type(None))) else "token")
    for wire in wires:
        wire.close()
    return heard


def served_in_turn(wires, name, token):
    """Whoever is first, each has it alone, and under a higher token."""
    while wires:
        ready, _, _ = select.select([w.socket for w in wires], [], [], SOON_S)
        assert ready, f"nobody is granted {name}"
        wire = next(w for w in wires if w.socket is ready[0])
        last, token = token, wire.reply()
        assert token > last, f"{token} after {last}"
        assert wire.ask("UNLOCK", name) == 0
        wires.remove(wire)


def a_round(fleet, turn, gone_s, stopped_s):
    """The first daemon's client holds. stopped_s: that daemon is late by so much."""
    names = names_of(turn)
    holder, tokens = held_by(fleet.daemons[0], names)
    with Rack(fleet.folder) as rack:
        waiters = [waiting_at(rack, d, names) for d in fleet.daemons[1:]]
        if stopped_s:
            signal_to(fleet.daemons[0], signal.SIGSTOP)
        fleet.restart_empty(gone_s)
        end = time.monotonic() + RETURN_MS / 1000 + 1
        heard = ask_until(fleet.daemons[1:], names, time.monotonic() + stopped_s)
        if stopped_s:
            signal_to(fleet.daemons[0], signal.SIGCONT)
        heard |= ask_until(fleet.daemons[1:], names, end)
        assert "token" not in heard, f"granted while it was held: {heard}"
        left = [holder.ask("UNLOCK", name) for name in names]
        assert left == [0] * NAMES, f"UNLOCK says {left}"
        for i, name in enumerate(names):
            served_in_turn([wires[i] for wires in waiters], name, tokens[i])
    holder.close()


ROUNDS = ((0, 0), (0.2, 1.5), (2.5, 0), (0, 2))


def what_is_held_is_granted_to_nobody_else(latchd, count, turns=ROUNDS, **more):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Fleet(latchd, folder, count, "--failover-quarantine", "5s", **more) as fleet:
            for turn, (gone_s, stopped_s) in enumerate(turns):
                a_round(fleet, turn, gone_s, stopped_s)


def what_is_free_is_backend_and_then_granted(latchd):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Fleet(latchd, folder, 2) as fleet:
            second = fleet.daemons[1]
            fleet.restart_empty(0)
            until(lambda: second.info("redis_link") == "up", "Redis is found again", SOON_S)
            assert int(second.info("quarantine_left_ms")) > 0
            with second.wire() as a, second.wire() as b:
                assert lock_once(a, "free") == "BACKEND"
                b.send("LOCK", "free")
                assert isinstance(b.reply(), int)
            assert second.info("quarantine_left_ms") == "0"
            assert "other daemons" in second.said()


def a_daemon_alone_withholds_nothing(latchd):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Fleet(latchd, folder, 1) as fleet:
            only = fleet.daemons[0]
            for turn in range(3):
                reconnects = int(only.info("redis_reconnects"))
                fleet.restart_empty(0)
                until(lambda n=reconnects: only.info("redis_link") == "up" and
                      int(only.info("redis_reconnects")) > n, "it is found again", SOON_S)
                assert only.info("quarantine_left_ms") == "0"
                with only.wire() as wire:
                    assert isinstance(lock_once(wire, f"free-{turn}"), int)
            assert "other daemons" not in only.said()


def who_starts_right_after_it_asks_first(latchd):
    """While who was there before is about to reconnect, after a long while."""
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Fleet(latchd, folder, 1) as fleet:
            for turn, gone_s in enumerate((0, 2.5, 0.5)):
                names = names_of(turn)
                holder, _ = held_by(fleet.daemons[0], names)
                fleet.restart_empty(gone_s)
                late = fleet.keep(Latchd(latchd, fleet.folder, f"late{turn}",
                                         fleet.redis.url))
                until(lambda d=late: listens(d), "it listens", SOON_S)
                heard = ask_until([late], names, time.monotonic() + RETURN_MS / 1000 + 1)
                assert "token" not in heard, f"granted while it was held: {heard}"
                assert [holder.ask("UNLOCK", name) for name in names] == [0] * NAMES
                holder.close()
                late.end()
                late.child.wait(SOON_S)


def who_starts_at_a_redis_that_runs_withholds_nothing(latchd):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Fleet(latchd, folder, 2) as fleet:
            third = fleet.start("third")
            with third.wire() as wire:
                assert isinstance(lock_once(wire, "free"), int)
            assert third.info("quarantine_left_ms") == "0"
            for daemon in fleet.daemons:
                assert daemon.info("quarantine_left_ms") == "0"
                assert "other daemons" not in daemon.said()


def without_channels_it_serves_and_warns(latchd):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Rack(folder) as rack:
            redis = rack.keep(Redis(rack.folder).ready())
            redis.ask("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "resetchannels",
                      "&redisson_lock__channel:*")
            daemon = rack.keep(Latchd(latchd, rack.folder, "d", redis.url.replace(
                "//", "//u:p@"))).ready()
            with daemon.wire() as wire:
                assert isinstance(lock_once(wire, "free"), int)
            until(lambda: "refuses PUBLISH" in daemon.said() and
                  "refuses SUBSCRIBE" in daemon.said(), "it warns", SOON_S)
            assert daemon.info("redis_link") == "up"


def main(latchd):
    cases = [
        ("two daemons: what is held is granted to nobody else",
         lambda: what_is_held_is_granted_to_nobody_else(latchd, 2)),
        ("behind a Sentinel: the same", lambda: what_is_held_is_granted_to_nobody_else(
            latchd, 2, ROUNDS[:2], topology=behind_a_sentinel)),
        ("in a Cluster: the same", lambda: what_is_held_is_granted_to_nobody_else(
            latchd, 2, ROUNDS[:2], topology=in_a_cluster)),
        ("three daemons: the same", lambda: what_is_held_is_granted_to_nobody_else(latchd, 3)),
    ]
    for function in (what_is_free_is_backend_and_then_granted,
                     a_daemon_alone_withholds_nothing, who_starts_right_after_it_asks_first,
                     who_starts_at_a_redis_that_runs_withholds_nothing,
                     without_channels_it_serves_and_warns):
        cases.append((function.__name__.replace("_", " "), lambda f=function: f(latchd)))
    return 1 if tap(cases, at_once=3) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
