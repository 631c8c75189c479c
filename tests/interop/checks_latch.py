"""Latches: RCountDownLatch beside LATCH. One function a check."""
from expect import check, refused
from peers import Call, until

CHANNEL = "redisson_countdownlatch__channel__{%s}"
WAITERS = 8


def listened_to(redis, name, count):
    """Returns when so many connections hear of the latch: each JVM, and each latchd, has one."""
    until(lambda: redis.ask("PUBSUB", "NUMSUB", CHANNEL % name)[1] == count, "nobody listens")


def holds(condition, what="a latch is not as it was made"):
    check(condition, what)


class Theirs:
    def __init__(self, world, name, thread="latch"):
        self.jvm, self.name, self.thread = world.jvm, name, thread

    def ask(self, verb, *words):
        return self.jvm.ask(self.thread, verb, "latch", self.name, *words)

    def start(self, verb, *words):
        return self.jvm.start(self.thread, verb, "latch", self.name, *words)


def each_counts_what_the_other_has_set(world):
    with world.latchd.connect() as latchd, world.second.connect() as other:
        for setter in "latchd", "redisson":
            name = f"counted-down-{setter}"
            theirs = Theirs(world, name)
            if setter == "latchd":
                holds(latchd.ask("LATCH", "SET", name, 3) == 1)
                holds(theirs.ask("set", 5) == "false", "it was set twice")
            else:
                holds(theirs.ask("set", 3) == "true")
                holds(latchd.ask("LATCH", "SET", name, 5) == 0, "it was set twice")
            holds(theirs.ask("left") == "3")
            holds(other.ask("LATCH", "COUNT", name, "ID", "part-one-of-three") == 2)
            holds(latchd.ask("LATCH", "COUNT", name, "ID", "part-one-of-three") == 2)
            theirs.ask("count")
            holds(latchd.ask("LATCH", "INFO", name)[:4] == ["left", 1, "state", "set"])
            holds(theirs.ask("left") == "1")
            holds(theirs.ask("try", 50) == "false")
            holds(latchd.ask("LATCH", "AWAIT", name, "WAIT", 50) is None)
            holds(other.ask("LATCH", "COUNT", name) == 0)
            holds(theirs.ask("left") == "0")
            holds(theirs.ask("try", 0) == "true")
            holds(latchd.ask("LATCH", "AWAIT", name) == 1)


def all_go_on_when_the_last_one_has_counted(world):
    """Whoever sets it, and whoever counts the last one."""
    with world.redis.connect() as redis, world.latchd.connect() as counter:
        for i in range(8):
            name = f"opened{i}"
            theirs, sets, counts = Theirs(world, name), i & 1, i & 2
            if sets:
                holds(counter.ask("LATCH", "SET", name, 2) == 1)
            else:
                holds(theirs.ask("set", 2) == "true")
            jvm_waits = [Theirs(world, name, f"latch-waiter{k}").start("await") for k in range(WAITERS)]
            conns = [daemon.connect() for daemon in (world.latchd, world.second) for _ in range(WAITERS // 2)]
            waits = [Call(conn.ask, "LATCH", "AWAIT", name, "WAIT", 50_000) for conn in conns]
            listened_to(redis, name, 3)
            for daemon in world.latchd, world.second:
                with daemon.connect() as asker:
                    until(lambda a=asker: a.ask("LATCH", "INFO", name)[5] == WAITERS // 2, "not all wait")
            theirs.ask("count")
            if counts:
                holds(counter.ask("LATCH", "COUNT", name) == 0)
            else:
                theirs.ask("count")
            for line in jvm_waits:
                holds(world.jvm.finish(line).ok, "a thread of Redisson waits on")
            for wait, conn in zip(waits, conns):
                holds(wait.done().value == 1, "a client of latchd waits on")
                conn.close()
            holds(redis.ask("EXISTS", name) == 0)


def a_latch_that_one_side_deletes_is_gone_for_the_other(world):
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        theirs = Theirs(world, "deleted-by-redisson")
        holds(latchd.ask("LATCH", "SET", theirs.name, 2) == 1)
        with world.second.connect() as waiter:
            wait = Call(waiter.ask, "LATCH", "AWAIT", theirs.name)
            listened_to(redis, theirs.name, 1)
            holds(theirs.ask("delete") == "true")
            holds(refused(wait.done).startswith("ERR gone"), "a client of latchd was not told")
        theirs = Theirs(world, "deleted-by-latchd")
        holds(theirs.ask("set", 2) == "true")
        line = Theirs(world, theirs.name, "latch-waiter").start("await")
        listened_to(redis, theirs.name, 1)
        holds(latchd.ask("LATCH", "DELETE", theirs.name) == 1)
        holds(world.jvm.finish(line).ok, "a thread of Redisson waits for what is gone")
        holds(theirs.ask("left") == "0")


CHECKS = []
WAITING = [each_counts_what_the_other_has_set, all_go_on_when_the_last_one_has_counted,
           a_latch_that_one_side_deletes_is_gone_for_the_other]
