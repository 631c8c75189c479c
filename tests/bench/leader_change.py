#!/usr/bin/env python3
"""How soon followers know of the next leader: leader_change.py LATCHD [SAMPLES]. As root, as it
makes a network namespace, which is the leader's machine.

Three ways in which a leader ends: its process is killed (the kernel closes its connections), its
machine is gone (its packets are dropped from then on, and nothing is closed), and a planned hand-over.
Measured is from then until a follower has read who leads next; a candidate waits all the time. For
latchd the follower asks another latchd than the one through which the leader leads. Beside that a
real etcd, where the machine has Debian's etcd-server and etcd-client: `etcdctl elect`, with the lease
that it takes. Prints a table of medians, in seconds, with the longest of SAMPLES (5).
"""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "support")]

# pylint: disable=wrong-import-position
from children import Child, until  # noqa: E402
from resp import Wire  # noqa: E402
from servers import Latchd, Redis  # noqa: E402

NAME = "office"
READY_S, LONGEST_S = 20, 200
SLOW_SAMPLES = 2  # of what takes a minute each
PER_HEARTBEAT = 4  # how often the leader says something
WAYS = ("killed", "machine gone", "handed over")
SETTINGS = {
    "latchd, HEARTBEAT 1000 GRACE 0": ["HEARTBEAT", "1000", "GRACE", "0"],
    "latchd, HEARTBEAT 200 GRACE 0": ["HEARTBEAT", "200", "GRACE", "0"],
    "latchd, GRACE 0": ["GRACE", "0"],
    "latchd, without these": [],
}
ETCD = "etcd, etcdctl elect"


def run(*words):
    subprocess.run(list(map(str, words)), check=True, stdout=subprocess.DEVNULL)


class Machine:
    """Another one, for the leader."""

    def __init__(self):
        mark = f"lc{os.getpid() % 100_000}"
        self.name, self.cable, far = mark, f"{mark}a", f"{mark}b"
        third = os.getpid() % 250 + 1
        self.here, self.there = f"10.203.{third}.1", f"10.203.{third}.2"
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self.cable, "type", "veth", "peer", "name", far)
        run("ip", "link", "set", far, "netns", self.name)
        run("ip", "addr", "add", f"{self.here}/30", "dev", self.cable)
        run("ip", "link", "set", self.cable, "up")
        self.inside("ip", "addr", "add", f"{self.there}/30", "dev", far)
        self.inside("ip", "link", "set", far, "up")

    def command(self, *words):
        return ["ip", "netns", "exec", self.name, *map(str, words)]

    def inside(self, *words):
        run(*self.command(*words))

    def unplug(self):
        run("ip", "link", "set", self.cable, "down")

    def plug(self):
        run("ip", "link", "set", self.cable, "up")

    def __enter__(self):
        return self

    def __exit__(self, *what):
        run("ip", "netns", "del", self.name)


class Reachable(Latchd):
    """From other machines, too."""

    def __init__(self, program, folder, redis, host, port):  # pylint: disable=super-init-not-called
        self.label, self.socket = "near", folder / "near.sock"
        Child.__init__(self, [program, "--unixsocket", self.socket, "--bind", host, "--port", port,
                              "--protected-mode", "no", "--redis", redis, "--state-dir", folder],
                       folder / "near.log")


class Program:
    """One whose lines are read as they come, with their times."""

    def __init__(self, words, **more):
        self.child = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                      bufsize=1, **more)
        self.lines = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.lines.append((time.monotonic(), line.strip()))

    def tell(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def first(self, wanted, since=0):
        """When it said that, or None."""
        return next((at for at, line in self.lines if at >= since and wanted(line)), None)

    def end(self):
        self.child.kill()
        self.child.wait()


def lead(host, port, heir, *words):
    """The leader's program: takes the name, says its token, and something now and then if it has to;
    told to, it hands over to the waiter with that ID."""
    with socket.create_connection((host, int(port))) as link:
        link.sendall(" ".join(["LOCK", NAME, "DATA", "first", *words]).encode() + b"\r\n")
        print(link.recv(100).decode()[1:].strip(), flush=True)
        pause = None
        if "HEARTBEAT" in words:
            pause = int(words[words.index("HEARTBEAT") + 1]) / 1000 / PER_HEARTBEAT
        told = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.readline(), told.set()), daemon=True).start()
        while not told.wait(pause):
            link.sendall(b"PING\r\n")
            link.recv(100)
        link.sendall(f"UNLOCK {NAME} TO {heir}\r\n".encode())
        link.recv(100)


class Follower(threading.Thread):
    """One who follows the leader over a connection; a Wire's answers are in order."""

    def __init__(self, wire):
        super().__init__(daemon=True)
        self.wire, self.seen = wire, []
        self.start()

    def run(self):
        after = 0
        with contextlib.suppress(OSError, ConnectionError):
            while True:
                answer = self.wire.ask("LEADER", NAME, "AFTER", after)
                self.seen.append((time.monotonic(), answer[2]))
                after = answer[0]

    def when(self, data, since):
        return next((at for at, seen in self.seen if at >= since and seen == data), None)


def wait_for(wire, request):
    """A candidate's wait, with that ID."""
    threading.Thread(target=lambda: wire.ask("LOCK", NAME, "DATA", "second", "ID", request),
                     daemon=True).start()


def end_leader(machine, program, way, hand_over):
    """When that was."""
    at = time.monotonic()
    if way == "killed":
        program.child.send_signal(signal.SIGKILL)
    elif way == "machine gone":
        machine.unplug()
    else:
        hand_over()
    return at


def sample_latchd(machine, daemons, port, words, way):
    near, far = daemons
    request = str(uuid.uuid4())
    with near.wire() as heir, far.wire() as follows:
        heir.socket.settimeout(LONGEST_S)
        follows.socket.settimeout(LONGEST_S)
        leader = Program(machine.command(sys.executable, __file__, "--lead", machine.here, port, request, *words))
        try:
            until(lambda: leader.lines, "it leads", READY_S)
            wait_for(heir, request)
            until(lambda: near.wire().ask("WAITERS", NAME), "somebody waits", READY_S)
            follower = Follower(follows)
            until(lambda: follower.when("first", 0), "it is followed", READY_S)
            time.sleep(1.1)  # for longer than a heartbeat
            at = end_leader(machine, leader, way, lambda: leader.tell("resign"))
            until(lambda: follower.when("second", at), "another one leads", LONGEST_S)
            return follower.when("second", at) - at
        finally:
            leader.end()
            machine.plug()
            near.wire().ask("FORCEUNLOCK", NAME, "ANY")


def measure_latchd(program, machine, folder, samples, tell):
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Redis(folder)).ready()
        port = free_port(machine.here)
        near = stack.enter_context(Reachable(program, folder, redis.url, machine.here, port))
        far = stack.enter_context(Latchd(program, folder, "far", redis.url))
        near.ready()
        far.ready()
        for title, words in SETTINGS.items():
            slow = "HEARTBEAT" not in words
            for way in WAYS:
                count = min(samples, SLOW_SAMPLES) if slow and way != "handed over" else samples
                tell(title, way, [sample_latchd(machine, (near, far), port, words, way)
                                  for _ in range(count)])


def free_port(address):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def sample_etcd(machine, url, way):
    elect = ["etcdctl", "--endpoints", url, "elect"]
    env = {**os.environ, "ETCDCTL_API": "3"}
    leader = Program(machine.command(*elect, NAME, "first"), env=env)
    others = []
    try:
        until(lambda: leader.first(lambda line: line == "first"), "it leads", READY_S)
        follower = Program([*elect, "--listen", NAME], env=env)
        others.append(follower)
        until(lambda: follower.first(lambda line: line == "first"), "it is followed", READY_S)
        others.append(Program([*elect, NAME, "second"], env=env))
        time.sleep(2)  # it waits by then
        at = end_leader(machine, leader, way, lambda: leader.child.send_signal(signal.SIGINT))
        second = lambda: follower.first(lambda line: line == "second", at)  # noqa: E731
        until(second, "another one leads", LONGEST_S)
        return second() - at
    finally:
        for program in [leader, *others]:
            program.end()
        machine.plug()
        subprocess.run(["etcdctl", "--endpoints", url, "del", "--prefix", NAME], env=env, check=True,
                       stdout=subprocess.DEVNULL)


def measure_etcd(machine, folder, samples, tell):
    if shutil.which("etcd") is None or shutil.which("etcdctl") is None:
        print("etcd is left out: Debian's etcd-server and etcd-client have it", flush=True)
        return
    url, peer = (f"http://{machine.here}:{free_port(machine.here)}" for _ in range(2))
    with Child(["etcd", "--data-dir", folder / "etcd", "--listen-client-urls", url,
                "--advertise-client-urls", url, "--listen-peer-urls", peer,
                "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"],
               folder / "etcd.log") as server:
        env = {**os.environ, "ETCDCTL_API": "3"}
        until(lambda: subprocess.run(["etcdctl", "--endpoints", url, "get", "x"], env=env,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     check=False).returncode == 0, "etcd answers", READY_S)
        for way in WAYS:
            count = samples if way == "handed over" else min(samples, SLOW_SAMPLES)
            tell(ETCD, way, [sample_etcd(machine, url, way) for _ in range(count)])
        server.kill()


def show(times):
    digits = 3 if statistics.median(times) < 0.1 else 2 if max(times) < 10 else 0
    return f"{statistics.median(times):.{digits}f} ({max(times):.{digits}f})"


def main():
    if sys.argv[1] == "--lead":
        lead(*sys.argv[2:])
        return
    samples = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    table = {}

    def tell(title, way, times):
        table.setdefault(title, {})[way] = show(times)
        print(f"{title}, {way}: {show(times)}, of {len(times)}", flush=True)

    with tempfile.TemporaryDirectory(prefix="latchd-bench-") as folder, Machine() as machine:
        folder = pathlib.Path(folder)
        measure_latchd(sys.argv[1], machine, folder, samples, tell)
        measure_etcd(machine, folder, samples, tell)
    print("\n| | " + " | ".join(WAYS) + " |\n| --- | --- | --- | --- |")
    for title, row in table.items():
        print(f"| {title} | " + " | ".join(row[way] for way in WAYS) + " |")


main()
