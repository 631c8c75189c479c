#!/usr/bin/env python3
"""How soon a loss is told, and what it costs that Redis tells of it: loss_told.py LATCHD [HOLDS].

HOLDS (100,000) are held for some renewals. Measured is the time from a DEL at Redis to the notice
on `lost:*`, beside a PING of latchd in turns, as the machine may be busy; and the processor time of
Redis and of latchd, with a watch and in a Redis that refuses CLIENT TRACKING.
"""
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "support")]

# pylint: disable=wrong-import-position
from children import until  # noqa: E402
from resp import encode  # noqa: E402
from servers import Latchd, Redis  # noqa: E402

AT_ONCE, SAMPLES = 1000, 500
SETTLE_S, LOOK_S, READY_S = 22, 30, 60  # two renewals, then three


def name_of(number):
    return f"name-of-a-job:{number:06}"


def processor_s(server):
    fields = pathlib.Path(f"/proc/{server.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def hold(wire, holds):
    for first in range(0, holds, AT_ONCE):
        numbers = range(first, min(holds, first + AT_ONCE))
        wire.socket.sendall(b"".join(encode("LOCK", name_of(number)) for number in numbers))
        for _ in numbers:
            wire.receive()


def cost(redis, latchd, way):
    servers = {"Redis": redis, "latchd": latchd}
    before = {name: processor_s(server) for name, server in servers.items()}
    renewals = int(latchd.info("renewals"))
    time.sleep(LOOK_S)
    used = ", ".join(f"{name} {(processor_s(server) - before[name]) / LOOK_S:.2%}"
                     for name, server in servers.items())
    per_s = (int(latchd.info("renewals")) - renewals) / LOOK_S
    print(f"{way}: of a processor {used}; {per_s:.0f} renewals/s; "
          f"{latchd.info('watch_looks')} looks", flush=True)


def timed(ask):
    begin = time.perf_counter()
    ask()
    return (time.perf_counter() - begin) * 1000


def told(redis, latchd, holds):
    with redis.wire() as operator, latchd.wire() as client, latchd.wire() as ear:
        ear.ask("PSUBSCRIBE", "lost:*")
        losses, pings = [], []
        for number in random.sample(range(holds), min(holds, SAMPLES)):
            pings.append(timed(lambda: client.ask("PING")))
            losses.append(timed(lambda name=name_of(number):
                                (operator.send("DEL", name), ear.receive())))
            operator.receive()
            time.sleep(0.01)
    for what, times in {"DEL to lost": losses, "PING": pings}.items():
        cuts = statistics.quantiles(times, n=100)
        print(f"{what}, ms: p50 {cuts[49]:.2f}, p99 {cuts[98]:.2f}, max {max(times):.2f}")


def main():
    program, holds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    for watched in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            with Redis(folder) as redis:
                redis.ready()
                if not watched:
                    redis.ask("ACL", "SETUSER", "default", "-client|tracking")
                with Latchd(program, folder, "a", redis.url, "--max-holds", 2_000_000) as latchd:
                    latchd.ready()
                    if watched:
                        until(lambda: latchd.info("redis_watch") == "yes", "watch", READY_S)
                    with latchd.wire() as wire:
                        hold(wire, holds)
                        time.sleep(SETTLE_S)
                        cost(redis, latchd, "watched" if watched else "not watched")
                        if watched:
                            told(redis, latchd, holds)


if __name__ == "__main__":
    main()
