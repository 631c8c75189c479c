"""Those who meet: latchd and a JVM with Redisson, and connections to them.

Everything listens on the loopback or on unix sockets in a directory of its own, and ends
with the driver, whatever ends that.
"""
import itertools
import pathlib
import queue
import subprocess
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))

# pylint: disable=wrong-import-position,unused-import
from children import DEADLINE_S, Child, until  # noqa: E402,F401
from resp import Error as RespError, Wire as Resp  # noqa: E402,F401


class Call:
    """Something under way in a thread of its own, with when it began and ended, in ns."""

    def __init__(self, work, *args):
        self.work, self.args = work, args
        self.value = self.error = self.ended = None
        self.began = time.monotonic_ns()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            self.value = self.work(*self.args)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error
        self.ended = time.monotonic_ns()

    def done(self, within_s=DEADLINE_S):
        self.thread.join(within_s)
        if self.ended is None:
            raise TimeoutError(f"{self.args} is not over within {within_s} s")
        if self.error is not None:
            raise self.error
        return self


class Latchd(Child):
    """With its own unix socket and the options given; with a port only if one is."""

    def __init__(self, program, redis, folder, name, *options, port=0):
        self.socket = str(folder / f"{name}.sock")
        super().__init__([program, "--bind", "127.0.0.1", "--port", port, "--unixsocket",
                          self.socket, "--redis", redis.url, *options], folder / f"{name}.log")
        until(self.answers, "latchd answers")

    def answers(self):
        self.alive()
        try:
            with self.connect() as connection:
                connection.ask("LOCK", "ready", "WAIT", 0, "LEASE", 100)
                return True
        except (OSError, RespError):
            return False

    def connect(self, deadline_s=DEADLINE_S):
        return Resp(self.socket, deadline_s)


class Reply:
    """What RedissonPeer said to one line."""

    def __init__(self, ok, began, ended, value):
        self.ok, self.value = ok, value
        self.began, self.ended = int(began), int(ended)


class Jvm(Child):
    """RedissonPeer; its threads are called by names of one's own."""

    def __init__(self, class_path, folder, name):
        self.numbers = itertools.count(1)
        self.replies = {}
        super().__init__(["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                          "-cp", class_path, "RedissonPeer"],
                         folder / f"{name}.log", stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            number, how, began, ended, value = line.decode().rstrip("\n").split(" ", 4)
            self.replies[int(number)].put(Reply(how == "ok", began, ended, value))

    def end(self):
        self.child.stdin.close()

    def start(self, thread, *words):
        """Tells a thread what to do next; its number is what `finish` asks for."""
        number = next(self.numbers)
        self.replies[number] = queue.Queue()
        line = " ".join(map(str, (number, thread, *words)))
        self.child.stdin.write(line.encode() + b"\n")
        self.child.stdin.flush()
        return number

    def finish(self, number, within_s=DEADLINE_S):
        try:
            return self.replies[number].get(timeout=within_s)
        except queue.Empty:
            self.alive()
            raise TimeoutError(f"Redisson, line {number}: not within {within_s} s") from None


class Redisson:
    """A client of its own, in a JVM that may have others."""

    def __init__(self, jvm, name, where, watchdog_ms, fair_wait_ms):
        """`where`: topology and ports."""
        self.jvm, self.name = jvm, name
        self.pid = jvm.child.pid
        self.ask("control", "open", *where, watchdog_ms, fair_wait_ms)

    def start(self, thread, *words):
        return self.jvm.start(f"{self.name}/{thread}", *words)

    def waits(self, number):
        return self.jvm.replies[number].empty()

    def finish(self, number, within_s=DEADLINE_S):
        return self.jvm.finish(number, within_s)

    def ask(self, thread, *words, within_s=DEADLINE_S):
        """The value; an exception of Redisson's is one of ours."""
        reply = self.finish(self.start(thread, *words), within_s)
        if not reply.ok:
            raise RuntimeError(f"Redisson, {words}: {reply.value}")
        return reply.value
