#!/usr/bin/env python3
"""What lock libraries are refused, and what the log says of it: library_refusals.py LATCHD. Prints TAP.

Many libraries swallow the error and try again for ever.
"""
import contextlib
import functools
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from resp import Error
from servers import Latchd, Rack, Redis
from stand import tap

ABOUT = "of a client library was refused"


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r}, and not {wanted!r}")


@contextlib.contextmanager
def library(latchd, name):
    with latchd.wire() as link:
        if name is not None:
            equal(link.ask("CLIENT", "SETINFO", "LIB-NAME", name), "OK")
        yield link


def refused(link, text, *command):
    try:
        raise AssertionError(f"{link.ask(*command)!r}, and no error")
    except Error as error:
        if text not in str(error):
            raise AssertionError(f"{error} lacks {text!r}") from error


def lines(latchd, part):
    return [line for line in latchd.said().splitlines() if ABOUT in line and part in line]


def each_library_has_one_line_a_minute(latchd):
    for name in ("ann-lib", "bob-lib", None):
        with library(latchd, name) as link:
            for _ in range(3):
                refused(link, "'HSET' is not served", "HSET", "job", "a", 1)
    for name in ("library=ann-lib", "library=bob-lib"):
        said = lines(latchd, name)
        equal(len(said), 1)
        equal("'HSET' is not served; send it to a Redis" in said[0], True)
    equal(len(lines(latchd, "'HSET'")), 3)


REFUSALS = [
    ("script", "line 1", ("EVAL", "return redis.call('hset', KEYS[1], 'a', 1)", 1, "x")),
    ("arguments", "cannot be run so", ("EVAL", "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])",
                                       1, "x", "v", "soon")),
    ("set", "SET without NX", ("SET", "job", "v")),
    ("database", "DB index is out of range", ("SELECT", 9)),
    ("optout", "DisableCache", ("CLIENT", "TRACKING", "ON", "OPTOUT", "NOLOOP")),
    ("numsub", "portalocker", ("PUBSUB", "NUMSUB", "some_lock")),
    ("blpop", "'BLPOP' is not served", ("BLPOP", "lock-signal:job", 0)),
]


def every_kind_of_refusal_is_logged(latchd):
    for name, text, command in REFUSALS:
        with library(latchd, name) as link:
            link.ask("HELLO", 3)
            refused(link, text, *command)
        said = lines(latchd, f"library={name}")
        equal((len(said), text in said[0]), (1, True))


def a_transaction_that_counts_is_refused_and_logged(latchd):
    with library(latchd, "counter") as link:
        equal(link.ask("SET", "rate", 1, "NX", "PX", 60000), "OK")
        for command in (("WATCH", "rate"), ("MULTI",), ("SET", "rate", 2, "PX", 60000)):
            link.ask(*command)
        refused(link, "EXECABORT", "EXEC")
        equal((link.ask("GET", "rate"), link.ask("DEL", "rate")), ("1", 1))
    equal(len(lines(latchd, "library=counter")), 1)


def counts_of_latchds_own_channels_are_served(latchd):
    with latchd.wire() as link, latchd.wire() as other:
        other.ask("SUBSCRIBE", "lost:job")
        equal(link.ask("PUBSUB", "NUMSUB", "lost:job", "granted:job"), ["lost:job", 1, "granted:job", 0])
        equal(link.ask("PUBSUB", "NUMSUB"), [])


def what_waits_by_a_list_can_be_released_and_is_told_what_to_do(latchd):
    """python-redis-lock."""
    release = ("EVALSHA", "90da91872223f85eb1376a17e3c4df21ace8c54b", 2, "lock:job", "lock-signal:job")
    with library(latchd, "prl") as link:
        equal(link.ask("SET", "lock:job", "mine", "NX"), "OK")
        equal((link.ask(*release, "another", 1000), link.ask("PTTL", "lock:job")), (1, -1))
        equal((link.ask(*release, "mine", 1000), link.ask("EXISTS", "lock:job")), (0, 0))
        equal(link.ask(*release, "mine", 1000), 1)
        refused(link, "blocking=False", "BLPOP", "lock-signal:job", 0)


def a_value_is_in_no_line(latchd):
    with library(latchd, "secretive") as link:
        refused(link, "SET without NX", "SET", "job", "sesame")
    equal((len(lines(latchd, "library=secretive")), "sesame" in latchd.said()), (1, False))


CASES = [
    each_library_has_one_line_a_minute,
    every_kind_of_refusal_is_logged,
    a_transaction_that_counts_is_refused_and_logged,
    counts_of_latchds_own_channels_are_served,
    what_waits_by_a_list_can_be_released_and_is_told_what_to_do,
    a_value_is_in_no_line,
]


def main():
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder, Rack(folder) as rack:
        redis = rack.keep(Redis(rack.folder)).ready()
        latchd = rack.keep(Latchd(sys.argv[1], rack.folder, "one", redis.url).ready())
        failed = tap([(case.__name__, functools.partial(case, latchd)) for case in CASES])
    sys.exit(1 if failed else 0)


main()
