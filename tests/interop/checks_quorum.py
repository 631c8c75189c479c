"""Three masters that know nothing of each other: RedissonRedLock, and RedissonMultiLock over
all of them, beside a latchd for which a majority is enough.
"""
import contextlib
import time

from actors import Ours, Theirs
from contend import contend
from contenders import Goal
from doom import kills_a_jvm
from expect import after, check, sleeper, told
from peers import until


def red_locks_take_turns(world):
    """Whoever has two of three has it."""
    contend(world, Goal("red", world.count(1_000, 110_000), pause_us=3000), ["red"] * 4,
            [world.latchd, world.second] * 2, share=0.01)


def locks_of_all_masters_take_turns(world):
    """A RedissonMultiLock wants all three."""
    contend(world, Goal("all", world.count(300, 20_000), pause_us=3000), ["all"] * 4,
            [world.latchd, world.second] * 2, share=0.01)


def an_unlock_of_a_red_lock_wakes_latchd(world):
    waits = []
    with world.latchd.connect() as latchd:
        for i in range(world.rounds // 2):
            holder = Theirs(world.jvm, "holder", ["red", "all"][i % 2], f"red-theirs{i}")
            waits.append(handed_over(world, holder, Ours(latchd, "plain", holder.name)))
    told(world, "RedissonRedLock.unlock() to a LOCK", waits)


def an_unlock_of_latchd_wakes_a_red_lock(world):
    waits = []
    with world.latchd.connect() as latchd:
        for i in range(world.rounds // 2):
            holder = Ours(latchd, "plain", f"red-ours{i}", *[[], ["LEASE", 30_000]][i % 2])
            waiter = Theirs(world.jvm, "waiter", ["red", "all"][i // 2 % 2], holder.name,
                            *[("lock", 0), ("try", 20_000, -1)][i % 2])
            waits.append(handed_over(world, holder, waiter))
    told(world, "UNLOCK of latchd to a RedissonRedLock", waits)


def handed_over(world, holder, waiter, masters=None):
    """How long that took, in ns. `masters`: those that can be asked."""
    with contextlib.ExitStack() as stack:
        masters = [stack.enter_context(m.wire()) for m in masters or world.redis.nodes]
        holder.take()
        held(masters, holder.name)
        waiter.wait()
        sleeper(masters, holder.name)
        check(waiter.waits(), f"two have {holder.name}")
        began = holder.leave()
        took = waiter.got() - began
        waiter.leave()
        free(masters, holder.name)
    return took


def held(masters, name):
    """Everywhere: a majority is enough for a grant, and where the first master is free a
    waiting RedLock is in the way of who wants it next.
    """
    until(lambda: all(m.ask("EXISTS", name) for m in masters), f"{name} is held everywhere")


def free(masters, name):
    """Everywhere: nothing is left that would keep anybody out."""
    until(lambda: not any(m.ask("EXISTS", name) for m in masters), f"{name} is free")


def one_master_less(world):
    """The last stands still while they take turns; then the first, at which a RedLock begins,
    and waits for its timeout each time."""
    first, second, last = world.redis.nodes
    with stopped(last):
        contend(world, Goal("less", world.count(8, 1_000), pause_us=3000), ["red"] * 2,
                [world.latchd, world.second], share=None)
    waits = []
    with world.latchd.connect() as latchd, stopped(first):
        for i in range(world.count(2, 20)):
            ours = Ours(latchd, "plain", f"fewer{i}")
            theirs = Theirs(world.jvm, "fewer", "red", ours.name)
            waits.append(handed_over(world, ours, theirs, [second, last]))
            waits.append(handed_over(world, theirs, ours, [second, last]))
    told(world, "from one side to the other, with the first master stopped", waits)


@contextlib.contextmanager
def stopped(master):
    master.pause()
    try:
        yield
    finally:
        master.resume()
        until(master.answers, "it answers again")


@kills_a_jvm
def a_killed_red_lock_blocks_latchd_for_its_lease_only(world):
    """Of each sort one; of the watchdog's lease or its own."""
    masters = [node.wire() for node in world.redis.nodes]
    pairs = []
    for kind, how in (("red", ("lock", 0)), ("all", ("lock", 0)),
                      ("red", ("try", 10_000, world.watchdog_ms))):
        name = f"late-{kind}-{how[0]}"
        pairs.append((Theirs(world.doomed, name, kind, name, *how),
                      Ours(world.latchd.connect(), "plain", name)))
    killed(world, masters, pairs, world.doom.kill)


def a_killed_latchd_blocks_red_locks_for_its_lease_only(world):
    with world.start_latchd("mourned") as doomed:
        masters = [node.wire() for node in world.redis.nodes]
        pairs = [(Ours(doomed.connect(), "plain", f"mourned-{kind}"),
                  Theirs(world.jvm, f"mourner-{kind}", kind, f"mourned-{kind}", "try", 20_000,
                         -1)) for kind in ("red", "all")]
        killed(world, masters, pairs, doomed.kill)


def killed(world, masters, pairs, kill):
    """`pairs`: of a holder that dies and a waiter of the other side; all at once."""
    for holder, waiter in pairs:
        holder.take()
        held(masters, holder.name)
        waiter.wait()
        sleeper(masters, holder.name)
    kill()
    died = time.monotonic_ns()
    ttls = [max(m.ask("PTTL", holder.name) for m in masters) for holder, _ in pairs]
    for (_, waiter), ttl in zip(pairs, ttls):
        check(0 < ttl <= world.watchdog_ms, f"a TTL of {ttl} ms")
        after(world, waiter.got() - died, ttl, f"{waiter.name}")
        waiter.leave()


CHECKS = [
    red_locks_take_turns,
    locks_of_all_masters_take_turns,
    an_unlock_of_a_red_lock_wakes_latchd,
    an_unlock_of_latchd_wakes_a_red_lock,
    one_master_less,
]

WAITING = [
    a_killed_red_lock_blocks_latchd_for_its_lease_only,
    a_killed_latchd_blocks_red_locks_for_its_lease_only,
]
