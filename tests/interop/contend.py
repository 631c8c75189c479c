"""Many from both sides take one name in turn: nobody meets anybody, everybody gets on."""
import threading
import time

from contenders import Contender
from evidence import IDLE_S, Scene
from peers import Call

LONGEST_S = 20  # below leases and rechecks: a wake-up that was lost shows


def watch(calls, within_s):
    """Ends with the first that failed, not when the others gave up waiting for it."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        over = [c for c in calls if c.ended is not None]
        for call in over:
            call.done()
        if len(over) == len(calls):
            return
        time.sleep(0.01)
    raise TimeoutError(f"not through in {within_s} s, {threading.active_count()} threads")


def report(world, goal, took_s, theirs, ours):
    """Each a list of (changes, longest wait in us, crossings, looks); the share of the
    lesser side and the longest wait in seconds."""
    sides = [sum(c[0] + c[3] for c in side) for side in (theirs, ours)]
    longest_s = max(c[1] for c in theirs + ours) / 1e6
    world.say(f"{sum(sides)} entries in {took_s:.1f} s, {sides[0]} of Redisson's, "
              f"{sides[1]} of latchd's, {sum(c[2] for c in theirs + ours)} times from one "
              f"side to the other, longest wait {longest_s:.2f} s")
    changes = sum(c[0] for c in theirs + ours)
    assert changes == goal.target, f"{changes} changes"
    return min(sides) / sum(sides), longest_s


def nothing_left(redis, goal):
    """No lock, no queue, no holds of readers."""
    for name in goal.name.split(","):
        for key in (name, "redisson_lock_queue:{%s}" % name,
                    "redisson_lock_timeout:{%s}" % name):
            assert redis.ask("EXISTS", key) == 0, f"{key} is left behind"
        holds = redis.ask("KEYS", "{%s}:*:rwlock_timeout:*" % name)
        assert not holds, f"{holds} are left behind"


def contend(world, goal, kinds, latchds, share, ours=Contender):
    """`kinds`: one Redisson thread for each; `latchds`: one connection for each, of class
    `ours`. Neither side may get less than `share` of the entries, if one is given."""
    with world.redis.connect() as redis:
        redis.ask("SET", goal.value, "free-nobody|0")
        here = [ours(d, world.redis, f"c{i}", goal) for i, d in enumerate(latchds)]
        there = [(f"j{i}", "contend", k, goal.theirs, goal.value, f"j{i}", goal.target,
                  goal.pause_us) for i, k in enumerate(kinds)]
        with Scene(world, goal, latchds, here) as scene:
            began = time.monotonic()
            calls = [Call(lambda words=w: world.jvm.ask(*words, within_s=world.contend_s))
                     for w in there]
            calls += [Call(c.run) for c in here]
            watch(calls, world.contend_s)
            took_s = time.monotonic() - began
        final = redis.ask("GET", goal.value)
        assert final.endswith(f"|{goal.target}"), f"{final}, not {goal.target}"
        nothing_left(redis, goal)
    lesser, longest_s = report(
        world, goal, took_s,
        [tuple(map(int, c.value.split())) for c in calls[:len(there)]],
        [(c.changes, c.longest_s * 1e6, c.crossings, c.looks) for c in here])
    assert scene.longest_s < IDLE_S, f"free for {scene.longest_s:.1f} s, and nobody woke"
    if share is not None:
        assert lesser >= share * world.redis.share, f"one side starves: {lesser:.4f}"
        assert longest_s < LONGEST_S, "a wake-up was lost"
