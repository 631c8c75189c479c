"""Who takes part in a contention in which processes die: clients of a latchd that is killed again
and again, which come back through a second one; those who kill; and who looks at all of it.

Their leases are LEASE_S, so that is the longest that a dead one may keep the others out.
"""
import itertools
import random
import time

import library
from contenders import WAIT_MS, Contender, Guarded
from expect import SLACK_MS, check
from peers import Jvm, Redisson, RespError, until

LEASE_S = 2
LEASE_MS = LEASE_S * 1000
LIVES_S = (0.2, 0.6)  # of a latchd
LOOK_S = 0.002
JVM_LOOK_S = 0.02
LONGEST_WAIT_S = 10  # several that die in a row are in one wait


class Pair:
    """A latchd that dies, and another one: for a Contender they are one."""

    def __init__(self, mortal, spare):
        self.daemons = mortal, spare
        self.socket = mortal.socket

    def connect(self, deadline_s):
        return ReturningWire(self.daemons, deadline_s)


class ReturningWire:
    """A request whose connection breaks is sent again, through the other one."""

    def __init__(self, daemons, deadline_s):
        self.daemons, self.deadline_s = daemons, deadline_s
        self.at, self.wire, self.returns = 0, None, 0

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.leave(0)

    def leave(self, to):
        if self.wire is not None:
            self.wire.close()
        self.at, self.wire = to, None

    def go_home(self):
        """To the one that dies, if it is there."""
        if self.at != 0:
            self.leave(0)

    def ask(self, *words):
        for tries in itertools.count():
            try:
                if self.wire is None:
                    self.wire = self.daemons[self.at].connect(self.deadline_s)
                return self.wire.ask(*words)
            except OSError:
                self.returns += self.wire is not None
                self.leave(1 - self.at)
            except RespError as error:
                # The answer that it is released may have been lost on its way.
                if tries == 0 or words[0] != "UNLOCK" or not str(error).startswith("NOTHELD"):
                    raise
                return 0


class Returning(Contender):
    """LOCK with an ID, in each way that a request can be sent again."""

    def ways(self, turn):
        request = super().ways(2)[0]
        return (["LEASE", LEASE_MS, *request], request) if turn % 4 else (request, request)

    def enter(self, turn):
        self.latchd.go_home()
        return super().enter(2 * turn)  # the odd ones enter twice


class ReturningLibrary(Contender):
    """redis-py's Lock. What it took in the moment of the kill, and does not know of, ends with its
    lease."""

    clients = ()

    def run(self):
        self.clients = [library.redis.Redis(unix_socket_path=daemon.socket)
                        for daemon in self.daemon.daemons]
        super().run()

    def through(self, work):
        """Through the first that answers, and whether another one was asked before."""
        for tries, client in enumerate(itertools.cycle(self.clients)):
            try:
                return work(client), tries > 0
            except library.redis.ConnectionError:
                continue

    def lock(self, client, value=None):
        lock = client.lock(self.goal.name, timeout=LEASE_S, thread_local=False)
        lock.local.token = value
        return lock

    def acquire(self, client):
        lock = self.lock(client)
        check(lock.acquire(blocking_timeout=WAIT_MS / 1000), f"not got in {WAIT_MS} ms")
        return lock.local.token

    def release(self, value):
        def work(client):
            try:
                self.lock(client, value).release()
                return True
            except library.redis.exceptions.LockNotOwnedError:
                return False
        released, again = self.through(work)
        check(released or again, "it was not held any more")

    def enter(self, turn):
        began = time.monotonic()
        value, _ = self.through(self.acquire)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        token, _ = self.through(lambda client: client.execute_command(
            "RENEW", self.goal.name, "VALUE", value, "LEASE", LEASE_MS))
        self.goal.tokens.next(token)
        more = self.counted(self.guarded.change())
        self.release(value)
        return more


class Watcher(Contender):
    """Of those who take no part; works until the value has counted far enough."""

    def count(self, data):
        return int(data.ask("GET", f"value:{self.goal.name}").split("|")[1])

    def is_over(self, data):
        return self.count(data) >= self.goal.target


class KillsLatchd(Watcher):
    """And starts it again; in the end it is dead."""

    kills = 0

    def run(self):
        mortal = self.daemon.daemons[0]
        with self.backing.connect() as data:
            while not self.is_over(data):
                time.sleep(random.uniform(*LIVES_S))
                mortal.kill()
                self.kills += 1
                if not self.is_over(data):
                    mortal.launch()
                    until(mortal.answers, "latchd answers")
        mortal.kill()  # or the end of this thread would, as it started the process


class KillsJvms(library.Killed, Watcher):
    """Each has one thread that holds the name and another one that waits for it; nobody else comes
    in before the lease is over. The deaths are spread over all entries."""

    jvms = ()

    def run(self):
        with self.backing.connect() as data:
            guarded = Guarded(data, self.goal, self.me)
            for i, jvm in enumerate(self.jvms, 1):
                due = i * self.goal.target // (len(self.jvms) + 1)
                until(lambda due=due: self.count(data) >= due, "its turn to die", WAIT_MS / 1000,
                      JVM_LOOK_S)
                jvm.ask("holds", "lock", "plain", self.goal.name, 0)
                jvm.start("waits", "lock", "plain", self.goal.name, 0)
                fields = data.ask("HKEYS", self.goal.name)
                before = data.ask("GET", guarded.value)
                jvm.jvm.kill()
                check(len(fields) == 1, f"{fields} hold it")
                self.watch(data, guarded, fields[0], before)

    def holds(self, data, value):
        return value in data.ask("HKEYS", self.goal.name)


class Looks(Watcher):
    """Nobody has the name for longer than a lease and does nothing with it."""

    longest_held_s = 0.0

    def run(self):
        with self.backing.connect() as data:
            before, since = None, time.monotonic()
            while not self.is_over(data):
                now = data.ask("HKEYS", self.goal.name), data.ask("GET", f"value:{self.goal.name}")
                if now != before or not now[0]:
                    before, since = now, time.monotonic()
                self.longest_held_s = max(self.longest_held_s, time.monotonic() - since)
                time.sleep(LOOK_S)
        check(self.longest_held_s < LEASE_S + SLACK_MS / 1000,
              f"one that was dead had it for {self.longest_held_s:.2f} s")


def start_jvms(world, keep, count):
    """Clients of Redisson's, in a JVM each."""
    jvms = [keep(Jvm(world.stage.class_path, world.stage.folder, f"mortal-jvm-{i}"))
            for i in range(count)]
    return [Redisson(jvm, "mortal", (world.redis.topology, world.redis.ports), LEASE_MS, 1000)
            for jvm in jvms]
