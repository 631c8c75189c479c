"""A daemon that is attacked, and what is known about it; and the ways to attack it."""
import contextlib
import pathlib
import resource
import selectors
import socket
import subprocess
import sys
import time

import support
from children import die_with_parent, until
from resp import Wire, encode
from stand import Stand

HARD = "hard" in sys.argv
SECONDS = 10 if HARD else 0.7  # that an attack takes which has no end of its own
QUIET_S = 3 if HARD else 0.0
MIB = 1 << 20
RECOVERY_S = 60
NAPPING_S = 0.02


def is_sanitized(program):
    """Its memory says nothing then."""
    return b"__asan_init" in pathlib.Path(program).read_bytes()


class Beside:
    """The client beside, as long as the context lives."""

    def __init__(self, port):
        self.child = subprocess.Popen(  # pylint: disable=consider-using-with
            [sys.executable, support.TESTS / "limits" / "beside.py", str(port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answers, self.median_us, self.p99_us, self.worst_us = 0, 0, 0, 0

    def __enter__(self):
        if self.child.stdout.readline() != "ready\n":
            raise AssertionError("the client beside cannot begin")
        return self

    def __exit__(self, *exception):
        said, _ = self.child.communicate()
        if self.child.returncode != 0:
            raise AssertionError("the client beside was not answered")
        self.answers, self.median_us, self.p99_us, self.worst_us = map(int, said.split())
        if self.answers == 0:
            raise AssertionError("the client beside got no answer")


class Target(Stand):
    """A daemon and its Redis, and a connection of its admin."""

    def __init__(self, program, *more, **how):
        super().__init__(program, *more, **how)
        self.sanitized = is_sanitized(program)
        self.admin = None

    def __enter__(self):
        super().__enter__()
        try:
            until(self.is_linked, "both links to Redis are there")
            self.admin = Wire(self.port)
            self.admin.ask("LOCK", "first", "WAIT", RECOVERY_S * 1000)
            self.admin.ask("UNLOCK", "first")
        except BaseException:
            super().__exit__(*sys.exc_info())
            raise
        return self

    def is_linked(self):
        try:
            with Wire(self.redis_socket) as redis:
                return len(redis.ask("CLIENT", "LIST").splitlines()) >= 3
        except ConnectionRefusedError:
            return False

    def __exit__(self, *exception):
        self.admin.close()
        super().__exit__(*exception)

    def clients(self):
        return int(self.admin.info("connected_clients"))

    def waiting(self):
        return int(self.admin.info("waiters"))

    def fds(self):
        return len(list(pathlib.Path(f"/proc/{self.daemon.pid}/fd").iterdir()))

    def rss(self):
        text = pathlib.Path(f"/proc/{self.daemon.pid}/statm").read_text()
        return int(text.split()[1]) * resource.getpagesize()

    def cpu_s(self):
        words = pathlib.Path(f"/proc/{self.daemon.pid}/stat").read_text()
        words = words.rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / 100

    def state(self):
        return self.clients(), self.fds(), int(self.admin.info("waiters")), int(
            self.admin.info("holds"))

    def attacked(self, attack, more_mib, quiet_s=0.0):
        """Runs it with a client beside; then all is as it was before, and in between
        there were at most so many mebibytes more. Says what the client beside saw."""
        before, rss = self.state(), self.rss()
        with contextlib.suppress(PermissionError):  # VmHWM anew
            pathlib.Path(f"/proc/{self.daemon.pid}/clear_refs").write_text("5")
        quiet = None
        if quiet_s > 0:
            with Beside(self.port) as quiet:
                time.sleep(quiet_s)
        with Beside(self.port) as beside:
            start = time.monotonic()
            attack(self)
            took = time.monotonic() - start
        until(lambda: self.state() == before, f"all is as before: {before}, not {self.state()}",
              RECOVERY_S)
        peak = self.peak() - rss
        print(f"# {took:.1f} s; beside: {beside.answers} answers, p50 {beside.median_us} us, "
              f"p99 {beside.p99_us} us, worst {beside.worst_us} us"
              + (f" (alone: p50 {quiet.median_us} us, p99 {quiet.p99_us} us, "
                 f"worst {quiet.worst_us} us)" if quiet else "")
              + f"; at most {peak / MIB:.1f} MiB more, "
              f"{(self.rss() - rss) / MIB:.1f} in the end", flush=True)
        if not self.sanitized and peak > more_mib * MIB:
            raise AssertionError(f"{peak / MIB:.1f} MiB more memory")

    def peak(self):
        text = pathlib.Path(f"/proc/{self.daemon.pid}/status").read_text()
        line = next(line for line in text.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024


class Peer:
    """One connection of an attacker: sends what it has as fast as it is taken."""

    def __init__(self, port, data=b"", reads=True, small=False):
        self.socket = socket.socket()
        if small:  # the kernel is not to keep for it what it does not read
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(RECOVERY_S)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.data, self.reads = data, reads
        self.sent = self.got = 0
        self.last = b""
        self.over = False

    def close(self):
        self.over = True
        self.socket.close()

    def send(self, data):
        """All, some or nothing of it; how much."""
        try:
            return self.socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self.over = True
            return 0

    def push(self):
        at = self.sent % len(self.data) if self.data else 0
        self.sent += self.send(self.data[at:])

    def pull(self):
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.over = True
        self.got += len(data)
        self.last = (self.last + data)[-400:]


def rage(peers, seconds, done=lambda: False):
    """Each sends, and reads if it does that, until its connection ends or time is up."""
    selector = selectors.DefaultSelector()
    for peer in peers:
        events = (selectors.EVENT_WRITE if peer.data else 0) | (
            selectors.EVENT_READ if peer.reads else 0)
        if events:
            selector.register(peer.socket, events, peer)
    end = time.monotonic() + seconds
    while selector.get_map() and time.monotonic() < end and not done():
        for key, events in selector.select(NAPPING_S):
            peer = key.data
            if events & selectors.EVENT_READ:
                peer.pull()
            if events & selectors.EVENT_WRITE and not peer.over:
                peer.push()
            if peer.over:
                selector.unregister(peer.socket)
    selector.close()


def hear(peers, condition, what):
    """Reads from all until it holds for each."""
    rage(peers, RECOVERY_S, lambda: all(condition(peer) for peer in peers))
    if not all(condition(peer) for peer in peers):
        raise AssertionError(f"not {what}: {[peer.last for peer in peers][:3]}")


def close_all(peers):
    for peer in peers:
        peer.close()


def many(usual, hard):
    return hard if HARD else usual


def attack(program, *options, more_mib=16, **how):
    """Runs what it decorates as an attack on a daemon with these options."""
    def decorate(function):
        with Target(program, *options, **how) as target:
            target.attacked(function, more_mib, QUIET_S)
    return decorate


def limit_files(pid, soft):
    """Of a process that runs."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
