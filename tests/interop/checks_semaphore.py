"""Semaphores: RPermitExpirableSemaphore beside LOCK ... PERMITS."""
import contextlib
import threading
import time

from expect import SLACK_MS, check, told
from peers import Call, until

MARGIN_MS = 2000  # how much later than its end a permit of the other side is free
INSIDE = 3
WAIT_MS = 20_000
LEASE_MS = 30_000


class Theirs:
    """A thread of a JVM that takes one permit, and knows its ID."""

    def __init__(self, jvm, thread, name):
        self.jvm, self.thread, self.name = jvm, thread, name
        self.permit = self.line = None

    def ask(self, verb, *rest):
        return self.jvm.ask(self.thread, verb, "permits", self.name, *rest)

    def take(self, wait_ms=WAIT_MS, lease_ms=LEASE_MS):
        self.permit = self.ask("try", wait_ms, lease_ms)
        return self.permit != "none"

    def wait(self):
        self.line = self.jvm.start(self.thread, "try", "permits", self.name, WAIT_MS,
                                   LEASE_MS)

    def waits(self):
        return self.jvm.waits(self.line)

    def got(self):
        """When, in ns."""
        reply = self.jvm.finish(self.line)
        check(reply.ok and reply.value != "none", f"{self.name}: {reply.value}")
        self.permit = reply.value
        return reply.ended

    def leave(self):
        """When it began to, in ns."""
        began = time.monotonic_ns()
        check(self.ask("release", self.permit) == "true", "not released")
        return began


class Ours:
    """A connection to latchd that takes permits."""

    def __init__(self, latchd, name, permits=1, *how):
        self.latchd, self.name, self.permits, self.how = latchd, name, permits, how
        self.token = self.call = None

    def take(self, wait_ms=WAIT_MS):
        self.token = self.latchd.ask("LOCK", self.name, "PERMITS", self.permits, "WAIT",
                                     wait_ms, *self.how)
        return self.token is not None

    def wait(self):
        self.call = Call(lambda: check(self.take(), f"{self.name} not got"))

    def waits(self):
        return self.call.ended is None

    def got(self):
        return self.call.done().ended

    def leave(self):
        began = time.monotonic_ns()
        check(self.latchd.ask("UNLOCK", self.name, "TOKEN", self.token) == 0, "not released")
        return began


def asleep(redis, name):
    channel = "redisson_sc:{%s}" % name
    until(lambda: redis.ask("PUBSUB", "NUMSUB", channel)[1] > 0, f"a subscriber of {channel}")


def wake(redis, holder, waiter):
    """How long it took from the one's leaving to the other's coming in, in ns."""
    check(holder.take(), "not taken")
    waiter.wait()
    asleep(redis, waiter.name)
    check(waiter.waits(), f"{waiter.name} is full")
    began = holder.leave()
    took = waiter.got() - began
    waiter.leave()
    return took


def permits_count_for_both(world):
    """Whoever has made the semaphore; and nobody makes it twice."""
    with world.latchd.connect() as a, world.second.connect() as b, \
         world.redis.connect() as redis:
        for name, made in (("sem-ours", a), ("sem-theirs", None)):
            theirs = [Theirs(world.jvm, f"sem{n}", name) for n in range(2)]
            if made:
                made.ask("SEMAPHORE", "LIMIT", name, 3)
            else:
                check(theirs[0].ask("set", 3) == "true", "not made")
            check(theirs[0].ask("set", 9) == "false", "made twice")
            ours = [Ours(a, name), Ours(b, name)]
            check(ours[0].take(0) and theirs[0].take(0) and ours[1].take(0), "three fit")
            check(not theirs[1].take(0), "a fourth, Redisson's")
            check(not Ours(b, name).take(0), "a fourth, latchd's")
            check(theirs[0].ask("available") == "0", "free ones")
            ours[0].leave()
            check(theirs[1].take(0), "latchd's is not free for Redisson")
            theirs[0].leave()
            check(ours[0].take(0), "Redisson's is not free for latchd")
            for one in (*ours, theirs[1]):
                one.leave()
            check(redis.ask("GET", name) == "3", "other than three in the end")
            check(redis.ask("ZCARD", "{%s}:timeout" % name) == 0, "left behind")


def a_release_of_redisson_wakes_latchd(world):
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds):
            name = f"sem-wake{i}"
            latchd.ask("SEMAPHORE", "LIMIT", name, 1)
            waits.append(wake(redis, Theirs(world.jvm, "holder", name), Ours(latchd, name)))
    told(world, "a release of RPermitExpirableSemaphore to a LOCK PERMITS", waits)


def an_unlock_of_permits_wakes_redisson(world):
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds):
            name = f"sem-woken{i}"
            latchd.ask("SEMAPHORE", "LIMIT", name, 1)
            waits.append(wake(redis, Ours(latchd, name), Theirs(world.jvm, "waiter", name)))
    told(world, "UNLOCK of permits to RPermitExpirableSemaphore", waits)


def redisson_can_release_a_permit_of_latchds_by_its_id(world):
    """Then it is taken again by the next renewal, as it is free; never is one too many out."""
    with world.latchd.connect() as latchd, world.redis.connect() as redis:
        ours = Ours(latchd, "sem-id", 2)
        latchd.ask("SEMAPHORE", "LIMIT", "sem-id", 2)
        check(ours.take(0), "not taken")
        redis.parser.raw = True  # 16 bytes that are no text
        member = redis.ask("ZRANGE", "{sem-id}:timeout", 0, 0)[0]
        redis.parser.raw = False
        theirs = Theirs(world.jvm, "id", "sem-id")
        check(theirs.ask("release", member.hex()) == "true", "Redisson does not know the ID")
        until(lambda: redis.ask("GET", "sem-id") == "0", "the permit taken again")
        check(redis.ask("ZCARD", "{sem-id}:timeout") == 2, "not two out")
        ours.leave()
        check(redis.ask("GET", "sem-id") == "2", "other than two in the end")


def permits_of_a_redisson_that_died_come_back_to_who_waits(world):
    """Nobody asks meanwhile."""
    with world.latchd.connect() as latchd:
        latchd.ask("SEMAPHORE", "LIMIT", "sem-dead", 1)
        began = time.monotonic()
        check(Theirs(world.jvm, "dead", "sem-dead").take(0, 1000), "not taken")
        ours = Ours(latchd, "sem-dead")
        check(ours.take(), "not got")
        took = (time.monotonic() - began) * 1000
        world.say(f"a permit of Redisson's with a lease of 1000 ms: {took:.0f} ms")
        check(1000 < took < 1000 + MARGIN_MS + SLACK_MS, f"after {took:.0f} ms")
        ours.leave()


def never_are_more_inside_than_there_are_permits(world):
    """Four threads of Redisson's and four clients of two latchds, as fast as they can."""
    inside, most, entries, lock = [0], [0], {"latchd": 0, "Redisson": 0}, threading.Lock()
    end = time.monotonic() + world.count(4, 60)

    def come_and_go(one, side):
        while time.monotonic() < end:
            if not one.take(2000):
                continue
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                entries[side] += 1
            time.sleep(0.001)
            with lock:
                inside[0] -= 1
            one.leave()

    with contextlib.ExitStack() as stack:
        ours = [Ours(stack.enter_context(d.connect()), "sem-crowd")
                for d in (world.latchd, world.second) * 2]
        ours[0].latchd.ask("SEMAPHORE", "LIMIT", "sem-crowd", INSIDE)
        theirs = [Theirs(world.jvm, f"crowd{n}", "sem-crowd") for n in range(4)]
        calls = [Call(lambda o=o: come_and_go(o, "latchd")) for o in ours]
        calls += [Call(lambda t=t: come_and_go(t, "Redisson")) for t in theirs]
        for call in calls:
            call.done()
    world.say(f"a semaphore of {INSIDE}: {entries}, at most {most[0]} inside")
    check(most[0] <= INSIDE, f"{most[0]} inside")
    check(min(entries.values()) > 0, "one side never came in")


CHECKS = [a_release_of_redisson_wakes_latchd, an_unlock_of_permits_wakes_redisson,
          never_are_more_inside_than_there_are_permits]
WAITING = [permits_count_for_both, redisson_can_release_a_permit_of_latchds_by_its_id,
           permits_of_a_redisson_that_died_come_back_to_who_waits]
