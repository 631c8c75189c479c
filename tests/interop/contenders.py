"""latchd's side of a contention: connections that enter until a value has counted far
enough. Names, Guarded and Contender of java/ are the other side; both do the same.
"""
import random
import time
import uuid

LEASE_MS = 30_000
WAIT_MS = 60_000


class Tokens:
    """The tokens of a name only grow; whoever holds the lock alone says his."""

    def __init__(self):
        self.last = 0

    def next(self, token):
        if token is None:
            raise AssertionError(f"not got in {WAIT_MS} ms")
        if token <= self.last:
            raise AssertionError(f"token {token} after {self.last}")
        self.last = token


class Goal:
    """Names, the value they guard, how far to count, how long to be elsewhere between.

    `words`: kinds for latchd, taken in turn. Of several names each side gets its own order.
    """

    def __init__(self, name, target, pause_us, words=((),), theirs=None):
        self.name, self.value, self.target = name, f"value:{name}", target
        self.pause_us, self.words = pause_us, words
        self.theirs = theirs or name
        self.tokens = Tokens()


class Guarded:
    """What the locks guard. Nothing about a change is atomic: two at a time meet in it."""

    def __init__(self, redis, goal, me):
        self.redis, self.me, self.target = redis, me, goal.target
        self.value, self.readers = goal.value, f"{goal.value}:readers"
        self.crossed = False

    def quiet(self):
        now = self.redis.ask("GET", self.value)
        self.expect("free-", now[:5])
        return now

    def expect(self, what, found):
        if found != what:
            raise AssertionError(f"{self.me} expected {what} and found {found}")

    def change(self):
        """One count on, alone; false when the target is reached."""
        before = self.quiet()
        count = int(before.split("|")[1])
        if count >= self.target:
            return False
        mine = f"{self.me}|{count + 1}"
        self.redis.ask("SET", self.value, mine)
        self.expect(mine, self.redis.ask("GET", self.value))
        self.redis.ask("SET", self.value, f"free-{mine}")
        self.crossed = before[5] != self.me[0]
        return True

    def change_unread(self):
        """As `change`, and nobody reads."""
        self.expect("0", self.redis.ask("GET", self.readers) or "0")
        more = self.change()
        self.expect("0", self.redis.ask("GET", self.readers) or "0")
        return more

    def look(self):
        """Nobody changes it; false when the target is reached."""
        self.redis.ask("INCR", self.readers)
        before = self.quiet()
        self.expect(before, self.redis.ask("GET", self.value))
        self.redis.ask("DECR", self.readers)
        return int(before.split("|")[1]) < self.target


class Contender:
    """A connection that takes a lock alone, in each way that there is in turn."""

    def __init__(self, latchd, redis, me, goal):
        self.daemon, self.backing, self.me, self.goal = latchd, redis, me, goal
        self.changes = self.crossings = self.looks = 0
        self.longest_s = 0.0
        self.latchd = self.guarded = None

    def run(self):
        with self.daemon.connect(2 * WAIT_MS / 1000) as self.latchd, \
             self.backing.connect() as redis:
            self.guarded = Guarded(redis, self.goal, self.me)
            turn = 0
            while self.enter(turn):
                turn += 1
                if self.goal.pause_us:
                    time.sleep(random.uniform(0, 2 * self.goal.pause_us) / 1e6)

    def take(self, *words):
        began = time.monotonic()
        got = self.latchd.ask(*words, "WAIT", WAIT_MS)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        if got is None:
            raise AssertionError(f"not got in {WAIT_MS} ms")
        return got

    def leave(self, left, name, *words):
        found = self.latchd.ask("UNLOCK", name, *words)
        if found != left:
            raise AssertionError(f"{found} entries left, not {left}")

    def counted(self, changed):
        if changed:
            self.changes += 1
            self.crossings += self.guarded.crossed
        return changed

    def ways(self, turn):
        """Words for taking it and for leaving it; none for leaving it: by the token."""
        request = str(uuid.uuid4())
        return [
            ([], []),
            (["LEASE", LEASE_MS], []),
            (["ID", request], ["ID", request]),
            (["OWNER", self.me], ["OWNER", self.me]),
        ][turn % 4]

    def enter(self, turn):
        name, take, leave = self.goal.name, *self.ways(turn)
        kind = self.goal.words[turn // 4 % len(self.goal.words)]
        token = self.take("LOCK", name, *kind, *take)
        self.goal.tokens.next(token)
        again = "OWNER" in take
        if again and self.take("LOCK", name, *kind, *take) != token:
            raise AssertionError("another token for the same hold")
        more = self.counted(self.guarded.change())
        if again:
            self.leave(1, name, *leave)
        self.leave(0, name, *(leave or ["TOKEN", token]))
        return more


class ReaderWriter(Contender):
    """Reads more often than it writes, and now and then reads on after writing."""

    def enter(self, turn):
        if turn % 6 < 4:
            return self.read(turn)
        return self.write(*self.ways(turn)) if turn % 6 == 4 else self.downgrade()

    def read(self, turn):
        name, take, leave = self.goal.name, *self.ways(turn)
        token = self.take("LOCK", name, "READ", *take)
        again = turn % 4 == 3
        if again and self.take("LOCK", name, "READ", *take) != token:
            raise AssertionError("another token for the same hold")
        more = self.guarded.look()
        self.looks += 1
        if again:
            self.leave(1, name, *leave)
        self.leave(0, name, *(leave or ["TOKEN", token]))
        return more

    def write(self, take, leave):
        name = self.goal.name
        token = self.take("LOCK", name, "WRITE", *take)
        self.goal.tokens.next(token)
        more = self.counted(self.guarded.change_unread())
        self.leave(0, name, *(leave or ["TOKEN", token]))
        return more

    def downgrade(self):
        name, owner = self.goal.name, ["OWNER", self.me]
        self.goal.tokens.next(self.take("LOCK", name, "WRITE", *owner))
        self.counted(self.guarded.change_unread())
        self.take("LOCK", name, "READ", *owner)
        self.leave(0, name, "WRITE", *owner)
        more = self.guarded.look()
        self.looks += 1
        self.leave(0, name, *owner)
        return more


class Collector(Contender):
    """Takes several names at once, all of which guard the value."""

    def enter(self, turn):
        names, take, leave = self.goal.name.split(","), *self.ways(turn)
        random.shuffle(names)
        words = ["MLOCK", len(names), *names, *take]
        tokens = self.take(*words)
        self.goal.tokens.next(dict(zip(names, tokens))[min(names)])
        again = turn % 4 == 3
        if again and self.take(*words) != tokens:
            raise AssertionError("other tokens for the same holds")
        more = self.counted(self.guarded.change())
        for name, token in zip(names, tokens):
            if again:
                self.leave(1, name, *leave)
            self.leave(0, name, *(leave or ["TOKEN", token]))
        return more
