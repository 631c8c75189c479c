#!/usr/bin/env python3
"""How long a LOCK takes on a quorum, beside one server: quorum_latency.py LATCHD.

All stand there at the same time and take turns, so that a busy machine is the same for
all. The median of each, from the client's side, and the ratio to one server. Beside
latchd the same for a bare client: one EVAL to each server, and it goes on when a
majority has answered. That is what this machine can do at all: with fewer processors
than servers they wait for each other.
"""
import contextlib
import pathlib
import selectors
import socket
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "support")]

# pylint: disable=wrong-import-position
from children import until  # noqa: E402
from resp import Link, encode  # noqa: E402
from servers import Latchd, Redis  # noqa: E402

ROUNDS, PAIRS = 100, 20
KINDS = {"one server": (1, 0), "3, all up": (3, 0), "3, one stopped": (3, 1),
         "5, all up": (5, 0), "5, two stopped": (5, 2)}
LOCK, UNLOCK = encode("LOCK", "job", "WAIT", 5000), encode("UNLOCK", "job")
TAKE = encode("EVAL", """if redis.call('HLEN', KEYS[1]) > 0 then return 0 end
    redis.call('SET', KEYS[2], ARGV[1], 'PX', 3600000)
    redis.call('HSET', KEYS[1], ARGV[1], 1)
    return redis.call('PEXPIRE', KEYS[1], 30000)""", 2, "bare", "bare:fence", "me")
GIVE = encode("EVAL", """redis.call('PUBLISH', KEYS[1] .. ':channel', '0')
    return redis.call('DEL', KEYS[1])""", 1, "bare")


class Daemon:
    """Through latchd."""

    def __init__(self, link):
        self.socket = link.socket

    def pair(self):
        begin = time.perf_counter_ns()
        self.socket.sendall(LOCK)
        reply = self.socket.recv(100)
        between = time.perf_counter_ns()
        self.socket.sendall(UNLOCK)
        if not reply.startswith(b":") or not self.socket.recv(100).startswith(b":0"):
            raise RuntimeError(f"LOCK: {reply}")
        return (between - begin) / 1000, (time.perf_counter_ns() - between) / 1000


class Bare:
    """Straight to the servers. `owed`: answers that nobody waited for."""

    def __init__(self, servers, stack):
        self.need = len(servers) // 2 + 1
        self.sockets = {}
        self.selector = stack.enter_context(selectors.EpollSelector())
        for server in servers:
            one = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets[one] = 0
            self.selector.register(one, selectors.EVENT_READ)

    def ask(self, what):
        for one in self.sockets:
            one.sendall(what)
            self.sockets[one] += 1
        answered = 0
        while answered < self.need:
            for key, _ in self.selector.select():
                data = key.fileobj.recv(4096)
                if b"-" in data:
                    raise RuntimeError(data)
                self.sockets[key.fileobj] -= data.count(b":")
                answered += self.sockets[key.fileobj] == 0

    def pair(self):
        begin = time.perf_counter_ns()
        self.ask(TAKE)
        between = time.perf_counter_ns()
        self.ask(GIVE)
        return (between - begin) / 1000, (time.perf_counter_ns() - between) / 1000


def works(link):
    link.socket.sendall(LOCK)
    if not link.socket.recv(100).startswith(b":"):
        return False
    link.socket.sendall(UNLOCK)
    return link.socket.recv(100).startswith(b":0")


def stand(program, folder, stack):
    """Who is measured: (kind, bare) -> client; the servers of some are stopped."""
    clients, stopped = {}, []
    for number, (kind, (count, stop)) in enumerate(KINDS.items()):
        servers = [Redis(folder).ready() for _ in range(count)]
        for server in servers:
            stack.callback(server.stop)
        text = ("quorum " if count > 1 else "") + " ".join(s.url for s in servers)
        daemon = stack.enter_context(
            Latchd(program, folder, f"d{number}", text, "--watchdog-timeout", "2s"))
        daemon.ready()
        link = stack.enter_context(Link(daemon.socket))
        clients[kind, False] = Daemon(link)
        clients[kind, True] = Bare(servers, stack)
        stopped += servers[count - stop:]
        until(lambda link=link: works(link), "it grants")
    for server in stopped:
        server.pause()
        stack.callback(server.resume)
    return clients


def main():
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        clients = stand(sys.argv[1], folder, stack)
        times = {who: [] for who in clients}
        for client in clients.values():
            for _ in range(PAIRS):
                client.pair()
        for _ in range(ROUNDS):
            for who, client in clients.items():
                times[who] += [client.pair() for _ in range(PAIRS)]
    one = {}
    for (kind, bare), pairs in times.items():
        lock = statistics.median(t[0] for t in pairs)
        unlock = statistics.median(t[1] for t in pairs)
        late = statistics.quantiles([t[0] for t in pairs], n=100)[98]
        first = one.setdefault(bare, (lock, unlock))
        print(f"{kind:15} {'bare' if bare else 'latchd':6} LOCK {lock:6.1f} us "
              f"({lock / first[0]:.2f} x), 99 % within {late:7.1f} us; "
              f"UNLOCK {unlock:6.1f} us ({unlock / first[1]:.2f} x)")


main()
