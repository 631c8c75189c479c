#!/usr/bin/env python3
"""Lock libraries on one hot name, through latchd and straight at its Redis:
lock_libraries.py LATCHD KITS [PART OF A NAME...]   KITS: where what they need is kept

20 clients with a connection each take the lock, hold it for 2 ms, release it, and rest for 10 ms
on average, as programs of tests/clients/locks. Both ways stand there at the same time and take
turns, so that a busy machine is the same for both. A hand-over goes from one client to another; a
library also enters again before anybody else looked. Tries are what a library sent to get in.
BENCH_SECONDS (4) and BENCH_ROUNDS (3) of each; BENCH_OPTIONS: further words for latchd.
"""
import os
import pathlib
import re
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "support"), str(HERE.parent / "clients")]

from agent import Agent
from helpers_stage import Daemon
from locks_list import LIBRARIES
from servers import Rack, Redis
import kits

CLIENTS, HOLD_US, PAUSE_US = 20, 2_000, 10_000
WAYS = "latchd", "Redis"
MEASURED = ("redis-py 8", "redis-py, asyncio 8", "redsync", "node-redlock 5")
TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")


def calls_of(server):
    """How often SETs and scripts were sent. Redis counts what a script calls, too."""
    with server.wire() as wire:
        said = wire.ask("INFO", "commandstats")
    found = dict(re.findall(r"^cmdstat_([^:]+):calls=(\d+)", said, re.MULTILINE))
    return {"sets": int(found.get("set", 0)),
            "scripts": int(found.get("evalsha", 0)) + int(found.get("eval", 0))}


def processor_us(child):
    words = pathlib.Path(f"/proc/{child.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) * TICK_US


class Way:
    """What one library did in all its turns at one place."""

    def __init__(self, stage, at, library, kit):
        self.stage, self.at, self.by_script = stage, at, library.by_script
        self.agent = stage.keep(Agent(stage.folder,
                                      [*library.command(kit), "127.0.0.1", at.port]))
        self.rates, self.waits = [], []
        self.entries = self.tried = self.handovers = 0
        self.used = dict.fromkeys(("client", "latchd", "Redis"), 0.0)

    def meters(self):
        return {"client": processor_us(self.agent), "latchd": processor_us(self.stage.daemon),
                "Redis": processor_us(self.stage.redis)}

    def turn(self, name, seconds, counts=True):
        before, used = calls_of(self.at), self.meters()
        agent, guard = self.agent, self.stage.folder / "inside"
        words = agent.expect(agent.tell("contend", name, CLIENTS, seconds, HOLD_US, PAUSE_US,
                                        guard), "contended")
        handovers, overlaps, *waits = map(int, words)
        if overlaps:
            sys.exit(f"{overlaps} had the lock together with another")
        if counts:
            self.count(handovers, waits, before, used, seconds)

    def count(self, handovers, waits, before, used, seconds):
        sent = {what: calls - before[what] for what, calls in calls_of(self.at).items()}
        self.rates.append(handovers / seconds)
        self.handovers += handovers
        self.entries += len([w for w in waits if w >= 0])
        self.waits += [abs(w) / 1000 for w in waits]
        # Each of them released it by a script.
        self.tried += sent["scripts"] - len(waits) if self.by_script else sent["sets"]
        for who, now in self.meters().items():
            self.used[who] += now - used[who]

    def row(self):
        waits = statistics.quantiles(self.waits, n=100)
        each = self.handovers
        return [statistics.median(self.rates), self.entries / each, self.tried / each,
                waits[49], waits[98], max(self.waits),
                *(used / each for used in self.used.values())]


HEADS = ["hand-overs/s", "entries", "tries", "p50 ms", "p99 ms", "max ms",
         "client us", "latchd us", "Redis us"]


class Stage(Rack):
    """A Redis, and a latchd before it."""

    def __init__(self, program, folder):
        super().__init__(folder)
        self.redis = self.keep(Redis(self.folder)).ready()
        self.daemon = self.keep(Daemon(program, self.folder, self.redis.url,
                                       *os.environ.get("BENCH_OPTIONS", "").split())).ready()
        self.places = dict(zip(WAYS, (self.daemon, self.redis)))


def measure(stage, library, kit, rounds, seconds):
    ways = {way: Way(stage, stage.places[way], library, kit) for way in WAYS}
    for turn in range(rounds + 1):
        for way, measured in ways.items():
            # The first is to get warm.
            measured.turn(f"hot-{way}", seconds if turn else 1, counts=turn > 0)
    rows = {way: measured.row() for way, measured in ways.items()}
    for way, row in rows.items():
        print(f"{library.title:26} {way:7}" + "".join(f"{value:13.1f}" for value in row), flush=True)
    ratios = [a / b if b else float("nan") for a, b in zip(*rows.values())]
    print(f"{'':26} {'ratio':7}" + "".join(f"{value:13.2f}" for value in ratios), flush=True)


def main():
    program, build, *parts = sys.argv[1:]
    rounds = int(os.environ.get("BENCH_ROUNDS", 3))
    seconds = float(os.environ.get("BENCH_SECONDS", 4))
    print(f"{rounds} rounds of {seconds:g} s, in turns; entries, tries and processor time for "
          "each hand-over")
    print(f"{'library':26} {'through':7}" + "".join(f"{head:>13}" for head in HEADS), flush=True)
    for library in LIBRARIES:
        if not any(part in library.title for part in parts or MEASURED):
            continue
        try:
            kit = kits.make(library.kit, pathlib.Path(build).resolve())
        except kits.Missing as why:
            print(f"# {library.title} is left out: {why}", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder, Stage(program, folder) as stage:
            measure(stage, library, kit, rounds, seconds)


main()
