"""Read/write names: RReadWriteLock beside LOCK READ and LOCK WRITE."""
import contextlib
import time

from actors import Ours, Theirs, asleep, wake
from contend import contend
from contenders import Goal, ReaderWriter
from doom import kills_a_jvm
from expect import EARLY_MS, SLACK_MS, check, refused, told

PAIRS = [("write", "read"), ("write", "write"), ("read", "write")]
LEASE_MS = 4500  # of readers whom no watchdog keeps: more than twice a watchdog's


def they_read_and_write(world):
    """Readers see no writer, writers see nobody; some read on after they have written."""
    contend(world, Goal("both", world.count(300, 33_000), pause_us=4000), ["rw"] * 6,
            [world.latchd, world.second] * 3, share=0.03, ours=ReaderWriter)


def readers_share_and_writers_exclude(world):
    with world.latchd.connect() as a, world.second.connect() as b:
        ours = [Ours(c, kind, "shared") for c in (a, b) for kind in ("read", "write")]
        theirs = [Theirs(world.jvm, f"s{n}", kind, "shared")
                  for n in range(2) for kind in ("read", "write")]
        for reader, other in ((ours[0], theirs[0]), (theirs[0], ours[0])):
            reader.take()
            other.take()
            for writer in (ours[1], ours[3], theirs[1], theirs[3]):
                check(writer.refused(), "a writer beside readers")
            reader.leave()
            check(ours[3].refused() and theirs[3].refused(), "a writer beside a reader")
            other.leave()
        for writer in (ours[1], theirs[1]):
            writer.take()
            for one in (ours[2], ours[3], theirs[2], theirs[3]):
                check(one.refused(), "somebody beside a writer")
            writer.leave()


def an_unlock_of_redisson_wakes_readers_and_writers(world):
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds):
            theirs, ours = PAIRS[i % 3]
            holder = Theirs(world.jvm, "holder", theirs, f"rw-theirs{i}",
                            "lock", [0, 30_000][i // 3 % 2])
            waits.append(wake(redis, holder, Ours(latchd, ours, holder.name)))
    told(world, "RReadWriteLock's unlock() to a LOCK READ or WRITE", waits)


def an_unlock_of_latchd_wakes_readers_and_writers(world):
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds):
            ours, theirs = PAIRS[i % 3]
            how = [("lock", 0), ("try", 20_000, -1)][i // 3 % 2]
            holder = Ours(latchd, ours, f"rw-ours{i}")
            waits.append(wake(redis, holder,
                              Theirs(world.jvm, "waiter", theirs, holder.name, *how)))
    told(world, "UNLOCK of latchd to an RReadWriteLock", waits)


class Crowd:
    """Three readers of each side, on two daemons and two JVMs."""

    def __init__(self, world, stack, name):
        daemons = [world.latchd, world.second, world.latchd]
        jvms = [world.jvm, world.short, world.jvm]
        self.all = [Ours(stack.enter_context(d.connect()), "read", name) for d in daemons]
        self.all += [Theirs(jvm, f"reader{n}", "read", name) for n, jvm in enumerate(jvms)]

    def wait(self, redis):
        for reader in self.all:
            reader.wait()
        for reader in self.all:
            asleep(redis, reader)

    def come_in(self, began):
        """All before any of them leaves; how long each took, in ns."""
        took = [reader.got() - began for reader in self.all]
        for reader in self.all:
            reader.leave()
        return took


def readers_of_both_come_in_together(world):
    """After a writer of either side."""
    waits = []
    with world.redis.connect() as redis:
        for i in range(world.rounds // 5):
            with contextlib.ExitStack() as stack:
                name = f"crowd{i}"
                writer = [Ours(stack.enter_context(world.second.connect()), "write", name),
                          Theirs(world.jvm, "writer", "write", name)][i % 2]
                crowd = Crowd(world, stack, name)
                writer.take()
                crowd.wait(redis)
                waits += crowd.come_in(writer.leave())
    told(world, "a writer's unlock to six readers", waits)


def a_writer_of_latchd_that_reads_on_wakes_readers(world):
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds // 5):
            with contextlib.ExitStack() as stack:
                name = f"down-ours{i}"
                crowd = Crowd(world, stack, name)
                for kind in ("WRITE", "READ"):
                    check(latchd.ask("LOCK", name, kind, "WAIT", 0, "OWNER", "o"), "not got")
                crowd.wait(redis)
                began = time.monotonic_ns()
                check(latchd.ask("UNLOCK", name, "WRITE", "OWNER", "o") == 0, "not released")
                waits += crowd.come_in(began)
                check(world.jvm.ask("w", "try", "write", name, 0, -1) == "false", "two")
                check(latchd.ask("UNLOCK", name, "OWNER", "o") == 0, "not released")
    told(world, "UNLOCK WRITE to six readers beside the one that reads on", waits)


def a_writer_of_redisson_that_reads_on_is_joined_within_the_recheck(world):
    """It tells nobody; Redisson's own readers wait for the lock's TTL then."""
    waits = []
    with world.redis.connect() as redis, world.quick.connect() as latchd:
        for i in range(6):
            name = f"down-theirs{i}"
            writer = Theirs(world.jvm, "downer", "write", name)
            beside = Theirs(world.jvm, "downer", "read", name)
            reader = Ours(latchd, "read", name)
            writer.take()
            beside.take()
            reader.wait()
            asleep(redis, reader)
            began = writer.leave()
            waits.append(reader.got() - began)
            beside.leave()
            reader.leave()
    told(world, f"a downgrade of Redisson's to a LOCK READ, recheck {world.recheck_ms} ms",
         waits)
    check(max(waits) / 1e6 < world.recheck_ms + SLACK_MS, "later than the recheck")


def comes_in_after(writer, since, lease_ms, what):
    took = (writer.got() - since) / 1e6
    check(lease_ms - EARLY_MS < took < lease_ms + SLACK_MS, f"{what}: {took:.0f} ms")
    writer.leave()


@kills_a_jvm
def a_watchdog_of_redisson_does_not_cut_a_fixed_lease_H14(world):
    """Its JVM keeps the lock for two seconds at a time, and dies."""
    name = "uncut"
    with world.quick.connect() as latchd:
        reader = Ours(latchd, "read", name, "LEASE", LEASE_MS)
        began = time.monotonic_ns()
        reader.take()
        Theirs(world.doomed, name, "read", name).take()
        writer = Theirs(world.jvm, name, "write", name, "try", 20_000, -1)
        writer.wait()
        time.sleep(world.watchdog_ms / 2000)  # it renews every third of its lease
        world.doom.kill()
        comes_in_after(writer, began, LEASE_MS, "beside a fixed lease of latchd's")
        said = refused(lambda: latchd.ask("UNLOCK", name, "TOKEN", reader.tokens[0]))
        check(said.startswith("NOTHELD"), said)


def latchd_neither_cuts_nor_renews_a_lease_of_redisson_s(world):
    """Its own watchdog has two seconds, and lets go before the other's lease is over."""
    name = "respected"
    with world.redis.connect() as redis, world.quick.connect() as latchd, \
         world.second.connect() as other:
        began = time.monotonic_ns()
        Theirs(world.jvm, "lessee", "read", name, "lock", LEASE_MS).take()
        ours = Ours(latchd, "read", name)
        ours.take()
        writer = Ours(other, "write", name)
        writer.wait()
        theirs = [key for key in redis.ask("KEYS", "{%s}:*:rwlock_timeout:1" % name)
                  if "latchd" not in key]
        check(len(theirs) == 1, f"{theirs}")
        while time.monotonic_ns() - began < (LEASE_MS - world.watchdog_ms / 2) * 1e6:
            left = LEASE_MS - (time.monotonic_ns() - began) / 1e6
            for key in (theirs[0], name):
                ttl = redis.ask("PTTL", key)
                check(ttl > left - EARLY_MS, f"{key}: {ttl} ms, not {left:.0f}")
            check(redis.ask("PTTL", theirs[0]) < left + EARLY_MS, "renewed")
            time.sleep(0.02)
        ours.leave()
        comes_in_after(writer, began, LEASE_MS, "after a fixed lease of Redisson's")


CHECKS = [
    they_read_and_write,
    readers_share_and_writers_exclude,
    an_unlock_of_redisson_wakes_readers_and_writers,
    an_unlock_of_latchd_wakes_readers_and_writers,
    readers_of_both_come_in_together,
    a_writer_of_latchd_that_reads_on_wakes_readers,
]

WAITING = [
    a_writer_of_redisson_that_reads_on_is_joined_within_the_recheck,
    a_watchdog_of_redisson_does_not_cut_a_fixed_lease_H14,
    latchd_neither_cuts_nor_renews_a_lease_of_redisson_s,
]
