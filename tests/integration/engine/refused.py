#!/usr/bin/env python3
"""Null means that somebody else has the name: refused.py LATCHD.

One LOCK of a free name waits, because Redis grants it to nobody: it is out of memory, cannot
save, has too few replicas, forbids a command, or stands still. Whoever comes behind it is
told that, whatever the form of its LOCK, and LOCKINFO does not call the name free.
Prints TAP.
"""
import contextlib
import itertools
import pathlib
import shutil
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import tap
from children import until
from resp import Error
from servers import Latchd, Redis

SOON_S = 60
ID = itertools.count(10**19)

PLAIN = [lambda: ["LOCK", "job"],
         lambda: ["LOCK", "job", "FAIR"],
         lambda: ["LOCK", "job", "LEASE", 5000],
         lambda: ["LOCK", "job", "OWNER", "bob"],
         lambda: ["LOCK", "job", "ID", next(ID)],
         lambda: ["LOCK", "job", "ID", next(ID), "KEEP", 300],
         lambda: ["MLOCK", 2, "job", "second"]]
SHARED = [lambda: ["LOCK", "job", "READ"],
          lambda: ["LOCK", "job", "READ", "ID", next(ID)],
          lambda: ["LOCK", "job", "WRITE"],
          lambda: ["LOCK", "job", "WRITE", "OWNER", "bob"]]


@contextlib.contextmanager
def both(latchd, *options):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as text:
        folder = pathlib.Path(text)
        with contextlib.ExitStack() as stack:
            redis = stack.enter_context(Redis(folder).ready())
            daemon = stack.enter_context(Latchd(latchd, folder, "d", redis.url, *options))
            until(lambda: answers(daemon), "latchd serves", SOON_S)
            yield redis, daemon


def answers(daemon):
    daemon.alive()
    try:
        return daemon.info("store_up") != "0" and state(daemon, "job") == "free"
    except (OSError, Error):
        return False


def state(daemon, name):
    with daemon.wire() as wire:
        reply = wire.ask("LOCKINFO", name)
        return reply[reply.index("state") + 1]


def is_refused(wire, why, *command):
    try:
        reply = wire.ask(*command)
    except Error as error:
        if why not in str(error):
            raise AssertionError(f"{command}: wanted {why}, got {error}") from error
        return
    raise AssertionError(f"{command}: wanted {why}, got {reply!r}")


def nobody_is_granted(daemon, why, forms, heads):
    """Behind each of these heads, which waits for ever, every form is told why."""
    for head in heads:
        with daemon.wire() as first:
            first.send(*head())
            until(lambda: state(daemon, "job") == "withheld", "the head has been told", SOON_S)
            for form, wait in itertools.product(forms, (0, 120)):
                with daemon.wire() as wire:
                    is_refused(wire, why, *form(), "WAIT", wait)
                if state(daemon, "job") != "withheld":
                    raise AssertionError(f"the name is {state(daemon, 'job')}")
        until(lambda: state(daemon, "job") == "free", "nobody waits any more", SOON_S)


def when_it_is_out_of_memory(latchd):
    with both(latchd) as (redis, daemon):
        redis.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        redis.ask("CONFIG", "SET", "maxmemory", 1)
        nobody_is_granted(daemon, "BACKEND OOM", PLAIN, (PLAIN[0], PLAIN[1], PLAIN[4], PLAIN[6]))


def when_it_cannot_save(latchd):
    with both(latchd) as (redis, daemon):
        redis.ask("CONFIG", "SET", "save", "3600 1", "stop-writes-on-bgsave-error", "yes")
        shutil.rmtree(redis.folder)  # where it is to save
        redis.ask("BGSAVE")
        until(lambda: redis.info("rdb_last_bgsave_status") == "err", "it has failed", SOON_S)
        nobody_is_granted(daemon, "BACKEND MISCONF", PLAIN, (PLAIN[0], PLAIN[4]))
        nobody_is_granted(daemon, "BACKEND MISCONF", SHARED, (SHARED[0], SHARED[2]))


def when_a_command_is_forbidden(latchd):
    with both(latchd) as (redis, daemon):
        redis.ask("ACL", "SETUSER", "default", "-hset", "-hincrby")
        nobody_is_granted(daemon, "BACKEND", PLAIN, (PLAIN[0], PLAIN[4]))
        nobody_is_granted(daemon, "BACKEND", SHARED, (SHARED[0], SHARED[2]))


def when_it_has_too_few_replicas_to_write(latchd):
    with both(latchd) as (redis, daemon):
        redis.ask("CONFIG", "SET", "min-replicas-to-write", 1)
        with daemon.wire() as head:
            head.send("LOCK", "job")
            for form, wait in itertools.product(PLAIN[:1] + PLAIN[4:5], (0, 120)):
                with daemon.wire() as wire:
                    is_refused(wire, "BACKEND", *form(), "WAIT", wait)


def when_too_few_replicas_acknowledge(latchd):
    for forms in (PLAIN, SHARED):
        with both(latchd, "--min-replicas", 1, "--replica-timeout", "50ms") as (_, daemon):
            with daemon.wire() as head, daemon.wire() as wire:
                head.send(*forms[0]())
                is_refused(wire, "NOREPLICAS", *forms[0](), "WAIT", 500)
                for form, wait in itertools.product(forms, (0, 120)):
                    is_refused(wire, "NOREPLICAS", *form(), "WAIT", wait)


def when_it_stands_still(latchd):
    """For less than redis-timeout: whoever is behind hears what the head hears, not null
    before. For longer: that Redis did not answer."""
    with both(latchd, "--redis-timeout", "2s") as (redis, daemon), contextlib.ExitStack() as stack:
        wires = [stack.enter_context(daemon.wire()) for _ in PLAIN]
        redis.pause()
        wires[0].send("LOCK", "job", "WAIT", 12000)
        for wire, form in zip(wires[1:4], PLAIN[1:4]):
            wire.send(*form(), "WAIT", 0)
        wires[4].send("LOCK", "job", "WAIT", 100)
        time.sleep(0.5)  # not for luck: they are not to be answered yet
        redis.resume()
        if not isinstance(wires[0].reply(), int):
            raise AssertionError("the head was not granted")
        for wire in wires[1:5]:
            if wire.reply() is not None:
                raise AssertionError("behind it somebody was")
        wires[0].ask("UNLOCK", "job")
        redis.pause()
        wires[0].send("LOCK", "job", "WAIT", 12000)
        for form, wait in itertools.product((PLAIN[0], PLAIN[4], PLAIN[6]), (0, 300)):
            wire = stack.enter_context(daemon.wire())
            wires.append(wire)
            wire.send(*form(), "WAIT", wait)
        begin = time.monotonic()
        for wire in wires[len(PLAIN):]:
            reply = wire.receive()
            if not isinstance(reply, Error) or not str(reply).startswith("BACKEND"):
                raise AssertionError(f"wanted BACKEND, got {reply!r}")
        if time.monotonic() - begin > 4:
            raise AssertionError("later than redis-timeout allows")
        redis.resume()


CASES = [when_it_is_out_of_memory, when_it_cannot_save, when_a_command_is_forbidden,
         when_it_has_too_few_replicas_to_write, when_too_few_replicas_acknowledge,
         when_it_stands_still]


def main():
    latchd, wanted = sys.argv[1], sys.argv[2:]
    chosen = [c for c in CASES if not wanted or c.__name__ in wanted]
    sys.exit(1 if tap([(c.__name__, lambda c=c: c(latchd)) for c in chosen], at_once=3) else 0)


main()
