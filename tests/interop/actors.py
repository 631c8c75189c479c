"""One client and one lock, of latchd or of Redisson: the same words for both.

Kinds of both: plain, fair, read, write, many (several names, with commas between), and
permits (of latchd's `how` says how many; for Redisson's see TheirPermits). Of Redisson also
fenced and spin; of several masters, red and all.
"""
import time

from expect import check, queued, subscribed
from peers import Call, until

WAIT_MS = 20_000
WORDS = {"plain": [], "fair": ["FAIR"], "read": ["READ"], "write": ["WRITE"], "permits": []}
CHANNELS = {"read": "redisson_rwlock", "write": "redisson_rwlock", "permits": "redisson_sc"}


class Ours:
    """A connection to latchd; waits in a thread of its own."""

    def __init__(self, latchd, kind, name, *how):
        self.latchd, self.kind, self.name, self.how = latchd, kind, name, how
        self.tokens = self.call = None

    def ask(self, wait_ms):
        """A token of each name."""
        if self.kind == "many":
            names = self.name.split(",")
            return self.latchd.ask("MLOCK", len(names), *names, "WAIT", wait_ms, *self.how)
        token = self.latchd.ask("LOCK", self.name, *WORDS[self.kind], "WAIT", wait_ms,
                                *self.how)
        return None if token is None else [token]

    def refused(self):
        return self.ask(0) is None

    def take(self):
        self.tokens = self.ask(WAIT_MS)
        check(self.tokens is not None, f"{self.name} not got")

    def wait(self):
        self.call = Call(self.take)

    def waits(self):
        return self.call.ended is None

    def parked(self):
        """Its thread sleeps; of latchd's that need not be."""

    def got(self):
        """When, in ns."""
        return self.call.done().ended

    def leave(self):
        """When it began to, in ns."""
        began = time.monotonic_ns()
        for name, token in zip(self.name.split(","), self.tokens):
            check(self.latchd.ask("UNLOCK", name, "TOKEN", token) == 0, "not released")
        return began

    def pass_by(self, redis, target, me):
        """In and out; inside it writes itself down in a list, with when it came and went."""
        self.take()
        came = time.monotonic_ns()
        redis.ask("RPUSH", target, f"{me} {came} {time.monotonic_ns()}")
        self.leave()


class Theirs:
    """A thread of a JVM. `how`: its verb and what that wants behind the name."""

    def __init__(self, jvm, thread, kind, name, *how):
        self.jvm, self.thread, self.name = jvm, thread, name
        self.kind = "multi" if kind == "many" else kind
        self.how = how or ("lock", 0)
        self.line = None

    def ask(self, verb, *rest):
        return self.jvm.ask(self.thread, verb, self.kind, self.name, *rest)

    def refused(self):
        return self.ask("try", 0, -1) == "false"

    def take(self):
        check(self.ask(*self.how) == "true", f"{self.name} not got")

    def wait(self):
        verb, *rest = self.how
        self.line = self.jvm.start(self.thread, verb, self.kind, self.name, *rest)

    def waits(self):
        return self.jvm.waits(self.line)

    def parked(self):
        """A thread that never gets there says where it is instead."""
        seen = []
        try:
            until(lambda: self.is_parked(seen), "parked")
        except TimeoutError as late:
            answer = "waits" if self.waits() else self.jvm.finish(self.line).value
            raise TimeoutError(f"{late}: {self.thread} ({answer}) is in {seen[0]}") from None

    def is_parked(self, seen):
        seen[:] = [self.jvm.ask("control", "parked", self.thread)]
        return seen == ["true"]

    def got(self):
        """When, in ns."""
        reply = self.jvm.finish(self.line)
        check(reply.ok and reply.value == "true", f"{self.name}: {reply.value}")
        return reply.ended

    def leave(self):
        """When it began to, in ns."""
        reply = self.jvm.finish(
            self.jvm.start(self.thread, "unlock", self.kind, self.name))
        check(reply.ok, reply.value)
        return reply.began


class TheirPermits(Theirs):
    """Who has permits is known by their IDs. 0 ms: no lease, and nobody renews it."""

    def __init__(self, jvm, thread, name, count=1, lease_ms=30_000):
        super().__init__(jvm, thread, "permits", name, "acquire", count, lease_ms)
        self.count, self.lease_ms = count, lease_ms
        self.ids = None

    def refused(self):
        return self.ask("try", self.count, 0, self.lease_ms or -1) == "false"

    def take(self):
        self.ids = self.ask(*self.how)
        check(self.has_all(), f"{self.name} not got: {self.ids}")

    def got(self):
        """When, in ns."""
        reply = self.jvm.finish(self.line)
        self.ids = reply.value
        check(reply.ok and self.has_all(), f"{self.name}: {reply.value}")
        return reply.ended

    def has_all(self):
        return [len(one) for one in self.ids.split(",")] == [32] * self.count

    def leave(self):
        """When it began to, in ns."""
        reply = self.jvm.finish(
            self.jvm.start(self.thread, "release", self.kind, self.name, self.ids))
        check(reply.ok and reply.value == str(self.count), reply.value)
        return reply.began


def asleep(redis, waiter, queue=False):
    """It listens for what it waits for, or stands in the queue as the only one.

    A thread that waits to read or write must be asleep indeed: Redisson wakes as many as
    it sees asleep when a writer leaves, and one on its way there waits for the TTL. So must
    one that waits for permits: a latchd that holds some listens to their channel as well.
    """
    if waiter.kind == "fair" or queue:
        queued(redis, waiter.name, 1)
        return
    names = waiter.name.split(",")
    name = min(names) if waiter.kind == "many" else names[0]
    if waiter.kind in CHANNELS:
        subscribed(redis, name, CHANNELS[waiter.kind])
        waiter.parked()
    else:
        subscribed(redis, name)


def wake(redis, holder, waiter, queue=False):
    """How long it took from the one's leaving to the other's coming in, in ns."""
    holder.take()
    waiter.wait()
    asleep(redis, waiter, queue)
    check(waiter.waits(), f"two have {waiter.name}")
    began = holder.leave()
    took = waiter.got() - began
    waiter.leave()
    return took
