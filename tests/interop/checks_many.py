"""Several names at once: RMultiLock beside MLOCK."""
from actors import Ours, Theirs, wake
from contend import contend
from contenders import Collector, Goal
from expect import EARLY_MS, SLACK_MS, check, queued, told
from peers import until

NAMES = "m:a,m:b,m:c"
BACKWARDS = "m:c,m:b,m:a"
GIVEN_UP_MS = 400
LEASE_MS = 1200


def many_at_once_take_turns(world):
    """Also against each other's order, where RMultiLock often has to begin again."""
    for order, count in ((NAMES, world.count(400, 100_000)),
                         (BACKWARDS, world.count(150, 10_000))):
        contend(world, Goal(NAMES, count, pause_us=3000, theirs=order), ["multi"] * 4,
                [world.latchd, world.second] * 2, share=0.01, ours=Collector)


def an_unlock_of_a_multi_lock_wakes_latchd(world):
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds // 2):
            names = f"{i}:x,{i}:y,{i}:z"
            holder = Theirs(world.jvm, "holder", "many", names)
            waits.append(wake(redis, holder, Ours(latchd, "many", names)))
    told(world, "RMultiLock.unlock() to an MLOCK", waits)


def an_unlock_of_many_wakes_a_multi_lock(world):
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds // 2):
            names = f"{i}:x,{i}:y,{i}:z"
            holder = Ours(latchd, "many", names, *[[], ["LEASE", 30_000]][i % 2])
            waits.append(wake(redis, holder, Theirs(world.jvm, "waiter", "many", names,
                                                    "try", 20_000, -1)))
    told(world, "UNLOCK of many to an RMultiLock", waits)


def against_its_order_a_multi_lock_gives_up_and_latchd_goes_on(world):
    """Each has one end and wants the other's. MLOCK keeps what it has."""
    names = "x:a,x:b,x:c"
    first, middle, last = names.split(",")
    with world.redis.connect() as redis, world.latchd.connect() as a, \
         world.second.connect() as b:
        blocker = Ours(b, "plain", middle)
        blocker.take()
        ours = Ours(a, "many", names)
        theirs = Theirs(world.jvm, "multi", "many", f"{last},{middle},{first}", "try",
                        GIVEN_UP_MS, -1)
        ours.wait()
        theirs.wait()
        until(lambda: redis.ask("EXISTS", first, last) == 2, "each has one end")
        blocker.leave()
        reply = world.jvm.finish(theirs.line)
        check(reply.value == "false", reply.value)
        told(world, "MLOCK after an RMultiLock gave up", [max(ours.got() - reply.ended, 1)])
        ours.leave()
        theirs.take()
        theirs.leave()


def a_multi_lock_that_lets_the_queue_expire_costs_nobody_his_place_M3(world):
    """The lease that it gives to a fair lock in the end, it gives to the queue as well."""
    first, second = "q:a", "q:b"
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        blocker = Ours(latchd, "fair", second)
        blocker.take()
        multi = Theirs(world.jvm, "multi", "multifair", f"{first},{second}", "try", 20_000,
                       LEASE_MS)
        multi.wait()
        until(lambda: redis.ask("EXISTS", first) == 1, "it has the first")
        waiters = [Ours(world.quick.connect(), "fair", first) for _ in range(3)]
        for count, waiter in enumerate(waiters, 1):
            waiter.wait()
            queued(redis, first, count)
        began = blocker.leave()
        got = multi.got()
        check(redis.ask("PTTL", "redisson_lock_queue:{%s}" % first) > 0, "that was mended")
        for waiter, other in zip(waiters, [*waiters[1:], None]):
            came = waiter.got()
            check((came - began) / 1e6 > LEASE_MS - EARLY_MS and
                  (came - got) / 1e6 < LEASE_MS + SLACK_MS, f"{(came - got) / 1e6:.0f} ms")
            check(other is None or other.waits(), "out of order")
            waiter.leave()


CHECKS = [
    many_at_once_take_turns,
    an_unlock_of_a_multi_lock_wakes_latchd,
    an_unlock_of_many_wakes_a_multi_lock,
]

WAITING = [
    against_its_order_a_multi_lock_gives_up_and_latchd_goes_on,
    a_multi_lock_that_lets_the_queue_expire_costs_nobody_his_place_M3,
]
