"""What is not the network's fault, nor a server's: clocks that jump, machines that sleep, power
that fails, and a cable that carries one direction only. The times are those of docs/faults.md.

A hold is watched from outside: the lock `job`, with what its daemon says of it."""
import contextlib
import pathlib
import sys
import time

from children import until
from machine import Cable, Machine, Server
from resp import Error, Wire
from servers import PORTS
from stage import WATCHDOG_MS, crowded
from stand import Skip, is_sanitized

LIBRARY = pathlib.Path(sys.argv[1]).resolve().parent.parent / "tests/support/machine.so"
BACK_MS = 2000  # from "Redis answers again" to grants of every name
LONG_MS = 15_000  # a lease that outlives an outage on a busy machine
NAP_S, SLEEP_S, HOUR_S = 2, 60, 3600
HOLDS = 20
SHORT_MS = 9000  # a lease that is soon renewed
SILENT_MS = 5000  # HEARTBEAT
REDIS_MS = 5000  # redis-timeout, but where a fault is to be noticed at once
KEPT_MS = 8000  # a lease that outlives a restart of Redis
VANISHED_MS, EARLY_MS = 19_000, 4000  # "about 19 s"
SLACK_MS = 10_000  # what a busy machine may be late


class Hold:
    """A hold of `job`, and what is told of it."""

    def __init__(self, daemon, *words):
        self.daemon = daemon
        self.news = daemon.wire()
        for kind in ("uncertain", "lost"):
            self.news.ask("SUBSCRIBE", f"{kind}:job")
        self.owner = daemon.wire()
        self.token = self.owner.ask("LOCK", "job", *words)

    def close(self):
        self.owner.close()
        self.news.close()

    def hears(self, kind):
        """Waits until it is told of that."""
        said = self.news.receive()
        while said[1] != f"{kind}:job":
            said = self.news.receive()
        assert said[2].split()[1] == str(self.token), said

    def is_not_lost(self):
        """A busy machine may have stopped latchd for long enough to make it doubt."""
        self.news.send("PING")
        said = self.news.receive()
        while said[0] != "pong":
            assert said[1] != "lost:job", said
            said = self.news.receive()

    def is_certain(self):
        with self.daemon.wire() as wire:
            said = wire.ask("LOCKINFO", "job")
        info = dict(zip(said[::2], said[1::2]))
        return info["state"] == "held" and self.token in info["holds"][0]

    def certain_again(self):
        until(self.is_certain, "the hold is certain")

    @staticmethod
    def renewed(redis):
        """Waits until its lease in Redis is made longer."""
        last = [redis.ask("PTTL", "job")]

        def is_longer():
            before, last[0] = last[0], redis.ask("PTTL", "job")
            return last[0] > before
        until(is_longer, "a renewal")

    def followed(self):
        """Somebody else gets the name, once, with a greater token."""
        with self.daemon.wire() as next_one:
            token = next_one.ask("LOCK", "job", "WAIT", SLACK_MS)
            assert token is not None and token > self.token, (token, self.token)
            with contextlib.suppress(Error):
                self.owner.ask("UNLOCK", "job", "TOKEN", self.token)
                raise AssertionError("the old hold was still there")
            assert next_one.ask("UNLOCK", "job", "TOKEN", token) == 0


@contextlib.contextmanager
def held(daemon, *words):
    hold = Hold(daemon.ready(), *words)
    try:
        yield hold
    finally:
        hold.close()


def machine(stage):
    return Machine(stage.folder, LIBRARY)


def redis_on(stage, where, *options):
    return stage.keep(Server(stage.folder, *options, machine=where)).ready()


def latchd_on(stage, where, redis, **how):
    if is_sanitized(stage.program):
        raise Skip("a sanitizer is to be loaded first")
    return stage.latchd("a", redis.url, machine=where, timeout_ms=REDIS_MS, **how)


# Clocks.

def the_clock_of_redis_jumps_ahead(stage):
    """By less than a lease: the hold is confirmed. By more: it has ended."""
    where = machine(stage)
    redis = redis_on(stage, where)
    with held(stage.latchd("a", redis.url, watchdog_ms=2 * LONG_MS, timeout_ms=REDIS_MS)) as hold:
        where.change(ahead_s=5)
        hold.hears("uncertain")
        hold.certain_again()
        where.change(ahead_s=HOUR_S)
        hold.hears("lost")
        hold.followed()


def the_clock_of_redis_is_set_back(stage):
    """The hold is confirmed, and tokens grow."""
    where = machine(stage)
    redis = redis_on(stage, where)
    with held(stage.latchd("a", redis.url, watchdog_ms=LONG_MS, timeout_ms=REDIS_MS)) as hold:
        where.change(ahead_s=-HOUR_S)
        hold.hears("uncertain")
        hold.certain_again()
        assert hold.owner.ask("UNLOCK", "job") == 0
        hold.followed()


def the_clock_of_latchd_does_not_matter(stage):
    where = machine(stage)
    redis = redis_on(stage, None)
    with held(latchd_on(stage, where, redis, watchdog_ms=SHORT_MS)) as hold:
        for ahead_s in (HOUR_S, -HOUR_S):
            where.change(ahead_s=ahead_s)
            hold.renewed(redis)
        hold.certain_again()
        hold.is_not_lost()


# Suspend.

def after_a_nap_redis_is_asked_first(stage):
    """Of latchd's machine, shorter than the lease."""
    where = machine(stage)
    redis = redis_on(stage, None)
    with held(latchd_on(stage, where, redis, watchdog_ms=LONG_MS)) as hold:
        where.change(slept_s=NAP_S)
        hold.hears("uncertain")
        hold.certain_again()


def after_a_long_sleep_the_hold_is_lost(stage):
    """Of a machine that has both, for longer than the lease."""
    where = machine(stage)
    with held(latchd_on(stage, where, redis_on(stage, where))) as hold:
        where.change(slept_s=SLEEP_S)
        hold.hears("lost")
        hold.followed()


def all_stand_still_for_longer_than_a_lease(stage):
    """No clock jumps: the processes are stopped."""
    redis = redis_on(stage, None)
    daemon = stage.latchd("a", redis.url, timeout_ms=REDIS_MS)
    with held(daemon) as hold:
        daemon.pause()
        redis.pause()
        time.sleep((WATCHDOG_MS + 200) / 1000)  # the length of the fault
        redis.resume()
        daemon.resume()
        hold.hears("lost")
        hold.followed()


# Power.

def a_power_cut_takes_nothing_that_was_synced(stage):
    """Of Redis's machine and latchd's, with `appendfsync always`: a new latchd finds every
    hold, and no lock that was given back."""
    redis = redis_on(stage, machine(stage), "--appendfsync", "always")
    daemon = stage.latchd("a", redis.url, timeout_ms=REDIS_MS).ready()
    names = [f"job-{i}" for i in range(HOLDS)]
    with daemon.wire() as owner:
        tokens = [owner.ask("LOCK", name, "LEASE", HOUR_S * 1000) for name in names]
        for name in names[::2]:
            assert owner.ask("UNLOCK", name) == 0
        daemon.kill()
        redis.cut_power()
    redis.restart()
    daemon.restart()
    with daemon.wire() as other:
        for i, (name, token) in enumerate(zip(names, tokens)):
            new = other.ask("LOCK", name, "WAIT", 0)
            if i % 2 == 0:
                assert new > token, (name, new, token)
            else:
                assert new is None, (name, new)
                assert other.ask("UNLOCK", name, "TOKEN", token) == 0, name


def what_a_power_cut_takes_is_put_back(stage):
    """With `appendfsync everysec`, under load: latchd on another machine knows it."""
    redis = redis_on(stage, machine(stage))
    stage.latchd("a", redis.url, watchdog_ms=KEPT_MS)
    crowd = crowded(stage)
    marks = {}
    for turn, part in (("first", 0), ("second", 0.5)):
        crowd.granted(200)
        stage.say(f"{redis.cut_power(part)} bytes are lost")
        stage.mark(f"{turn} cut")
        redis.restart()
        crowd.all_granted(stage.mark(f"{turn} return"))
        # What was given back and is there again, ends with its lease.
        marks[f"{turn} return"] = KEPT_MS + BACK_MS
    crowd.granted(200)
    stage.check(gaps=marks, kept=("kept-0", "kept-1", "kept-2"))


# A cable that carries one direction.

def between_latchd_and_redis(stage, lost):
    """The hold is uncertain, and nobody is granted anything; when the cable carries again,
    the hold is certain, and what was asked for in vain is free."""
    cable = stage.keep(Cable(stage.folder))
    with cable.there():
        redis = redis_on(stage, None, "--bind", "127.0.0.1", Cable.THERE)
    daemon = stage.latchd("a", f"redis://{Cable.THERE}:{redis.port}", watchdog_ms=LONG_MS)
    with held(daemon) as hold, daemon.wire() as other:
        cable.lose(lost)
        with contextlib.suppress(Error):
            said = other.ask("LOCK", "other", "WAIT", 0)
            raise AssertionError(f"the answer is {said}")
        hold.hears("uncertain")
        cable.lose(lost, False)
        hold.certain_again()
        assert other.ask("LOCK", "other", "WAIT", LONG_MS) > hold.token
        assert hold.owner.ask("UNLOCK", "job") == 0


def redis_hears_latchd_but_is_not_heard(stage):
    between_latchd_and_redis(stage, Cable.THERE)


def latchd_hears_redis_but_is_not_heard(stage):
    between_latchd_and_redis(stage, Cable.HERE)


class Far:
    """A client at the other end of a cable, which holds `job`; one at this end waits."""

    def __init__(self, stage, *options):
        self.cable = stage.keep(Cable(stage.folder))
        with self.cable.there():
            redis, port = redis_on(stage, None), PORTS.take()
            daemon = stage.latchd("a", redis.url, "--bind", Cable.THERE,
                                  "--protected-mode", "no", *options, port=port,
                                  watchdog_ms=LONG_MS, timeout_ms=REDIS_MS).ready()
        self.client = stage.stack.enter_context(Wire((Cable.THERE, port)))
        self.waiter = stage.stack.enter_context(daemon.wire())

    def hold(self, *words):
        self.token = self.client.ask("LOCK", "job", *words)
        self.waiter.send("LOCK", "job", "WAIT", HOUR_S * 1000)

    def granted(self, not_before_ms, since):
        token = self.waiter.receive()
        took_ms = (time.monotonic() - since) * 1000
        assert token > self.token, (token, self.token)
        assert took_ms >= not_before_ms, took_ms
        return took_ms


def a_silent_client_loses_its_lock_after_its_heartbeat(stage):
    """It hears latchd, but is not heard."""
    far = Far(stage)
    far.hold("HEARTBEAT", SILENT_MS, "GRACE", 0)
    since = time.monotonic()
    assert far.client.ask("PING") == "PONG"
    far.cable.lose(Cable.HERE)
    took_ms = far.granted(SILENT_MS, since)
    stage.say(f"{took_ms:.0f} ms until the next one had the lock")
    assert took_ms < SILENT_MS + SLACK_MS, took_ms


def gives_up(stage, lost, *options, after_ms):
    """A client without a heartbeat, which latchd's TCP has to give up."""
    far = Far(stage, *options)
    far.hold("GRACE", 0)
    far.cable.lose(lost)
    since = time.monotonic()
    far.client.send("PING")
    took_ms = far.granted(after_ms - EARLY_MS, since)
    stage.say(f"{took_ms:.0f} ms until the next one had the lock")
    assert took_ms < after_ms + SLACK_MS, took_ms


def a_client_that_is_not_heard_is_given_up(stage):
    gives_up(stage, Cable.HERE, after_ms=VANISHED_MS)


def a_client_that_hears_nothing_is_given_up(stage):
    """It is heard, but latchd's answers are lost."""
    gives_up(stage, Cable.THERE, after_ms=VANISHED_MS)


CASES = [
    latchd_hears_redis_but_is_not_heard,
    redis_hears_latchd_but_is_not_heard,
    what_a_power_cut_takes_is_put_back,
    all_stand_still_for_longer_than_a_lease,
    a_power_cut_takes_nothing_that_was_synced,
    the_clock_of_latchd_does_not_matter,
    the_clock_of_redis_jumps_ahead,
    the_clock_of_redis_is_set_back,
    after_a_nap_redis_is_asked_first,
    after_a_long_sleep_the_hold_is_lost,
    a_silent_client_loses_its_lock_after_its_heartbeat,
]
# For each night.
LONG = [
    a_client_that_is_not_heard_is_given_up,
    a_client_that_hears_nothing_is_given_up,
]
