#!/usr/bin/env python3
"""Locks that libraries take straight at the Redis behind latchd: library_straight.py LATCHD.

Others take the same names through latchd, as while a fleet moves to it. Prints TAP.
"""
import functools
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from children import until
from library import redis
from stand import Stand, tap

from redis.exceptions import ResponseError


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r}, and not {wanted!r}")


def client(stand):
    return redis.Redis(port=stand.port)


def take(r, name):
    return r.execute_command("LOCK", name, "WAIT", 0, "LEASE", 60000)


def a_lock_straight_at_redis_excludes_it_and_the_other_way_round(stand):
    """While a fleet moves to latchd, one process at a time."""
    r = client(stand)
    straight = redis.Redis(unix_socket_path=str(stand.redis_socket))
    with straight.lock("moving", timeout=60):
        lock = r.lock("moving", timeout=60, blocking=False)
        equal(lock.acquire(), False)
        equal(lock.locked(), True)
        equal(r.delete("moving"), 0)
    equal(lock.acquire(), True)
    equal(straight.lock("moving", timeout=60, blocking=False).acquire(), False)
    lock.release()
    with straight.lock("moving", timeout=60):
        pass


def a_lock_straight_at_redis_is_waited_for(stand):
    r = client(stand)
    straight = redis.Redis(unix_socket_path=str(stand.redis_socket))
    held = straight.lock("moving", timeout=600)
    held.acquire()
    equal(r.get("moving"), held.local.token)
    equal(0 < r.pttl("moving") <= 600000 and 0 < r.ttl("moving") <= 600, True)
    equal(r.exists("moving"), 1)
    waits = redis.Connection(port=stand.port)
    waits.connect()
    waits.send_command("LOCK", "moving", "WAIT", 60000, "LEASE", 60000)
    until(lambda: r.execute_command("WAITERS", "moving"), "it waits")
    equal(take(r, "moving"), None)
    held.release()
    token = waits.read_response()
    equal(token > 0, True)
    r.execute_command("UNLOCK", "moving", "TOKEN", token)
    waits.disconnect()


def each_kind_of_lock_waits_for_one_straight_at_redis(stand):
    r = client(stand)
    straight = redis.Redis(unix_socket_path=str(stand.redis_socket))
    for kind in "FAIR", "READ", "WRITE":
        name = "moving:" + kind
        held = straight.lock(name, timeout=600)
        held.acquire()
        equal(r.execute_command("LOCK", name, kind, "WAIT", 0), None)
        waits = [redis.Connection(port=stand.port) for _ in range(3)]
        for i, waiter in enumerate(waits):
            waiter.connect()
            waiter.send_command("LOCK", name, kind, "WAIT", 60000)
            until(lambda name=name, i=i: len(r.execute_command("WAITERS", name)) == i + 1,
                  "it waits")
        equal(straight.get(name), held.local.token)
        held.release()
        for waiter in waits:
            equal(waiter.read_response() > 0, True)
            waiter.send_command("UNLOCK", name)
            equal(waiter.read_response(), 0)
            waiter.disconnect()


def a_string_without_an_end_is_no_lock(stand):
    r = client(stand)
    straight = redis.Redis(unix_socket_path=str(stand.redis_socket))
    straight.set("data", "x")
    equal(r.set("data", "v", nx=True, px=9000), None)
    for kind in (), ("FAIR",), ("READ",), ("WRITE",):
        try:
            raise AssertionError(r.execute_command("LOCK", "data", *kind, "WAIT", 0))
        except ResponseError as error:
            equal(str(error).split()[0], "WRONGTYPE")
    equal([r.get("data"), r.ttl("data"), r.exists("data")], [b"x", -1, 1])
    straight.delete("data")


class AtDatabase1(Stand):
    database = 1


def refuses_database(port, number):
    try:
        got = redis.Redis(port=port, db=number).ping()
    except ResponseError as error:
        return str(error)
    raise AssertionError(f"SELECT {number}: {got}")


def a_client_may_select_the_database_that_latchd_uses(stand):
    """Laravel and django-redis keep their locks in database 1."""
    with AtDatabase1(stand.binary, level="error") as one:
        straight = redis.Redis(unix_socket_path=str(one.redis_socket), db=1)
        moved = redis.Redis(port=one.port, db=1)
        with straight.lock("moving", timeout=60):
            equal(moved.lock("moving", timeout=60, blocking=False).acquire(), False)
        lock = moved.lock("moving", timeout=60, blocking=False)
        equal(lock.acquire(), True)
        equal(take(client(one), "moving"), None)  # without a number
        equal(straight.lock("moving", timeout=60, blocking=False).acquire(), False)
        lock.release()
        equal("database 1 of its Redis" in refuses_database(one.port, 2), True)


def another_database_is_refused_with_what_to_do(stand):
    equal(client(stand).execute_command("SELECT", 0), True)
    for number in (1, 16):
        said = refuses_database(stand.port, number)
        equal("database 0 of its Redis" in said and "redis names the other" in said, True)


CASES = [
    a_lock_straight_at_redis_excludes_it_and_the_other_way_round,
    a_lock_straight_at_redis_is_waited_for,
    each_kind_of_lock_waits_for_one_straight_at_redis,
    a_string_without_an_end_is_no_lock,
    a_client_may_select_the_database_that_latchd_uses,
    another_database_is_refused_with_what_to_do,
]


def main():
    with Stand(sys.argv[1], level="error") as stand:
        failed = tap([(case.__name__, functools.partial(case, stand)) for case in CASES])
    sys.exit(1 if failed else 0)


main()
