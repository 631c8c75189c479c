"""What a case of the helpers has: a Redis, latchds at ports that they find again, and agents:
programs that take locks with a language's helper as they are told (helpers/README.md)."""
import itertools
import queue
import subprocess
import threading
import time

from children import Child, until
from resp import Error, Wire
from servers import PORTS, READY_S, Rack, Redis

LEASE_S = 4
TIMEOUT_S = 2    # of the helper: without an answer a connection is given up
PATIENCE_S = 60
HEARS_S = 60     # how long anything may take on a busy machine


class Daemon(Child):
    """A latchd at a port of the loopback."""

    def __init__(self, program, folder, redis, *options):
        self.port = PORTS.take()
        super().__init__([program, "--bind", "127.0.0.1", "--port", self.port, "--redis", redis,
                          "--state-dir", folder, "--log-level", "error", "--redis-timeout", "1s",
                          "--watchdog-timeout", f"{LEASE_S}s", *options],
                         folder / f"latchd-{self.port}.log")

    def answers(self):
        self.alive()
        try:
            return self.ask("PING") == "PONG"
        except (OSError, Error):
            return False

    def ready(self):
        until(self.answers, "latchd answers", READY_S)
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


class Agent(Child):
    """A program with a helper; what it says is sorted by the key that a request came with."""

    serial = itertools.count(1)

    def __init__(self, folder, language, urls):
        command, env = language
        super().__init__(["env", *env, *command, TIMEOUT_S, PATIENCE_S, *urls],
                         folder / f"agent-{next(self.serial)}.log",
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.heard, self.serial_key = {}, itertools.count(1)
        threading.Thread(target=self.read, args=(self.child.stdout,), daemon=True).start()

    def read(self, out):
        for line in out:
            key, *words = line.decode().split()
            self.queue(key).put(words)

    def queue(self, key):
        return self.heard.setdefault(key, queue.Queue())

    def tell(self, what, *words, key=None):
        """The key that its answers come with."""
        key = key or f"k{next(self.serial_key)}"
        self.queue(key)
        self.child.stdin.write(" ".join(map(str, (what, key, *words))).encode() + b"\n")
        self.child.stdin.flush()
        return key

    def hear(self, key, within_s=HEARS_S):
        try:
            return self.heard[key].get(timeout=within_s)
        except queue.Empty:
            raise AssertionError(f"nothing about {key} in {within_s} s: {self.said()}") from None

    def expect(self, key, *wanted, within_s=HEARS_S):
        """The rest of its next answer, which is this."""
        words = self.hear(key, within_s)
        assert words[:len(wanted)] == list(wanted), f"{key}: {words}, not {wanted}: {self.said()}"
        return words[len(wanted):]

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

    def stop(self):
        self.kill()
        self.child.stdin.close()
        self.output.close()


class Stage(Rack):
    """As long as a case runs."""

    def __init__(self, program, folder, language):
        super().__init__(folder)
        self.program, self.language = program, language
        self.redis = self.keep(Redis(self.folder, "--appendonly", "yes")).ready()

    def latchd(self, *options, redis=None):
        return self.keep(Daemon(self.program, self.folder, redis or self.redis.url,
                                *options)).ready()

    def agent(self, *daemons):
        return self.keep(Agent(self.folder, self.language, [d.url for d in daemons]))


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
