#!/usr/bin/env python3
"""WATCH on locks that were taken by SET: watched.py LATCHD. Prints TAP.

What StackExchange.Redis sends to release and to extend, and a library that has WATCH for
any transaction.
"""
import functools
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from library import redis
from resp import Error, Wire, encode
from stand import Stand, tap

from redis.exceptions import ResponseError, WatchError


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r}, and not {wanted!r}")


def client(stand, **more):
    return redis.Redis(port=stand.port, **more)


def compare_and(link, name, value, *command, meanwhile=lambda: None):
    """WATCH and GET go in one packet, the rest in another once the value is there. Returns
    what EXEC said, or False: the value is another one."""
    link.socket.sendall(encode("WATCH", name) + encode("GET", name))
    equal(link.reply(), "OK")
    if link.reply() != value:
        equal(link.ask("UNWATCH"), "OK")
        return False
    meanwhile()
    link.socket.sendall(encode("MULTI") + encode(*command) + encode("EXEC"))
    equal([link.reply(), link.reply()], ["OK", "QUEUED"])
    return link.reply()


def it_compares_and_deletes_or_extends(stand, link):
    r = client(stand)
    for command in (("DEL", "job"), ("UNLINK", "job")):
        r.set("job", "v", nx=True, px=60000)
        equal(compare_and(link, "job", "w", *command), False)
        equal(compare_and(link, "job", "v", *command), [1])
        equal(r.exists("job"), 0)
    r.set("job", "v", nx=True, px=60000)
    equal(compare_and(link, "job", "v", "EXPIRE", "job", 5), [1])
    equal(0 < r.pttl("job") <= 5000, True)
    equal(compare_and(link, "job", "v", "PEXPIRE", "job", 30500), [1])
    equal(5000 < r.pttl("job") <= 30500, True)
    equal(compare_and(link, "job", "v", "PEXPIRE", "job", 0), [1])
    equal(r.exists("job"), 0)


def another_hold_of_the_same_value_is_a_change(stand, link):
    r = client(stand)

    def take_anew():
        equal(r.delete("job"), 1)
        equal(r.set("job", "v", nx=True, px=60000), True)

    r.set("job", "v", nx=True, px=60000)
    equal(compare_and(link, "job", "v", "DEL", "job", meanwhile=take_anew), None)
    equal(compare_and(link, "job", "v", "PEXPIRE", "job", 5, meanwhile=take_anew), None)
    equal(r.pttl("job") > 10000, True)
    equal(compare_and(link, "job", "v", "DEL", "job", meanwhile=lambda: r.delete("job")), None)


def a_longer_lease_and_a_set_in_vain_are_none(stand, link):
    r = client(stand)

    def extend():
        equal(r.set("job", "w", nx=True, px=60000), None)
        equal(r.pexpire("job", 50000), True)

    r.set("job", "v", nx=True, px=60000)
    equal(compare_and(link, "job", "v", "DEL", "job", meanwhile=extend), [1])


def what_lock_holds_is_left_alone(stand, link):
    with Wire(stand.port) as holder:
        value = f"latchd:held:{holder.ask('LOCK', 'job', 'WAIT', 0)}"
        equal(compare_and(link, "job", value, "DEL", "job"), [0])
        equal(compare_and(link, "job", value, "DEL", "job",
                          meanwhile=lambda: holder.ask("UNLOCK", "job")), None)


def a_connection_from_elsewhere_may_have_looked_too(stand, _):
    """Like a script that compares the value."""
    client(stand).acl_setuser("joe", enabled=True, passwords=["+x"], keys=["*"],
                              categories=["+@all", "-@admin"])
    client(stand, username="joe", password="x").set("job", "v", nx=True, px=60000)
    with Wire(stand.port, source="127.0.0.2") as link:
        link.ask("AUTH", "joe", "x")
        equal(compare_and(link, "job", "v", "DEL", "job"), [1])


def a_set_takes_extends_or_counts_down_to_a_release(stand, link):
    """dramatiq's mutex is a counter of one: SET NX 1, and a transaction that sets 0, or 1 again."""
    r = client(stand)

    def other(value):
        return lambda: equal(r.set("job", value, nx=True, px=60000), True)

    equal(compare_and(link, "job", None, "SET", "job", 1, "PX", 60000), ["OK"])
    equal((r.get("job"), 50000 < r.pttl("job") <= 60000), (b"1", True))
    equal(compare_and(link, "job", "1", "SET", "job", 1, "PX", 5000), ["OK"])
    equal(0 < r.pttl("job") <= 5000, True)
    equal(compare_and(link, "job", "1", "SET", "job", 0, "PX", 60000), ["OK"])
    equal(r.exists("job"), 0)
    equal(compare_and(link, "job", None, "SET", "job", 1, "PX", 60000, meanwhile=other("1")), None)
    equal(r.get("job"), b"1")

    def again():
        equal(r.delete("job"), 1)
        other("1")()
    equal(compare_and(link, "job", "1", "SET", "job", 0, "PX", 60000, meanwhile=again), None)
    equal((r.get("job"), r.delete("job")), (b"1", 1))


def a_set_leaves_alone_what_lock_holds(stand, link):
    with Wire(stand.port) as holder:
        token = holder.ask("LOCK", "job", "WAIT", 0)
        said, = compare_and(link, "job", f"latchd:held:{token}", "SET", "job", 1)
        equal(str(said).split()[0], "WRONGTYPE")
        equal(compare_and(link, "job", f"latchd:held:{token}", "SET", "job", 1,
                          meanwhile=lambda: holder.ask("UNLOCK", "job")), None)
        equal(holder.ask("EXISTS", "job"), 0)


def a_set_that_counts_or_is_conditional_is_refused(stand, link):
    r = client(stand)
    for held, words in (("1", (2, "PX", 60000)), ("v", (0, "PX", 60000)), ("v", ("w",)), ("v", ("v", "XX")),
                        ("1", (0, "NX"))):
        equal(r.set("job", held, nx=True, px=60000), True)
        try:
            got = compare_and(link, "job", held, "SET", "job", *words)
            raise AssertionError(f"{got!r}, and not EXECABORT")
        except Error as error:
            equal(str(error).split()[0], "EXECABORT")
        equal((r.get("job"), r.delete("job")), (held.encode(), 1))


def a_library_with_transactions_is_told_of_a_change(stand, _):
    r = client(stand)
    r.set("job", "v", nx=True, px=60000)
    with r.pipeline() as pipe:
        pipe.watch("job", "beside")
        equal(pipe.get("job"), b"v")
        equal(r.set("beside", "v", nx=True, px=60000), True)
        pipe.multi()
        pipe.delete("job")
        try:
            raise AssertionError(pipe.execute())
        except WatchError:
            pass
        pipe.watch("job")
        pipe.multi()
        pipe.delete("job").get("job")
        try:
            raise AssertionError(pipe.execute())
        except ResponseError as error:
            equal("after WATCH it must be one" in str(error), True)
    equal(r.delete("job", "beside"), 2)


def a_hold_that_was_released_is_watched_by_nobody_after_unwatch(_, link):
    link.ask("SET", "job", "v", "NX", "PX", 60000)
    for forget in ("UNWATCH", "DISCARD"):
        equal(link.ask("WATCH", "job"), "OK")
        if forget == "DISCARD":
            link.ask("MULTI")
        equal(link.ask(forget), "OK")
        link.ask("MULTI")
        link.ask("PING")
        equal(link.ask("EXEC"), ["PONG"])
    link.ask("MULTI")
    link.send("WATCH", "job")
    equal(isinstance(link.receive(), Error), True)
    link.ask("DEL", "job")
    equal(link.ask("EXEC"), [1])


CASES = [
    it_compares_and_deletes_or_extends,
    another_hold_of_the_same_value_is_a_change,
    a_longer_lease_and_a_set_in_vain_are_none,
    what_lock_holds_is_left_alone,
    a_connection_from_elsewhere_may_have_looked_too,
    a_set_takes_extends_or_counts_down_to_a_release,
    a_set_leaves_alone_what_lock_holds,
    a_set_that_counts_or_is_conditional_is_refused,
    a_library_with_transactions_is_told_of_a_change,
    a_hold_that_was_released_is_watched_by_nobody_after_unwatch,
]


def main():
    with Stand(sys.argv[1], level="error") as stand:
        with Wire(stand.port) as link:
            failed = tap([(case.__name__, functools.partial(case, stand, link))
                          for case in CASES])
    sys.exit(1 if failed else 0)


main()
