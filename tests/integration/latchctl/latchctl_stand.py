"""A stand with latchctl on it, for the tests of latchctl.

Commands under test "beat": they write the time into a file, again and again, so that it
is seen until when they ran.
"""
import fcntl
import os
import pathlib
import pty
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from children import until
from stand import DEADLINE_S, Skip, Stand

# beat.py FILE [deaf] [child]: until it is killed; deaf to TERM; with a child in a session
# of its own that beats into FILE.child.
BEAT = """
import os, signal, sys, time
path, words = sys.argv[1], sys.argv[2:]
if "deaf" in words:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "child" in words and os.fork() == 0:
    os.setsid()
    path += ".child"
with open(path, "w") as out:
    while True:
        out.write(f"{time.clock_gettime(time.CLOCK_BOOTTIME)}\\n")
        out.flush()
        time.sleep(0.01)
"""

# Who runs the tests with nohup(1), or a script that runs them behind it, ignores some
# signals, which latchctl and its commands would inherit.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def expect(good, got=""):
    if not good:
        raise AssertionError(f"unexpected: {got!r}")


class Beat:
    """What a beating command left behind."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def last(self):
        lines = self.path.read_text().split("\n") if self.path.exists() else []
        return float(lines[-2]) if len(lines) > 1 else 0.0

    def wait(self):
        until(lambda: self.last() > 0, "the command does not run")

    def goes_on(self):
        before = self.last()
        until(lambda: self.last() > before, "the command does not run on")

    def ends(self):
        """It beats no more; returns when it did last."""
        last = self.last()
        end = time.monotonic() + 60
        quiet = time.monotonic()
        while time.monotonic() - quiet < 0.3:
            expect(time.monotonic() < end, "the command runs on")
            time.sleep(0.02)
            if self.last() != last:
                last = self.last()
                quiet = time.monotonic()
        return last


class CtlStand(Stand):
    # Whom a test stops is in a group of its own, as a shell's jobs are. Where the kernel
    # sees a stopped process in a group that nobody outside cares for any more, as when
    # latchctl's command ends, it sends SIGHUP to all of it: the test is not to be in it.
    before_daemon = staticmethod(os.setpgrp)

    def __init__(self, binary, latchctl):
        super().__init__(os.path.abspath(binary))
        self.latchctl = os.path.abspath(latchctl)
        self.count = 0

    def __enter__(self):
        super().__enter__()
        self.environment = {**os.environ, "LATCHD_URL": f"redis://127.0.0.1:{self.port}"}
        self.environment.pop("LATCHCTL_AUTH", None)
        self.environment.pop("REDISCLI_AUTH", None)
        return self

    def start(self, *words, **more):
        return subprocess.Popen([self.latchctl, *words], text=True, env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, preexec_fn=os.setpgrp, **more)

    def run(self, *words, text=None):
        return subprocess.run([self.latchctl, *words], text=True, env=self.environment,
                              input=text, capture_output=True, timeout=DEADLINE_S,
                              check=False)

    def start_beat(self, name, *options, beat=()):
        """latchctl run with a command that beats, and does so by now."""
        self.count += 1
        path = self.folder / f"beat-{self.count}"
        ctl = self.start("run", name, *options, "--", sys.executable, "-c", BEAT, str(path),
                         *beat)
        ctl.beat, ctl.child_beat = Beat(path), Beat(f"{path}.child")
        ctl.beat.wait()
        if "child" in beat:
            ctl.child_beat.wait()
        return ctl

    def ask(self, *words):
        """A command to latchd; the raw reply."""
        with socket.create_connection(("127.0.0.1", self.port), DEADLINE_S) as s:
            text = f"*{len(words)}\r\n"
            for word in words:
                text += f"${len(word)}\r\n{word}\r\n"
            s.sendall(text.encode() + b"*1\r\n$4\r\nQUIT\r\n")
            got = b""
            while True:
                data = s.recv(65536)
                if not data:
                    return got.decode(errors="replace").removesuffix("+OK\r\n")
                got += data

    def is_free(self, name):
        return "\r\nfree\r\n" in self.ask("LOCKINFO", name)

    def waiters(self, name):
        return int(self.ask("WAITERS", name).split("\r\n")[0][1:])

    def renewed(self, name, times):
        """Returns when the name's lease in Redis has been renewed so often from now on."""
        last = float("inf")
        while times > 0:
            ttl = int(self.redis_cli("PTTL", name))
            expect(ttl > 0, f"{name} is not renewed: its lease is over")
            times -= ttl > last
            last = ttl

    def redis_cli(self, *words):
        return subprocess.run(["redis-cli", "-s", self.redis_socket, *words], text=True,
                              capture_output=True, check=True).stdout.strip()

    def kill_daemon(self):
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait()

    def kill_redis(self):
        self.redis.send_signal(signal.SIGKILL)
        self.redis.wait()


def child_of(pid):
    """The only child of a process."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    expect(len(children) == 1, children)
    return int(children[0])


def keeper_of(ctl):
    """latchctl's other process, the command's parent."""
    return child_of(ctl.pid)


def result(ctl):
    out, err = ctl.communicate(timeout=DEADLINE_S)
    return ctl.returncode, out, err


class Shell:
    """An interactive bash at a terminal of 80x24."""

    def __init__(self, stand):
        if shutil.which("bash") is None:
            raise Skip("bash is not installed")
        self.environment = {**stand.environment, "TERM": "xterm", "PS1": "ready> ",
                            "L": stand.latchctl}
        self.got = ""

    def __enter__(self):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"],
                       self.environment)
        self.resize(24, 80)
        self.expect("ready> ")
        return self

    def __exit__(self, *exception):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, wanted):
        """Reads until it is there; returns what came, up to its end."""
        end = time.monotonic() + 60
        while wanted not in self.got:
            expect(time.monotonic() < end, f"no {wanted!r} in {self.got!r}")
            if select.select([self.fd], [], [], 1)[0]:
                self.got += os.read(self.fd, 65536).decode(errors="replace")
        at = self.got.index(wanted) + len(wanted)
        came, self.got = self.got[:at], self.got[at:]
        return came
