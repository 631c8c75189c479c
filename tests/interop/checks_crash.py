"""Who is killed with -9 keeps nobody out for longer than what it held has to live, and its
place in a queue for longer than its score says.
"""
import time

from actors import Ours, Theirs, asleep
from doom import kills_a_jvm
from expect import after, check, deadline_ms, queue_of, queued, told
from peers import until

KINDS = [("plain", "plain"), ("fenced", "plain"), ("spin", "plain"), ("fair", "fair"),
         ("write", "read"), ("read", "write")]
PATIENCE_MS = 1000  # what the wait of the head of a queue adds
LIFE_MS = 4000  # as much, of a thread that is not to give up before its JVM is killed


def killed_while_they_hold(world, redis, pairs, kill):
    """`pairs`: of a holder that dies and a waiter of the other side; all at once."""
    for holder, waiter in pairs:
        holder.take()
        waiter.wait()
        asleep(redis, waiter)
    kill()
    died = time.monotonic_ns()
    ttls = [redis.ask("PTTL", holder.name) for holder, _ in pairs]
    for (holder, waiter), ttl in zip(pairs, ttls):
        check(0 < ttl <= world.watchdog_ms, f"a TTL of {ttl} ms")
        after(world, waiter.got() - died, ttl,
              f"{type(waiter).__name__.lower()} after a dead holder ({holder.kind})")
        waiter.leave()


@kills_a_jvm
def a_killed_jvm_blocks_latchd_for_its_ttl_only(world):
    with world.redis.connect() as redis:
        pairs = [(Theirs(world.doomed, f"t{i}", a, f"orphan-{a}"),
                  Ours(world.latchd.connect(), b, f"orphan-{a}"))
                 for i, (a, b) in enumerate(KINDS)]
        killed_while_they_hold(world, redis, pairs, world.doom.kill)


def a_killed_latchd_blocks_redisson_for_its_ttl_only(world):
    """Redisson before 3.32.0 is to blame itself: a fair waiter that wakes a moment before
    its time is over sleeps on, for as long as it may wait."""
    kinds = [(a, b) for a, b in KINDS
             if a not in ("fenced", "spin") and (a != "fair" or world.version >= (3, 32))]
    with world.redis.connect() as redis, world.start_latchd("husband") as doomed:
        pairs = [(Ours(doomed.connect(), a, f"widow-{a}"),
                  Theirs(world.jvm, f"widow-{a}", b, f"widow-{a}", "try", 20_000, -1))
                 for a, b in kinds]
        killed_while_they_hold(world, redis, pairs, doomed.kill)


@kills_a_jvm
def dead_readers_go_with_their_leases_W6(world):
    """Of either side, though others of both read on; then a writer comes in at once. There
    is no watchdog of Redisson's: it would cut the leases of others, see H14."""
    name = "zombies"
    with world.redis.connect() as redis, world.start_latchd("zombie") as daemon:
        alive = [Ours(world.latchd.connect(), "read", name),
                 Theirs(world.jvm, "alive", "read", name, "lock", 20_000)]
        for reader in (Ours(daemon.connect(), "read", name),
                       Theirs(world.doomed, name, "read", name, "lock", world.watchdog_ms),
                       *alive):
            reader.take()
        writers = [Ours(world.second.connect(), "write", name),
                   Theirs(world.jvm, "heir", "write", name, "try", 20_000, -1)]
        for writer in writers:
            writer.wait()
            asleep(redis, writer)
        world.doom.kill()
        daemon.kill()
        until(lambda: len(redis.ask("KEYS", "{%s}:*:rwlock_timeout:*" % name)) == 2,
              "the dead ones' leases are over")
        alive[0].leave()
        check(writers[0].waits() and writers[1].waits(), "a writer beside a reader")
        began = alive[1].leave()
        until(lambda: not all(w.waits() for w in writers), "a writer came in")
        first, other = sorted(writers, key=lambda w: w.waits())
        waits = [first.got() - began]
        began = first.leave()
        waits.append(other.got() - began)
        other.leave()
        told(world, "writers after readers of whom some were dead", waits)


def serve(world, waiters, due_ms, since, what):
    """They come in, in that order; the first when the dead heads count as dead."""
    took = waiters[0].got() - since
    after(world, took, due_ms, f"{type(waiters[0]).__name__.lower()} after {what}")
    for one, other in zip(waiters, waiters[1:]):
        check(other.waits(), "out of order")
        one.leave()
        other.got()
    waiters[-1].leave()


def line_up(redis, waiters):
    """Behind whoever stands in the queue, one after the other."""
    for waiter in waiters:
        count = len(queue_of(redis, waiter.name)) + 1
        waiter.wait()
        queued(redis, waiter.name, count)


@kills_a_jvm
def a_killed_jvm_at_the_head_of_the_queue_is_passed(world):
    """By a fair waiter and by a plain one of latchd's, and by another JVM's."""
    names = {first: f"headless-{first}" for first in ("fair", "plain")}
    with world.redis.connect() as redis:
        holders = [Ours(world.quick.connect(), "fair", name) for name in names.values()]
        for holder in holders:
            holder.take()
            line_up(redis, [Theirs(world.doomed, holder.name, "fair", holder.name, "try",
                                   LIFE_MS, -1)])
        world.doom.kill()
        lines = [[Ours(world.second.connect(), first, name),
                  Theirs(world.jvm, name, "fair", name),
                  Ours(world.latchd.connect(), "fair", name)]
                 for first, name in names.items()]
        for line in lines:
            line_up(redis, line)
        began = time.monotonic_ns()
        dues_ms = [deadline_ms(redis, h.name, queue_of(redis, h.name)[0]) for h in holders]
        for holder in holders:
            holder.leave()
        for line, due_ms in zip(lines, dues_ms):
            check(due_ms < world.watchdog_ms + LIFE_MS, f"{due_ms} ms for a dead head")
            serve(world, line, due_ms, began, "a dead head of Redisson's")


def a_killed_latchd_at_the_head_of_the_queue_is_passed(world):
    """By a fair waiter of Redisson's, and by one of another latchd's."""
    name = "beheaded"
    with world.redis.connect() as redis, world.start_latchd(
            "beheaded", "--fair-wait-timeout", f"{PATIENCE_MS}ms") as doomed:
        holder = Theirs(world.short, name, "fair", name)
        holder.take()
        line_up(redis, [Ours(doomed.connect(), "fair", name) for _ in range(3)])
        doomed.kill()
        line = [Theirs(world.jvm, name, "fair", name),
                Ours(world.latchd.connect(), "fair", name)]
        line_up(redis, line)
        began = time.monotonic_ns()
        due_ms = deadline_ms(redis, name, queue_of(redis, name)[2])
        check(due_ms < world.watchdog_ms + PATIENCE_MS, f"{due_ms} ms for dead waiters")
        holder.leave()
        serve(world, line, due_ms, began, "dead heads of latchd's")


WAITING = [
    a_killed_jvm_blocks_latchd_for_its_ttl_only,
    a_killed_latchd_blocks_redisson_for_its_ttl_only,
    dead_readers_go_with_their_leases_W6,
    a_killed_jvm_at_the_head_of_the_queue_is_passed,
    a_killed_latchd_at_the_head_of_the_queue_is_passed,
]
