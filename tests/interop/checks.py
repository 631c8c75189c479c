"""What is to be true between latchd and Redisson on plain names; one function a check."""
import statistics
import time

from contend import Goal, contend
from peers import Call, Jvm, RespError, until

SECOND_NS = 1_000_000_000
LATE_S = 1.0  # a wake-up that came by itself; leases and rechecks are far longer
SLACK_MS = 700  # how much later than its TTL a dead holder's lock may come
CHANNEL = "redisson_lock__channel:{%s}"


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def refused(reply):
    """An error reply, as text."""
    try:
        return f"no error but {reply()}"
    except RespError as error:
        return str(error)


def subscribed(redis, name):
    """Somebody sleeps till the channel of that name says something."""
    channel = CHANNEL % name
    until(lambda: redis.ask("PUBSUB", "NUMSUB", channel)[1] > 0, f"a subscriber of {channel}")


def told(world, what, waits_ns):
    ms = sorted(w / 1e6 for w in waits_ns)
    world.say(f"{what}: median {statistics.median(ms):.2f} ms, "
              f"99 % {ms[int(len(ms) * 0.99)]:.2f} ms, longest {ms[-1]:.2f} ms")
    check(ms[-1] < LATE_S * 1000, f"{what}: {ms[-1]:.0f} ms after the release")
    check(ms[0] > 0, f"{what}: in before the release began")


def they_take_turns(world):
    """With something to do between, so that it changes sides often."""
    contend(world, Goal("turns", world.entries, pause_us=8000),
            ["plain"] * 5 + ["fenced"] * 3, [world.latchd, world.second] * 4, share=0.02)


def the_greedy_leave_something_to_the_other_side(world):
    """Plain locks are for whoever comes first; latchd stands back now and then."""
    contend(world, Goal("greed", world.entries // 2, pause_us=0), ["plain"] * 8,
            [world.latchd] * 8, share=0.01)


def two_greedy_latchds_exclude_redisson_too(world):
    """Each stands back once more when the other one yields."""
    contend(world, Goal("two", world.entries // 6, pause_us=0), ["plain"] * 4,
            [world.latchd, world.second] * 4, share=0.01)


def spin_locks_take_turns_with_both(world):
    """They tell nobody, and ask again every few milliseconds; so does this daemon."""
    with world.latchd_with("asking", ["--recheck", "10ms"]) as asking:
        contend(world, Goal("spins", world.entries // 6, pause_us=2000),
                ["spin", "spin", "plain"], [asking] * 3, share=0.01)


def an_unlock_of_redisson_wakes_latchd(world):
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds):
            name, lease = f"theirs{i}", [0, 30_000][i % 2]
            world.jvm.ask("holder", "lock", "plain", name, lease)
            call = Call(latchd.ask, "LOCK", name, "WAIT", 20_000)
            subscribed(redis, name)
            release = world.jvm.finish(world.jvm.start("holder", "unlock", "plain", name))
            check(release.ok, release.value)
            token = call.done().value
            check(token is not None, "not got")
            waits.append(call.ended - release.began)
            check(latchd.ask("UNLOCK", name, "TOKEN", token) == 0, "not released")
    told(world, "RLock.unlock() to a LOCK of latchd", waits)


def an_unlock_of_latchd_wakes_redisson(world):
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds):
            name, lease = f"ours{i}", [[], ["LEASE", 30_000]][i % 2]
            wait = [("lock", 0), ("try", 20_000, -1), ("lock", 30_000)][i % 3]
            token = latchd.ask("LOCK", name, "WAIT", 0, *lease)
            waiter = world.jvm.start("waiter", wait[0], "plain", name, *wait[1:])
            subscribed(redis, name)
            began = time.monotonic_ns()
            check(latchd.ask("UNLOCK", name, "TOKEN", token) == 0, "not released")
            reply = world.jvm.finish(waiter)
            check(reply.value == "true", reply.value)
            waits.append(reply.ended - began)
            world.jvm.ask("waiter", "unlock", "plain", name)
    told(world, "UNLOCK of latchd to an RLock", waits)


def a_lease_that_runs_out_is_enough(world):
    """Nobody releases: each side comes in when the other's fixed lease is over."""
    with world.latchd.connect() as latchd:
        world.jvm.ask("lease", "lock", "plain", "lapse", 900)
        call = Call(latchd.ask, "LOCK", "lapse", "WAIT", 20_000, "LEASE", 900).done()
        within(call.began, call.ended, 900, "latchd after Redisson's lease")
        late = world.jvm.finish(world.jvm.start("lease", "unlock", "plain", "lapse"))
        check("IllegalMonitorState" in late.value, late.value)
        reply = world.jvm.finish(world.jvm.start("lease", "try", "plain", "lapse", 20_000, -1))
        check(reply.value == "true", reply.value)
        within(call.ended, reply.ended, 900, "Redisson after latchd's lease")
        said = refused(lambda: latchd.ask("UNLOCK", "lapse", "TOKEN", call.value))
        check(said.startswith("NOTHELD"), said)
        world.jvm.ask("lease", "unlock", "plain", "lapse")


def within(began_ns, ended_ns, lease_ms, what):
    took = (ended_ns - began_ns) / 1e6
    check(lease_ms - 150 < took < lease_ms + SLACK_MS, f"{what}: {took:.0f} ms of {lease_ms}")


def a_killed_jvm_blocks_latchd_for_its_ttl_only(world):
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        jvm = Jvm(world.class_path, world.redis, world.folder, "doomed-jvm", world.watchdog_ms)
        with jvm:
            jvm.ask("holder", "lock", "plain", "orphan", 0)
            call = Call(latchd.ask, "LOCK", "orphan", "WAIT", 20_000)
            subscribed(redis, "orphan")
            jvm.kill()
            died, ttl = time.monotonic_ns(), redis.ask("PTTL", "orphan")
        check(0 < ttl <= world.watchdog_ms, f"a TTL of {ttl} ms")
        token = call.done().value
        after(world, call.ended - died, ttl, "latchd after a killed JVM")
        latchd.ask("UNLOCK", "orphan", "TOKEN", token)


def a_killed_latchd_blocks_redisson_for_its_ttl_only(world):
    with world.redis.connect() as redis, world.start_latchd("doomed") as doomed:
        with doomed.connect() as latchd:
            check(latchd.ask("LOCK", "widow", "WAIT", 0), "not got")
            waiter = world.jvm.start("waiter", "try", "plain", "widow", 20_000, -1)
            subscribed(redis, "widow")
            doomed.kill()
            died, ttl = time.monotonic_ns(), redis.ask("PTTL", "widow")
        check(0 < ttl <= world.watchdog_ms, f"a TTL of {ttl} ms")
        reply = world.jvm.finish(waiter)
        check(reply.value == "true", reply.value)
        after(world, reply.ended - died, ttl, "Redisson after a killed latchd")
        world.jvm.ask("waiter", "unlock", "plain", "widow")


def after(world, took_ns, ttl_ms, what):
    took = took_ns / 1e6
    world.say(f"{what}: {took:.0f} ms, its TTL was {ttl_ms} ms")
    check(ttl_ms - 150 < took < ttl_ms + SLACK_MS, what)


def fenced_locks_exclude_and_keep_their_counter(world):
    counter = "redisson_lock_token:{fence}"
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        first = int(world.jvm.ask("f", "token", "fenced", "fence"))
        check(latchd.ask("LOCK", "fence", "WAIT", 0) is None, "two holders")
        call = Call(latchd.ask, "LOCK", "fence", "WAIT", 20_000)
        subscribed(redis, "fence")
        world.jvm.ask("f", "unlock", "fenced", "fence")
        token = call.done().value
        check(redis.ask("GET", counter) == str(first), "latchd touched the counter")
        check(world.jvm.ask("f", "try", "fenced", "fence", 0, -1) == "false", "two holders")
        waiter = world.jvm.start("f", "token", "fenced", "fence")
        subscribed(redis, "fence")
        check(latchd.ask("UNLOCK", "fence", "TOKEN", token) == 0, "not released")
        second = int(world.jvm.finish(waiter).value)
        check(second == first + 1, f"{second} after {first}")
        check(redis.ask("PTTL", counter) == -1, "the counter has a TTL")
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


ALL = [
    they_take_turns,
    the_greedy_leave_something_to_the_other_side,
    two_greedy_latchds_exclude_redisson_too,
    spin_locks_take_turns_with_both,
    an_unlock_of_redisson_wakes_latchd,
    an_unlock_of_latchd_wakes_redisson,
    a_lease_that_runs_out_is_enough,
    a_killed_jvm_blocks_latchd_for_its_ttl_only,
    a_killed_latchd_blocks_redisson_for_its_ttl_only,
    fenced_locks_exclude_and_keep_their_counter,
    a_spin_lock_is_followed_within_the_recheck,
    both_watchdogs_keep_their_holds,
    each_can_throw_the_other_out,
]
