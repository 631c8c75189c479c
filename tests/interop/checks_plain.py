"""Plain names: RLock, RFencedLock and SpinLock beside LOCK. One function a check."""
import threading
import time

from actors import Ours, Theirs, wake
from contend import contend
from contenders import Goal
from expect import (EARLY_MS, SLACK_MS, check, refused, subscribed, told)
from peers import Call


def a_jvm_that_just_started_is_not_locked_out(world):
    """A cold JVM interprets, and compiles beside, so its share says little."""
    contend(world, Goal("cold", world.count(1_000, 1_000), pause_us=8000),
            ["plain"] * 5 + ["fenced"] * 3, [world.latchd, world.second] * 4, share=0.001)


def they_take_turns(world):
    """With something to do between, so that it changes sides often."""
    contend(world, Goal("turns", world.count(2_000, 110_000), pause_us=8000),
            ["plain"] * 5 + ["fenced"] * 3, [world.latchd, world.second] * 4, share=0.02)


def the_greedy_leave_something_to_the_other_side(world):
    """Plain locks are for whoever comes first; latchd stands back now and then."""
    contend(world, Goal("greed", world.count(1_500, 55_000), pause_us=0), ["plain"] * 8,
            [world.latchd] * 8, share=0.008)


def two_greedy_latchds_exclude_redisson_too(world):
    """Each stands back once more when the other one yields."""
    contend(world, Goal("two", world.count(1_200, 20_000), pause_us=0), ["plain"] * 4,
            [world.latchd, world.second] * 4, share=0.004)


def spin_locks_take_turns_with_both(world):
    """They tell nobody, and ask again every few milliseconds; so does this daemon."""
    with world.latchd_with("asking", ["--recheck", "10ms"]) as asking, \
         Wakes(world.redis, "spins"):
        contend(world, Goal("spins", world.count(600, 50_000), pause_us=2000),
                ["spin", "spin", "plain"], [asking] * 3, share=0.01)


class Wakes:
    """Wakes who sleeps on a name, again and again. Redisson's RLock behind its SpinLock needs
    that, once nobody of latchd's is left to release: else it sleeps for the whole lease."""

    def __init__(self, redis, name):
        self.redis, self.channel = redis, "redisson_lock__channel:{%s}" % name
        self.over = threading.Event()
        self.call = None

    def __enter__(self):
        self.call = Call(self.wake)

    def __exit__(self, *what):
        self.over.set()
        self.call.done()

    def wake(self):
        with self.redis.connect() as redis:
            while not self.over.wait(0.5):
                redis.ask("PUBLISH", self.channel, 0)


def a_redisson_does_not_get_into_a_rest(world):
    """It is told by the TTL for how long, and has the lock when the rest is over."""
    rest_ms = 3000
    for kind in ("plain", "fenced", "spin"):
        name = f"rest-{kind}"
        with world.latchd.connect() as job, world.second.connect() as other:
            began = time.monotonic_ns()
            token = job.ask("LOCK", name, "WAIT", 0, "ATLEAST", rest_ms)
            check(other.ask("UNLOCK", name, "TOKEN", token) == 0, "not released")
            theirs = Theirs(world.jvm, f"into-{kind}", kind, name)
            check(theirs.refused(), f"{kind}: it got into the rest")
            theirs.wait()
            got = theirs.got()
            check(got - began >= (rest_ms - EARLY_MS) * 1_000_000, f"{kind}: too early")
            check(job.ask("LOCK", name, "WAIT", 0, "ATLEAST", rest_ms) is None, "two have it")
            theirs.leave()


def an_unlock_of_redisson_wakes_latchd(world):
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds):
            holder = Theirs(world.jvm, "holder", ["plain", "fenced"][i // 2 % 2],
                            f"theirs{i}", "lock", [0, 30_000][i % 2])
            waits.append(wake(redis, holder, Ours(latchd, "plain", holder.name)))
    told(world, "RLock.unlock() to a LOCK of latchd", waits)


def an_unlock_of_latchd_wakes_redisson(world):
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds):
            holder = Ours(latchd, "plain", f"ours{i}", *[[], ["LEASE", 30_000]][i % 2])
            how = [("lock", 0), ("try", 20_000, -1), ("lock", 30_000)][i % 3]
            waiter = Theirs(world.jvm, "waiter", ["plain", "fenced"][i // 2 % 2],
                            holder.name, *how)
            waits.append(wake(redis, holder, waiter))
    told(world, "UNLOCK of latchd to an RLock", waits)


def a_lease_that_runs_out_is_enough(world):
    """Nobody releases: each side comes in when the other's fixed lease is over."""
    lease_ms = 900
    with world.latchd.connect() as latchd:
        first = world.jvm.finish(
            world.jvm.start("lease", "lock", "plain", "lapse", lease_ms))
        call = Call(latchd.ask, "LOCK", "lapse", "WAIT", 20_000, "LEASE", lease_ms).done()
        comes_after(first, lease_ms, call, "latchd after Redisson's lease")
        late = world.jvm.finish(world.jvm.start("lease", "unlock", "plain", "lapse"))
        check("IllegalMonitorState" in late.value, late.value)
        reply = world.jvm.finish(world.jvm.start("lease", "try", "plain", "lapse", 20_000, -1))
        check(reply.value == "true", reply.value)
        call.began = first.began + lease_ms * 1_000_000  # it came no earlier
        comes_after(call, lease_ms, reply, "Redisson after latchd's lease")
        said = refused(lambda: latchd.ask("UNLOCK", "lapse", "TOKEN", call.value))
        check(said.startswith("NOTHELD"), said)
        world.jvm.ask("lease", "unlock", "plain", "lapse")


def comes_after(taken, lease_ms, other, what):
    """`taken`: when it was is known no better than from when to when that took."""
    least, most = (other.ended - taken.began) / 1e6, (other.ended - taken.ended) / 1e6
    check(least > lease_ms - EARLY_MS and most < lease_ms + SLACK_MS,
          f"{what}: {most:.0f} to {least:.0f} ms of {lease_ms}")


def fenced_locks_exclude_and_count_in_one_sequence(world):
    counter = "redisson_lock_token:{fence}"
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        first = int(world.jvm.ask("f", "token", "fenced", "fence"))
        check(latchd.ask("LOCK", "fence", "WAIT", 0) is None, "two holders")
        call = Call(latchd.ask, "LOCK", "fence", "WAIT", 20_000)
        subscribed(redis, "fence")
        world.jvm.ask("f", "unlock", "fenced", "fence")
        token = call.done().value
        check(token > first, f"{token} after {first}")
        check(redis.ask("GET", counter) == str(token), "latchd's grant did not count")
        check(world.jvm.ask("f", "try", "fenced", "fence", 0, -1) == "false", "two holders")
        # lockAndGetToken() loses a message that comes between its last try and its listener,
        # and then sleeps for the TTL; lock() does not.
        waiter = world.jvm.start("f", "locktoken", "fenced", "fence")
        subscribed(redis, "fence")
        check(latchd.ask("UNLOCK", "fence", "TOKEN", token) == 0, "not released")
        second = int(world.jvm.finish(waiter).value)
        check(second == token + 1, f"{second} after {token}")
        check(redis.ask("PTTL", counter) == -1, "the counter has a TTL")
        world.jvm.ask("f", "unlock", "fenced", "fence")
        again = latchd.ask("LOCK", "fence", "WAIT", 5000)
        check(again > second, f"{again} after {second}")
        check(latchd.ask("UNLOCK", "fence", "TOKEN", again) == 0, "not released")
        third = int(world.jvm.ask("f", "token", "fenced", "fence"))
        check(third == again + 1, f"{third} after {again}")
        world.jvm.ask("f", "unlock", "fenced", "fence")


def a_spin_lock_is_followed_within_the_recheck(world):
    """It publishes nothing."""
    waits = []
    with world.redis.connect() as redis, world.quick.connect() as latchd:
        for i in range(6):
            name = f"spin{i}"
            world.jvm.ask("s", "lock", "spin", name, 0)
            check(latchd.ask("LOCK", name, "WAIT", 0) is None, "two holders")
            call = Call(latchd.ask, "LOCK", name, "WAIT", 20_000)
            subscribed(redis, name)
            release = world.jvm.finish(world.jvm.start("s", "unlock", "spin", name))
            check(release.ok, release.value)
            token = call.done().value
            waits.append(call.ended - release.began)
            waiter = world.jvm.start("s", "lock", "spin", name, 0)
            check(world.jvm.ask("s2", "try", "spin", name, 0, -1) == "false", "two holders")
            check(latchd.ask("UNLOCK", name, "TOKEN", token) == 0, "not released")
            check(world.jvm.finish(waiter).ok, "not got")
            world.jvm.ask("s", "unlock", "spin", name)
    told(world, f"SpinLock.unlock() to a LOCK, recheck {world.recheck_ms} ms", waits)
    check(max(waits) / 1e6 < world.recheck_ms + SLACK_MS, "later than the recheck")


def both_watchdogs_keep_their_holds(world):
    """For three leases, with somebody from the other side waiting all the time."""
    with world.redis.connect() as redis, world.quick.connect() as latchd, \
         world.quick.connect() as other:
        world.short.ask("h", "lock", "plain", "kept-there", 0)
        token = latchd.ask("LOCK", "kept-here", "WAIT", 0)
        theirs = world.jvm.start("w", "try", "plain", "kept-here", 60_000, -1)
        ours = Call(other.ask, "LOCK", "kept-there", "WAIT", 60_000)
        end = time.monotonic() + 3 * world.watchdog_ms / 1000
        lowest = world.watchdog_ms
        while time.monotonic() < end:
            for name in ("kept-there", "kept-here"):
                lowest = min(lowest, redis.ask("PTTL", name))
            check(lowest > 0 and ours.ended is None, "a hold is lost")
            time.sleep(0.02)
        check(world.short.ask("h", "held", "plain", "kept-there") == "true", "not held there")
        world.say(f"lowest TTL in {3 * world.watchdog_ms} ms: {lowest} ms")
        world.short.ask("h", "unlock", "plain", "kept-there")
        check(latchd.ask("UNLOCK", "kept-here", "TOKEN", token) == 0, "lost here")
        check(world.jvm.finish(theirs).value == "true", "Redisson did not get it")
        other.ask("UNLOCK", "kept-there", "TOKEN", ours.done().value)
        world.jvm.ask("w", "unlock", "plain", "kept-here")


def each_can_throw_the_other_out(world):
    """forceUnlock() and FORCEUNLOCK: the loser is told so, the next one gets in."""
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        token = latchd.ask("LOCK", "force", "WAIT", 0)
        check(world.jvm.ask("o", "force", "plain", "force") == "true", "nothing was freed")
        said = refused(lambda: latchd.ask("UNLOCK", "force", "TOKEN", token))
        check(said.startswith("NOTHELD"), said)
        world.jvm.ask("o", "lock", "plain", "force", 0)
        waiter = world.jvm.start("p", "lock", "plain", "force", 0)
        subscribed(redis, "force")
        check(latchd.ask("FORCEUNLOCK", "force", "ANY") == 1, "nothing was freed")
        check(world.jvm.finish(waiter).ok, "not got")
        late = world.jvm.finish(world.jvm.start("o", "unlock", "plain", "force"))
        check("IllegalMonitorState" in late.value, late.value)
        world.jvm.ask("p", "unlock", "plain", "force")


CHECKS = [
    a_jvm_that_just_started_is_not_locked_out,
    they_take_turns,
    the_greedy_leave_something_to_the_other_side,
    two_greedy_latchds_exclude_redisson_too,
    spin_locks_take_turns_with_both,
    an_unlock_of_redisson_wakes_latchd,
    an_unlock_of_latchd_wakes_redisson,
    fenced_locks_exclude_and_count_in_one_sequence,
    each_can_throw_the_other_out,
]

WAITING = [
    a_redisson_does_not_get_into_a_rest,
    a_lease_that_runs_out_is_enough,
    a_spin_lock_is_followed_within_the_recheck,
    both_watchdogs_keep_their_holds,
]
