"""What each lock library has to do at latchd's port. A case gets a Stage, and a name of its own."""
import contextlib
import os
import threading
import time

from agent import HEARS_S, Agent
from children import until
from helpers_stage import Daemon
from locks_list import FREES, LEFT_OVER, ONE_BY_ONE, REFUSED, RENEWS
from resp import Error
from servers import Rack, Redis

LONG_MS, SHORT_MS = 60_000, 1_000
WAIT_MS = 30_000
LATE_S = 2          # after the end of a lease
HOT_S, HOT_CLIENTS, HOT_US = 1, 3, 1000
MASTERS = 3
REDIS_TIMEOUT = "10s"  # the machine is busy, and no library asks again


class LockAgent(Agent):
    """A program of locks/."""

    def __init__(self, folder, command, port):
        self.words = [*command, "127.0.0.1", port]
        super().__init__(folder, self.words)

    def acquire(self, name, lease_ms=LONG_MS, wait_ms=0, wanted="acquired"):
        """The key of its lock."""
        key = self.tell("acquire", name, lease_ms, wait_ms)
        self.expect(key, wanted)
        return key

    def release(self, key, wanted="released"):
        self.tell("release", key=key)
        self.expect(key, wanted)

    def probe(self):
        """What it says when it takes a lock that is free, which it then releases."""
        key = self.tell("acquire", f"probe-{time.monotonic_ns()}", LONG_MS, 0)
        said = self.hear(key)
        if said == ["acquired"]:
            self.release(key)
        return said

    def is_connected(self):
        """After a connection was lost some have to fail once to see it."""
        return self.probe() == ["acquired"]

    def ready(self):
        """Some give a new connection half a second for its first answer, and say after that
        that the lock is not to be had. An error is one."""
        def takes():
            said = self.probe()
            assert said in (["acquired"], ["refused"]), f"{said}: {self.said()}"
            return said == ["acquired"]
        until(takes, "it takes locks", HEARS_S)
        return self


class Stage(Rack):
    """A Redis, a latchd before it, and two programs with one library."""

    def __init__(self, program, folder, library, kit, *, is_served=True):
        super().__init__(folder)
        self.library, self.command, self.is_served = library, library.command(kit), is_served
        self.redis = self.keep(Redis(self.folder)).ready()
        self.daemon = self.keep(Daemon(program, self.folder, self.redis.url,
                                       redis_timeout=REDIS_TIMEOUT)).ready()
        self.one, self.two = self.agent(), self.agent()

    def agent(self):
        agent = self.keep(LockAgent(self.folder, self.command, self.daemon.port))
        return agent.ready() if self.is_served else agent

    def lock(self, name, *words):
        return self.daemon.ask("LOCK", self.library.prefix + name, *words)

    def is_refused(self, name):
        assert self.lock(name, "WAIT", 0) is None, f"LOCK got {name}"

    def unlock(self, name, token):
        assert self.daemon.ask("UNLOCK", self.library.prefix + name, "TOKEN", token) == 0

    def is_free(self, name):
        self.unlock(name, self.lock(name, "WAIT", 0))

    def tries(self):
        with self.daemon.wire() as wire:
            said = wire.ask("INFO", "commandstats")
        return sum(int(line.split("calls=")[1].split(",")[0]) for line in said.splitlines()
                   if line.startswith(("cmdstat_set:", "cmdstat_eval:", "cmdstat_evalsha:")))


def takes_and_releases(stage, name):
    for _ in range(2):
        key = stage.one.acquire(name)
        stage.is_refused(name)
        stage.two.acquire(name, wanted="refused")
        stage.one.release(key)
        stage.is_free(name)


def is_refused_while_lock_has_it(stage, name):
    token = stage.lock(name, "WAIT", 0)
    stage.one.acquire(name, wanted="refused")
    if stage.library.asks:
        stage.one.expect(stage.one.tell("query", stage.library.prefix + name), "held")
    stage.unlock(name, token)
    if stage.library.asks:
        stage.one.expect(stage.one.tell("query", stage.library.prefix + name), "free")
    stage.one.release(stage.one.acquire(name))


def lock_waits_for_its_release(stage, name):
    key = stage.one.acquire(name)
    whole = stage.library.prefix + name
    with stage.daemon.wire() as waiter:
        waiter.send("LOCK", whole, "WAIT", WAIT_MS)
        until(lambda: stage.daemon.ask("WAITERS", whole), "it waits")
        stage.one.release(key)
        assert waiter.reply(), "the waiter got nothing"


def waits_for_lock(stage, name):
    token = stage.lock(name, "WAIT", 0)
    before = stage.tries()
    key = stage.one.tell("acquire", name, LONG_MS, WAIT_MS)
    until(lambda: stage.tries() > before, "it tries")
    stage.unlock(name, token)
    stage.one.expect(key, "acquired")
    stage.is_refused(name)
    stage.one.release(key)


def extends(stage, name):
    if stage.library.extends == "no":
        return
    key = stage.one.acquire(name, 2 * SHORT_MS)
    if stage.library.extends == RENEWS:
        time.sleep(2.5 * SHORT_MS / 1000)
    else:
        stage.one.tell("extend", LONG_MS, key=key)
        stage.one.expect(key, "extended")
        left_ms = stage.redis.ask("PTTL", stage.library.prefix + name)
        assert LONG_MS / 2 < left_ms <= LONG_MS, f"{left_ms} ms are left"
    stage.is_refused(name)
    stage.one.release(key)
    stage.is_free(name)


def a_late_release_is_no_release(stage, name):
    """The holder stands still until its lease is over and another one has the name."""
    late = stage.one.acquire(name, SHORT_MS)
    stage.one.pause()
    until(lambda: not stage.redis.ask("EXISTS", stage.library.prefix + name), "its lease ends")
    key = stage.two.acquire(name)
    stage.one.resume()
    if stage.library.extends == "yes" and stage.library.late == REFUSED:
        stage.one.tell("extend", LONG_MS, key=late)
        stage.one.expect(late, "refused")
    stage.one.release(late, "refused" if stage.library.late == REFUSED else "released")
    if stage.library.late == FREES:
        stage.is_free(name)
        return
    stage.is_refused(name)
    stage.two.release(key)
    stage.is_free(name)


def take_turns(stage, name, guard, entries, over):
    """LOCK, among them."""
    with stage.daemon.wire() as wire:
        while not over.is_set():
            token = wire.ask("LOCK", name, "WAIT", WAIT_MS)
            os.close(os.open(guard, os.O_CREAT | os.O_EXCL))
            time.sleep(HOT_US / 1e6)
            guard.unlink()
            wire.ask("UNLOCK", name, "TOKEN", token)
            entries.append(token)
            time.sleep(10 * HOT_US / 1e6)


def two_processes_and_lock_exclude_each_other_on_a_hot_name(stage, name):
    guard, entries, over = stage.folder / "inside", [], threading.Event()
    thread = threading.Thread(target=take_turns, args=(
        stage, stage.library.prefix + name, guard, entries, over))
    keys = [(agent, agent.tell("contend", name, HOT_CLIENTS, HOT_S, HOT_US, HOT_US, guard))
            for agent in (stage.one, stage.two)]
    thread.start()
    try:
        for agent, key in keys:
            _, overlaps, *waits = agent.expect(key, "contended")
            assert overlaps == "0", f"{overlaps} overlaps"
            assert waits, "it never got in"
    finally:
        over.set()
        thread.join()
    assert entries, "LOCK never got in"
    assert not guard.exists()


def a_killed_holder_blocks_nobody_beyond_its_lease(stage, name):
    stage.two.acquire(name, SHORT_MS)
    stage.two.kill()
    began = time.monotonic()
    stage.is_refused(name)
    token = stage.lock(name, "WAIT", WAIT_MS)
    took = time.monotonic() - began
    assert token and took < SHORT_MS / 1000 + LATE_S, f"granted after {took:.1f} s"
    stage.unlock(name, token)
    stage.two = stage.agent()


def nobody_gets_it_until(stage, name, condition, what):
    """An outage is an error, and no grant."""
    def tried():
        with contextlib.suppress(Error):
            stage.is_refused(name)
        return condition()
    until(tried, what)


def outlives_a_redis_that_lost_everything(stage, name):
    key = stage.one.acquire(name)
    stage.redis.kill()
    stage.redis.restart()
    nobody_gets_it_until(stage, name, lambda: stage.redis.ask(
        "EXISTS", stage.library.prefix + name), "the hold is put back")
    until(stage.one.is_connected, "it takes locks again")
    stage.is_refused(name)
    stage.one.release(key)
    stage.is_free(name)


def outlives_latchd(stage, name):
    key = stage.one.acquire(name)
    stage.daemon.kill()
    stage.daemon.restart()
    until(stage.one.is_connected, "it is connected again", HEARS_S)
    stage.is_refused(name)
    stage.one.release(key)
    stage.is_free(name)


def moves_one_process_at_a_time(stage, name):
    """One goes straight to the Redis behind latchd, as all did before the move."""
    if stage.library.moves == LEFT_OVER:
        return
    straight = stage.keep(LockAgent(stage.folder, stage.command, stage.redis.port)).ready()
    key = straight.acquire(name)
    stage.one.acquire(name, wanted="refused")
    stage.is_refused(name)
    straight.release(key)
    for holds in (True, False):  # then a LOCK
        key = stage.one.acquire(name) if holds else stage.lock(name)
        said = straight.hear(straight.tell("acquire", name, LONG_MS, 0))
        if stage.library.moves == ONE_BY_ONE:
            assert said == ["refused"], said
        else:
            assert said[0] == "error", said
        if holds:
            stage.one.release(key)
        else:
            stage.unlock(name, key)
        straight.release(straight.acquire(name))


class Masters(Stage):
    """Three masters, and a latchd that asks the majority of them. One program takes locks at the masters, as
    all did before the move, and the other at latchd; or the other way round."""

    def __init__(self, program, folder, library, kit, turned):
        Rack.__init__(self, folder)
        self.library, self.command = library, library.command(kit)
        masters = [self.keep(Redis(self.folder)).ready() for _ in range(MASTERS)]
        self.daemon = self.keep(Daemon(program, self.folder,
                                       " ".join(["quorum", *(m.url for m in masters)]),
                                       redis_timeout=REDIS_TIMEOUT)).ready()
        places = [",".join(str(m.port) for m in masters), self.daemon.port]
        self.one, self.two = (self.keep(LockAgent(self.folder, self.command, place)).ready()
                              for place in (reversed(places) if turned else places))


CASES_OF_MASTERS = [takes_and_releases, is_refused_while_lock_has_it, lock_waits_for_its_release]
CASES = [takes_and_releases, is_refused_while_lock_has_it, lock_waits_for_its_release,
         waits_for_lock, extends, a_late_release_is_no_release,
         two_processes_and_lock_exclude_each_other_on_a_hot_name,
         a_killed_holder_blocks_nobody_beyond_its_lease, moves_one_process_at_a_time,
         outlives_a_redis_that_lost_everything, outlives_latchd]


def gets_an_error_at_once(stage):
    """Whether it would wait or not; nothing is left behind."""
    for wait_ms in (0, WAIT_MS):
        began = time.monotonic()
        said = stage.one.hear(stage.one.tell("acquire", "job", LONG_MS, wait_ms))
        took = time.monotonic() - began
        assert said[0] == "error" and took < LATE_S, f"{said} after {took:.1f} s"
        assert "latchd keeps locks, not data" in " ".join(said), f"no reason: {said}"
    stage.is_free("job")


def still_has(daemon, library, agent, name, key):
    """After something happened to what is behind latchd."""
    whole = library.prefix + name
    assert daemon.ask("LOCK", whole, "WAIT", 0) is None, f"LOCK got {name}"
    agent.release(key)
    assert daemon.ask("LOCK", whole, "WAIT", 0), f"{name} is not free"
