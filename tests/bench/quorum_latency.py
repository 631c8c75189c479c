#!/usr/bin/env python3
"""How long a LOCK takes on a quorum, beside one server: quorum_latency.py LATCHD.

All stand there at the same time and take turns, so that a busy machine is the same for
all. The median of each, from the client's side, and the ratio to one server.
"""
import contextlib
import pathlib
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "failover"), str(HERE.parent / "support")]

from children import until
from resp import Link, encode
from servers import Latchd, Redis

ROUNDS, PAIRS = 20, 100
KINDS = {"one server": (1, 0), "3, all up": (3, 0), "3, one stopped": (3, 1),
         "5, all up": (5, 0), "5, two stopped": (5, 2)}
LOCK, UNLOCK = encode("LOCK", "job", "WAIT", 5000), encode("UNLOCK", "job")


def pair(link):
    begin = time.perf_counter_ns()
    link.socket.sendall(LOCK)
    reply = link.socket.recv(100)
    between = time.perf_counter_ns()
    link.socket.sendall(UNLOCK)
    if not reply.startswith(b":") or not link.socket.recv(100).startswith(b":0"):
        raise RuntimeError(f"LOCK: {reply}")
    return (between - begin) / 1000, (time.perf_counter_ns() - between) / 1000


def main():
    program = sys.argv[1]
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        links, times, stopped = {}, {kind: [] for kind in KINDS}, []
        for number, (kind, (count, stop)) in enumerate(KINDS.items()):
            servers = [Redis(folder).ready() for _ in range(count)]
            for server in servers:
                stack.callback(server.stop)
            text = ("quorum " if count > 1 else "") + " ".join(s.url for s in servers)
            daemon = stack.enter_context(
                Latchd(program, folder, f"d{number}", text, "--watchdog-timeout", "2s"))
            daemon.ready()
            links[kind] = stack.enter_context(Link(daemon.socket))
            stopped += servers[count - stop:]
            until(lambda link=links[kind]: works(link), "it grants")
        for server in stopped:
            server.pause()
        for link in links.values():
            for _ in range(PAIRS):
                pair(link)
        for _ in range(ROUNDS):
            for kind, link in links.items():
                times[kind] += [pair(link) for _ in range(PAIRS)]
        for server in stopped:
            server.resume()
    one = None
    for kind, pairs in times.items():
        lock = statistics.median(t[0] for t in pairs)
        unlock = statistics.median(t[1] for t in pairs)
        late = statistics.quantiles([t[0] for t in pairs], n=100)[98]
        one = one or (lock, unlock)
        print(f"{kind:15} LOCK {lock:6.1f} us ({lock / one[0]:.2f} x), 99 % within "
              f"{late:7.1f} us; UNLOCK {unlock:6.1f} us ({unlock / one[1]:.2f} x)")


def works(link):
    link.socket.sendall(LOCK)
    if not link.socket.recv(100).startswith(b":"):
        return False
    link.socket.sendall(UNLOCK)
    return link.socket.recv(100).startswith(b":0")


main()
