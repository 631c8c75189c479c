#!/usr/bin/env python3
"""The PUBLISH beside a release of a lock library: library_messages.py LATCHD. Prints TAP.

Spring Integration's RedisLockRegistry and redis-lock-py wait for it: whichever latchd a waiter is at, and
through which one, or straight at Redis, the lock was released.
"""
import contextlib
import functools
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from children import until
from resp import Error
from sentinels import Sentinels
from servers import Latchd, Rack, Redis
from stand import tap

RELEASE = """
if redis.call("GET", KEYS[1]) ~= ARGV[1] then
    return 0
end
redis.call("DEL", KEYS[1])
redis.call("PUBLISH", KEYS[2], ARGV[2]);
return 1
"""
CHANNEL = "rlock-channel:job"


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r}, and not {wanted!r}")


def release(link, value="v", message="ok"):
    return link.ask("EVAL", RELEASE, 2, "job", CHANNEL, value, message)


def take(link):
    equal(link.ask("SET", "job", "v", "NX", "PX", 60000), "OK")


@contextlib.contextmanager
def subscribed(server, redis=None, *channels):
    """redis: the subscription has come to Redis as well."""
    with server.wire() as link:
        if redis is not None:  # a latchd may have to leave the channel of the case before
            until(lambda: redis.ask("PUBSUB", "NUMSUB", CHANNEL)[1] == 0, "nobody listens at Redis")
        for count, channel in enumerate(channels or (CHANNEL,), 1):
            equal(link.ask("SUBSCRIBE", channel), ["subscribe", channel, count])
        if redis is not None and server is not redis:
            until(lambda: redis.ask("PUBSUB", "NUMSUB", CHANNEL)[1] == 1, "it listens at Redis")
        yield link


def hears(link, *messages):
    """These, and each once: what comes before the PONG is all."""
    for message in messages:
        equal(link.reply(), ["message", CHANNEL, message])
    equal(link.ask("PING"), ["pong", ""])


def who_waits_hears_a_release_wherever_it_was_made(here, there, redis):
    places = (here, there, redis)
    for waits in places:
        for releases in places:
            with subscribed(waits, redis) as waiter, releases.wire() as link:
                take(link)
                equal(release(link, "w"), 0)
                equal(release(link, message="first"), 1)
                take(link)
                equal(release(link, message="second"), 1)
                hears(waiter, "first", "second")


def a_pattern_hears_it_too_and_once_beside_the_channel(here, there, redis):
    """Spring's listener has a pattern."""
    pattern = "rlock-channel:*"
    for releases in (here, there, redis):
        with subscribed(here, redis) as waiter, releases.wire() as link:
            patterns = redis.ask("PUBSUB", "NUMPAT")
            for count, name in ((2, pattern), (3, "*-channel:job"), (4, "la*")):
                equal(waiter.ask("PSUBSCRIBE", name), ["psubscribe", name, count])
            until(lambda n=patterns: redis.ask("PUBSUB", "NUMPAT") == n + 2, "it listens at Redis")
            take(link)
            equal(release(link), 1)
            said = [waiter.reply(), waiter.reply()] + ([waiter.reply()] if releases is here else [])
            equal(sorted(said), sorted([["message", CHANNEL, "ok"], ["pmessage", pattern, CHANNEL, "ok"]] + (
                [["pmessage", "*-channel:job", CHANNEL, "ok"]] if releases is here else [])))
            redis.ask("PUBLISH", "latchd:x", "x")
            redis.ask("PUBLISH", "lax", "y")
            equal(waiter.reply(), ["pmessage", "la*", "lax", "y"])
            hears(waiter)
        until(lambda n=patterns: redis.ask("PUBSUB", "NUMPAT") == n, "nobody listens at Redis any more")


def two_waiters_at_one_latchd_hear_it_once_each(here, there, redis):
    with subscribed(here, redis) as one, here.wire() as other, there.wire() as link:
        equal(other.ask("SUBSCRIBE", CHANNEL), ["subscribe", CHANNEL, 1])
        take(link)
        equal(release(link), 1)
        hears(one, "ok")
        hears(other, "ok")


def a_subscription_outlives_a_lost_connection_to_redis(here, there, redis):
    with subscribed(here, redis) as waiter, there.wire() as link:
        for _ in range(2):
            redis.ask("CLIENT", "KILL", "TYPE", "pubsub")
            until(lambda: redis.ask("PUBSUB", "NUMSUB", CHANNEL)[1] == 1, "it listens at Redis again")
            take(link)
            equal(release(link), 1)
            hears(waiter, "ok")


def the_lock_is_free_when_the_message_comes(here, there, redis):
    with subscribed(here, redis) as waiter, there.wire() as link, here.wire() as next_one:
        for _ in range(20):
            take(link)
            link.send("EVAL", RELEASE, 2, "job", CHANNEL, "v", "ok")
            equal(waiter.reply(), ["message", CHANNEL, "ok"])
            take(next_one)
            equal(link.reply(), 1)
            equal(next_one.ask("DEL", "job"), 1)


def a_message_that_redis_refuses_comes_at_the_same_latchd(here, _, redis):
    """latchd's user may use the channels that locks need, and no other; then any."""
    place = f"redis://latchd:x@127.0.0.1:{redis.port}"
    for rules in (("&redisson*", "&latchd:*"), ("&*",)):
        redis.ask("ACL", "SETUSER", "latchd", "on", ">x", "~*", "+@all", "resetchannels", *rules)
        with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder, \
                Latchd(here.program, pathlib.Path(folder), "poor", place).ready() as poor, \
                subscribed(poor, redis if rules == ("&*",) else None) as waiter, poor.wire() as link:
            for _ in range(3):
                take(link)
                equal(release(link), 1)
                hears(waiter, "ok")
            refused = [line for line in poor.said().splitlines() if "refuses to subscribe to " + CHANNEL in line or
                       "refuses PUBLISH for a lock library" in line]
            equal(len(refused), 0 if rules == ("&*",) else 2)


def what_redis_and_latchd_say_to_themselves_is_nobodys_here(here, _, redis):
    channels = ("latchd:daemons:0", "redisson_lock__channel:{job}", "__redis__:invalidate", "lost:job")
    with subscribed(here, None, *channels) as link:
        with here.wire() as other:
            equal(other.ask("SUBSCRIBE", CHANNEL), ["subscribe", CHANNEL, 1])
            until(lambda: redis.ask("PUBSUB", "NUMSUB", CHANNEL)[1] == 1, "it listens at Redis")
        for channel in channels:
            redis.ask("PUBLISH", channel, "x")
        equal(link.ask("PING"), ["pong", ""])


def who_may_not_use_the_channel_is_told_as_at_a_redis(here, _, redis):
    with here.wire() as admin, subscribed(here, redis) as waiter:
        for user, channels in (("ann", "&rlock-channel:*"), ("bob", "&else:*")):
            admin.ask("ACL", "SETUSER", user, "on", ">x", "~*", "+@lock", "+@connection", "+@pubsub", channels)
        with here.wire() as ann, here.wire() as bob:
            equal((ann.ask("AUTH", "ann", "x"), bob.ask("AUTH", "bob", "x")), ("OK", "OK"))
            take(ann)
            equal(release(ann), 1)
            hears(waiter, "ok")
            take(bob)
            equal(release(bob, "w"), 0)
            try:
                raise AssertionError(f"{release(bob)!r}, and not NOPERM")
            except Error as error:
                equal(("NOPERM" in str(error), "the lock is released" in str(error)), (True, True))
            equal(bob.ask("EXISTS", "job"), 0)
            hears(waiter)


def a_failover_loses_no_later_message(program):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder, Rack(folder) as rack:
        rack.program = program
        sentinels = Sentinels(rack)
        here, there = (rack.keep(Latchd(program, rack.folder, name, sentinels.url).ready())
                       for name in ("one", "two"))
        with subscribed(here, sentinels.master) as waiter, there.wire() as link:
            take(link)
            equal(release(link), 1)
            hears(waiter, "ok")
            take(link)
            sentinels.master.kill()
            sentinels.switched()
            until(lambda: sentinels.master.ask("PUBSUB", "NUMSUB", CHANNEL)[1] == 1, "it listens at the new master")

            def is_held():
                try:
                    return link.ask("EXISTS", "job") == 1
                except Error:
                    return False
            until(is_held, "the other latchd is at the new master, too")
            equal(release(link), 1)
            hears(waiter, "ok")


CASES = [
    who_waits_hears_a_release_wherever_it_was_made,
    a_pattern_hears_it_too_and_once_beside_the_channel,
    two_waiters_at_one_latchd_hear_it_once_each,
    a_subscription_outlives_a_lost_connection_to_redis,
    the_lock_is_free_when_the_message_comes,
    a_message_that_redis_refuses_comes_at_the_same_latchd,
    what_redis_and_latchd_say_to_themselves_is_nobodys_here,
    who_may_not_use_the_channel_is_told_as_at_a_redis,
]


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder, Rack(folder) as rack:
        redis = rack.keep(Redis(rack.folder)).ready()
        here, there = (rack.keep(Latchd(program, rack.folder, name, redis.url).ready())
                       for name in ("here", "there"))
        here.program = program
        cases = [(case.__name__, functools.partial(case, here, there, redis)) for case in CASES]
        failed = tap([*cases, (a_failover_loses_no_later_message.__name__,
                               functools.partial(a_failover_loses_no_later_message, program))])
    sys.exit(1 if failed else 0)


main()
