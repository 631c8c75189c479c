"""Many from both sides have permits of one semaphore at a time: a counter beside it, which knows
nothing of the semaphore, says how many are inside. Crowd of java/ is the other side.
"""
import random
import time
import uuid

from contend import LONGEST_S, watch
from contenders import LEASE_MS, WAIT_MS
from expect import check
from peers import Call

ENDS = "{%s}:timeout"
MOST = 3


class Crowd:
    """A connection that takes 1 to 3 permits again and again, in each way that there is."""

    def __init__(self, latchd, redis, name, limit):
        self.daemon, self.backing, self.name, self.limit = latchd, redis, name, limit
        self.entries = self.permits = self.highest = 0
        self.longest_s = 0.0

    def run(self, took_s, pause_us):
        end = time.monotonic() + took_s
        with self.daemon.connect(2 * WAIT_MS / 1000) as latchd, \
             self.backing.connect() as redis:
            while time.monotonic() < end:
                self.enter(latchd, redis, pause_us)
                pause(pause_us)

    def enter(self, latchd, redis, pause_us):
        count = random.randint(1, MOST)
        take, leave = self.ways()
        began = time.monotonic()
        token = latchd.ask("LOCK", self.name, "PERMITS", count, "WAIT", WAIT_MS, *take)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        check(token is not None, f"not got in {WAIT_MS} ms")
        now = redis.ask("INCRBY", f"inside:{self.name}", count)
        self.highest = max(self.highest, now)
        check(now <= self.limit, f"{now} are inside")
        pause(pause_us)
        redis.ask("DECRBY", f"inside:{self.name}", count)
        left = latchd.ask("UNLOCK", self.name, *(leave or ["TOKEN", token]))
        check(left == 0, f"{left} left")
        self.entries += 1
        self.permits += count

    @staticmethod
    def ways():
        request = ["ID", uuid.uuid4()]
        return random.choice([([], []), (["LEASE", LEASE_MS], []), (request, request)])


def pause(pause_us):
    """Up to twice that."""
    time.sleep(random.uniform(0, 2 * pause_us) / 1e6)


def state_of(redis, name):
    """What is free, and what is out."""
    return int(redis.ask("GET", name)), redis.ask("ZCARD", ENDS % name)


def crowd(world, name, limit, latchds, threads, took_s, pause_us=2000):
    """`latchds`: one connection for each; `threads`: how many of Redisson's. The share that the
    lesser side has of the permits."""
    inside = f"inside:{name}"
    with world.redis.connect() as redis:
        made = world.jvm.ask("maker", "make", "permits", name, limit)
        check(made == "true", "it was there before")
        here = [Crowd(d, world.redis, name, limit) for d in latchds]
        calls = [Call(world.jvm.ask, f"s{i}", "crowd", "permits", name, inside, limit,
                      int(took_s * 1000), pause_us) for i in range(threads)]
        calls += [Call(c.run, took_s, pause_us) for c in here]
        watch(calls, took_s + LONGEST_S)
        check(redis.ask("GET", inside) == "0", "somebody is inside still")
        check(state_of(redis, name) == (limit, 0), f"left behind: {state_of(redis, name)}")
        check(redis.ask("HLEN", "latchd:holds:{%s}" % name) == 0, "a hold is left behind")
    theirs = [tuple(map(int, c.value.split())) for c in calls[:threads]]
    ours = [(c.entries, c.permits, c.highest, c.longest_s * 1e6) for c in here]
    return report(world, limit, theirs, ours)


def report(world, limit, theirs, ours):
    """Each a list of (entries, permits, most inside, longest wait in us)."""
    entries, permits = ([sum(c[i] for c in side) for side in (theirs, ours)] for i in (0, 1))
    highest = max(c[2] for c in theirs + ours)
    longest_s = max(c[3] for c in theirs + ours) / 1e6
    share = min(permits) / sum(permits)
    world.say(f"{sum(entries)} entries, {entries[0]} of Redisson's with {permits[0]} permits, "
              f"{entries[1]} of latchd's with {permits[1]}; at most {highest} of {limit} inside, "
              f"longest wait {longest_s:.2f} s, lesser share {share:.3f}")
    check(highest == limit, f"never more than {highest} inside: that shows nothing")
    check(longest_s < LONGEST_S, "a wake-up was lost")
    return share
