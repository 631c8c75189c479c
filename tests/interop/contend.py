"""Many from both sides take one name in turn: nobody meets anybody, everybody gets on.

Who is inside changes a value in Redis by plain GET and SET, `me|count` while inside and
`free-me|count` after. What two at a time would do to it is found by the next look.
"""
import random
import threading
import time
import uuid

from peers import Call

LEASE_MS = 30_000
WAIT_MS = 60_000
LONGEST_S = 10  # far below leases and rechecks: a wake-up that was lost shows


class Tokens:
    """The tokens of a name only grow; whoever holds the lock says his."""

    def __init__(self):
        self.last = 0

    def next(self, token):
        if token is None:
            raise AssertionError(f"not got in {WAIT_MS} ms")
        if token <= self.last:
            raise AssertionError(f"token {token} after {self.last}")
        self.last = token


class Contender:
    """A connection to latchd that enters until the count is reached."""

    def __init__(self, latchd, redis, me, goal):
        self.latchd, self.redis, self.me, self.goal = latchd, redis, me, goal
        self.entries = self.crossings = 0
        self.longest_s = 0.0

    def run(self):
        with self.latchd.connect(2 * WAIT_MS / 1000) as latchd, \
             self.redis.connect() as redis:
            turn = 0
            while self.enter(latchd, redis, turn % 4):
                turn += 1
                if self.goal.pause_us:
                    time.sleep(random.uniform(0, 2 * self.goal.pause_us) / 1e6)

    def enter(self, latchd, redis, way):
        """The ways to take a lock, in turn; false once there is no more to do."""
        name, request = self.goal.name, str(uuid.uuid4())
        take, leave = [
            ([], []),
            (["LEASE", LEASE_MS], []),
            (["ID", request], ["ID", request]),
            (["OWNER", self.me], ["OWNER", self.me]),
        ][way]
        began = time.monotonic()
        token = latchd.ask("LOCK", name, "WAIT", WAIT_MS, *take)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        self.goal.tokens.next(token)
        if way == 3 and latchd.ask("LOCK", name, *take) != token:
            raise AssertionError("another token for the same hold")
        more = self.change(redis)
        if way == 3 and latchd.ask("UNLOCK", name, *leave) != 1:
            raise AssertionError("one entry was to be left")
        if latchd.ask("UNLOCK", name, *(leave or ["TOKEN", token])) != 0:
            raise AssertionError("not released")
        return more

    def change(self, redis):
        before = redis.ask("GET", self.goal.value)
        who, count = before.split("|")
        if not who.startswith("free-"):
            raise AssertionError(f"{self.me} came in and found {before}")
        if int(count) >= self.goal.target:
            return False
        mine = f"{self.me}|{int(count) + 1}"
        redis.ask("SET", self.goal.value, mine)
        after = redis.ask("GET", self.goal.value)
        if after != mine:
            raise AssertionError(f"{self.me} left {mine} and found {after}")
        redis.ask("SET", self.goal.value, f"free-{mine}")
        self.entries += 1
        self.crossings += who[5] != self.me[0]
        return True


class Goal:
    """A name, the value it guards, how far to count, how long to be elsewhere between."""

    def __init__(self, name, target, pause_us):
        self.name, self.value, self.target = name, f"value:{name}", target
        self.pause_us = pause_us
        self.tokens = Tokens()


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
    """Each a list of (entries, longest wait in us, crossings); the share of the lesser."""
    there, here = (sum(c[0] for c in side) for side in (theirs, ours))
    longest_s = max(c[1] for c in theirs + ours) / 1e6
    world.say(f"{goal.target} entries in {took_s:.1f} s, {there} of Redisson's, {here} of "
              f"latchd's, {sum(c[2] for c in theirs + ours)} times from one side to the "
              f"other, longest wait {longest_s:.2f} s")
    assert there + here == goal.target, f"{there} + {here}"
    return min(there, here) / goal.target, longest_s


def contend(world, goal, kinds, latchds, share):
    """`kinds`: one Redisson thread for each; `latchds`: one connection for each. Neither
    side may get less than `share` of the entries, if one is given."""
    with world.redis.connect() as redis:
        redis.ask("SET", goal.value, "free-nobody|0")
        ours = [Contender(d, world.redis, f"c{i}", goal) for i, d in enumerate(latchds)]
        theirs = [(f"j{i}", "contend", k, goal.name, goal.value, f"j{i}", goal.target,
                   goal.pause_us) for i, k in enumerate(kinds)]
        began = time.monotonic()
        calls = [Call(lambda words=w: world.jvm.ask(*words, within_s=world.contend_s))
                 for w in theirs]
        calls += [Call(c.run) for c in ours]
        watch(calls, world.contend_s)
        took_s = time.monotonic() - began
        final = redis.ask("GET", goal.value)
        assert final.endswith(f"|{goal.target}"), f"{final}, not {goal.target}"
        assert redis.ask("EXISTS", goal.name) == 0, f"{goal.name} is left behind"
    lesser, longest_s = report(
        world, goal, took_s,
        [tuple(map(int, c.value.split())) for c in calls[:len(theirs)]],
        [(c.entries, c.longest_s * 1e6, c.crossings) for c in ours])
    if share is not None:
        assert lesser >= share, f"one side starves: {lesser:.4f} of the entries"
        assert longest_s < LONGEST_S, "a wake-up was lost"
