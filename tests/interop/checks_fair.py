"""Fair names: RFairLock beside LOCK FAIR, and beside the plain LOCK on the same name."""
import contextlib
import random
import time

from actors import Ours, Theirs, wake
from contend import contend
from contenders import Goal
from expect import check, deadline_ms, queue_of, queued, told
from peers import Call

FAIR = [("FAIR",)]
PLACES = 12  # of a line
HOUR_MS = 3_600_000


def fair_ones_take_turns(world):
    """Nobody pauses: the queue is never empty, and each side has its share."""
    contend(world, Goal("fairs", world.count(900, 110_000), 0, words=FAIR), ["fair"] * 4,
            [world.latchd, world.second] * 2, share=0.3)


def fair_ones_are_served_beside_plain_ones(world):
    """The plain LOCK of latchd passes nobody who stands in a queue. It asks again soon
    here: an RFairLock that has no queue behind it tells nobody when it is unlocked."""
    with world.latchd_with("asking-fair", ["--recheck", "50ms"]) as asking:
        for words in ([(), ("FAIR",)], [()]):
            contend(world, Goal("mixed", world.count(500, 20_000), 0, words=words),
                    ["fair"] * 2, [asking] * 4, share=0.1)


def a_fair_unlock_of_redisson_wakes_latchd(world):
    """RLock.unlock() too."""
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds):
            holder = Theirs(world.jvm, "holder", ["fair", "plain"][i % 2], f"fair-theirs{i}",
                            "lock", [0, 30_000][i // 2 % 2])
            waits.append(wake(redis, holder, Ours(latchd, "fair", holder.name)))
    told(world, "RFairLock.unlock() to a LOCK FAIR", waits)


def an_unlock_of_latchd_wakes_a_fair_lock(world):
    """Whichever of the two holds fair."""
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds):
            ours, theirs = [("fair", "fair"), ("plain", "fair"), ("fair", "plain")][i % 3]
            how = [("lock", 0), ("try", 20_000, -1)][i // 3 % 2]
            holder = Ours(latchd, ours, f"fair-ours{i}")
            waits.append(wake(redis, holder,
                              Theirs(world.jvm, "waiter", theirs, holder.name, *how)))
    told(world, "UNLOCK of latchd to an RFairLock", waits)


class Line:
    """A queue of both sides, put up one by one; whoever comes in writes himself down."""

    def __init__(self, world, redis, stack, name):
        self.world, self.redis, self.stack, self.name = world, redis, stack, name
        self.list = f"line:{name}"
        self.calls, self.lines = [], []
        self.count = 0

    def join(self, who, me):
        """`who`: a latchd or a JVM. It stands in the queue when this returns."""
        self.count += 1
        if hasattr(who, "connect"):
            ours = Ours(self.stack.enter_context(who.connect()), "fair", self.name)
            redis = self.stack.enter_context(self.world.redis.connect())
            self.calls.append(Call(ours.pass_by, redis, self.list, me))
        else:
            self.lines.append((who, who.start(f"{self.name}-{me}", "pass", "fair", self.name,
                                              self.list, me)))
        queued(self.redis, self.name, self.count)

    def served(self):
        """Who came in, in order, and how long the lock lay idle between two at most."""
        for call in self.calls:
            call.done()
        for jvm, line in self.lines:
            reply = jvm.finish(line)
            check(reply.ok, reply.value)
        rows = [row.split() for row in self.redis.ask("LRANGE", self.list, 0, -1)]
        gaps = [int(b[1]) - int(a[2]) for a, b in zip(rows, rows[1:])]
        check(self.redis.ask("EXISTS", self.name) == 0, "left behind")
        return [row[0] for row in rows], gaps


def they_are_served_in_the_order_of_arrival(world):
    """Over two daemons and two JVMs, at whose head whoever held."""
    gaps = []
    sides = [world.latchd, world.second, world.jvm, world.short]
    with world.redis.connect() as redis:
        for i in range(world.count(6, 200)):
            with contextlib.ExitStack() as stack:
                line = Line(world, redis, stack, f"order{i}")
                holder = [Ours(stack.enter_context(world.latchd.connect()), "fair", line.name),
                          Theirs(world.jvm, "holder", "fair", line.name)][i % 2]
                holder.take()
                joined = [f"p{n}" for n in range(PLACES)]
                for me in joined:
                    line.join(random.choice(sides), me)
                holder.leave()
                served, between = line.served()
                check(served == joined, f"served {served}")
                gaps += between
    told(world, f"lines of {PLACES}, from one to the next", gaps)


def who_leaves_the_queue_holds_nobody_up(world):
    """Closed, cancelled, out of time, at the head and behind; the others keep their order."""
    name = "leavers"
    with world.redis.connect() as redis, contextlib.ExitStack() as stack:
        line = Line(world, redis, stack, name)
        holder = Ours(stack.enter_context(world.latchd.connect()), "fair", name)
        holder.take()
        closing = world.second.connect()
        closing.send("LOCK", name, "FAIR", "WAIT", 20_000)
        queued(redis, name, 1)
        line.count = 1
        line.join(world.jvm, "p0")
        hasty = Call(stack.enter_context(world.latchd.connect()).ask, "LOCK", name, "FAIR",
                     "WAIT", 1500)
        queued(redis, name, 3)
        weary = world.jvm.start("weary", "try", "fair", name, 1500, -1)
        queued(redis, name, 4)
        line.count = 4
        line.join(world.second, "p1")
        cancelled = Call(stack.enter_context(world.second.connect()).ask, "LOCK", name,
                         "FAIR", "WAIT", 20_000, "OWNER", "fickle")
        queued(redis, name, 6)
        line.count = 6
        line.join(world.short, "p2")
        line.join(world.latchd, "p3")
        closing.close()
        check(hasty.done().value is None, "two have it")
        check(world.jvm.finish(weary).value == "false", "two have it")
        check(world.second.connect().ask("CANCEL", name, "OWNER", "fickle") == 1, "no wait")
        check(cancelled.done().value is None, "two have it")
        queued(redis, name, 4)
        holder.leave()
        served, gaps = line.served()
        check(served == ["p0", "p1", "p2", "p3"], f"served {served}")
        told(world, "past those who left", gaps)


def a_head_that_goes_as_the_lock_comes_tells_the_next(world):
    """The message was for it: the next one, of either side, hears of it nevertheless."""
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as a, \
         world.second.connect() as b:
        for i in range(world.rounds // 4):
            name = f"goer{i}"
            holder = [Ours(a, "fair", name), Theirs(world.jvm, "holder", "fair", name)][i % 2]
            holder.take()
            going = world.latchd.connect()
            going.send("LOCK", name, "FAIR", "WAIT", 20_000)
            queued(redis, name, 1)
            waiter = [Theirs(world.jvm, "waiter", "fair", name),
                      Ours(b, "fair", name)][i // 2 % 2]
            waiter.wait()
            queued(redis, name, 2)
            closing = Call(lambda c=going, ms=random.uniform(0, 2): (time.sleep(ms / 1000),
                                                                    c.close()))
            began = holder.leave()
            waits.append(waiter.got() - began)
            closing.done()
            waiter.leave()
    told(world, "past a head that closed at the release", waits)


def an_hour_of_patience_ahead_costs_nobody_his_place_H20(world):
    """Redisson takes an hour from everybody's score when that waiter is granted."""
    name = "patience"
    with world.redis.connect() as redis, contextlib.ExitStack() as stack:
        line = Line(world, redis, stack, name)
        holder = Ours(stack.enter_context(world.latchd.connect()), "fair", name)
        holder.take()
        line.join(world.second, "p0")
        patient = Theirs(world.jvm, "patient", "fair", name, "try", HOUR_MS, -1)
        patient.wait()
        queued(redis, name, 2)
        line.count = 2
        for n, side in enumerate([world.latchd, world.second, world.jvm, world.latchd,
                                  world.jvm, world.second], 1):
            line.join(side, f"p{n}")
        due_ms = deadline_ms(redis, name, queue_of(redis, name)[-1])
        check(due_ms < HOUR_MS + 10 * 300_000, f"the last one's deadline: {due_ms} ms")
        holder.leave()
        patient.got()
        check(len(queue_of(redis, name)) == 6, "somebody was thrown out")
        patient.leave()
        served, gaps = line.served()
        check(served == [f"p{n}" for n in range(7)], f"served {served}")
        told(world, "behind an hour of patience", gaps[1:])


CHECKS = [
    fair_ones_take_turns,
    fair_ones_are_served_beside_plain_ones,
    a_fair_unlock_of_redisson_wakes_latchd,
    an_unlock_of_latchd_wakes_a_fair_lock,
    they_are_served_in_the_order_of_arrival,
    a_head_that_goes_as_the_lock_comes_tells_the_next,
    an_hour_of_patience_ahead_costs_nobody_his_place_H20,
]

WAITING = [
    who_leaves_the_queue_holds_nobody_up,
]
