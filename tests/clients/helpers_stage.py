"""What a case of the helpers has: a Redis, latchds at ports that they find again, and agents:
programs that take locks with a language's helper as they are told (helpers/README.md)."""
import time

from agent import HEARS_S, Agent
from children import Child, until
from resp import Error, Wire
from servers import PORTS, READY_S, Rack, Redis

LEASE_S = 4
TIMEOUT_S = 2    # of the helper: without an answer a connection is given up
PATIENCE_S = 60


class Daemon(Child):
    """A latchd at a port of the loopback."""

    def __init__(self, program, folder, redis, *options, lease_s=LEASE_S, redis_timeout="1s"):
        self.port = PORTS.take()
        super().__init__([program, "--bind", "127.0.0.1", "--port", self.port, "--redis", redis,
                          "--state-dir", folder, "--log-level", "error", "--redis-timeout", redis_timeout,
                          "--watchdog-timeout", f"{lease_s}s", *options],
                         folder / f"latchd-{self.port}.log")

    def grants(self):
        """What is behind it can be reached, too."""
        self.alive()
        try:
            return self.ask("LOCK", "ready", "WAIT", 0, "LEASE", 100)
        except (OSError, Error):
            return False

    def ready(self):
        until(self.grants, "latchd grants", READY_S)
        return self

    def restart(self):
        self.launch()
        self.ready()

    def wire(self):
        return Wire(self.port)

    def ask(self, *words):
        with self.wire() as wire:
            return wire.ask(*words)

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"


class Helper(Agent):
    """An agent with a helper."""

    def __init__(self, folder, language, urls, timeout_s, patience_s):
        command, env = language
        super().__init__(folder, ["env", *env, *command, timeout_s, patience_s, *urls])

    def expect_loss(self, key, within_s=HEARS_S):
        """`lost`, and whatever came before of the hold being uncertain."""
        words = ["uncertain"]
        while words == ["uncertain"]:
            words = self.hear(key, within_s)
        assert words == ["lost"], f"{key}: {words}: {self.said()}"

    def silent(self, key):
        """Nothing was said of a loss."""
        said = list(self.heard[key].queue)
        return ["lost"] not in said

    def lock(self, name, wait="-", *options):
        """The key and the token of a hold."""
        key = self.tell("lock", name, wait, *options)
        return key, int(self.expect(key, "token")[0])

    def unlock(self, key, *wanted):
        self.tell("unlock", key=key)
        words = self.hear(key)
        while words == ["uncertain"]:  # it was so before
            words = self.hear(key)
        assert words == list(wanted or ["unlocked"]), f"{key}: {words}: {self.said()}"


class Stage(Rack):
    """As long as a case runs."""

    def __init__(self, program, folder, language):
        super().__init__(folder)
        self.program, self.language = program, language
        self.redis = self.keep(Redis(self.folder, "--appendonly", "yes")).ready()

    def latchd(self, *options, redis=None, **how):
        return self.keep(Daemon(self.program, self.folder, redis or self.redis.url,
                                *options, **how)).ready()

    def agent(self, *daemons, timeout_s=TIMEOUT_S, patience_s=PATIENCE_S):
        return self.keep(Helper(self.folder, self.language, [d.url for d in daemons], timeout_s, patience_s))


def nobody_else_gets_it(daemon, name, for_s):
    with daemon.wire() as other:
        end = time.monotonic() + for_s
        while time.monotonic() < end:
            try:
                got = other.ask("LOCK", name, "WAIT", 50)
            except Error as error:
                assert str(error).startswith("BACKEND"), error  # Redis has just come back
                continue
            assert got is None, f"another got {name}"


def waiting(daemon, name, count):
    until(lambda: len(daemon.ask("WAITERS", name)) == count, f"{count} wait for {name}")
