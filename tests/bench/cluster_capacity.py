#!/usr/bin/env python3
"""How much more a Redis Cluster can do than one Redis: cluster_capacity.py LATCHD [ROUNDS].

10,000 names are locked and then unlocked over 100 connections, on one server and on three
masters, both with a replica each and without. What counts is the CPU that each master needs
for a pair of LOCK and UNLOCK, as all of them and latchd share this machine's cores: the
busiest of three bounds the Cluster. All are there at the same time and take turns, so that a
busy machine is the same for all.
"""
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "support")]

from children import until
from clusters import Cluster
from resp import encode
from servers import READY_S, Latchd, Rack, kept

NAMES, CONNECTIONS, ROUNDS = 10_000, 100, 5
DAEMON = ("--watchdog-timeout", "60s")


class Place:
    """Servers, and a latchd before them."""

    def __init__(self, stage, url, masters):
        self.masters = masters
        self.used = [0.0] * len(masters)
        self.daemon = stage.keep(
            Latchd(stage.program, stage.folder, f"d{len(stage.places)}", url, *DAEMON)).ready()
        self.wires = [stage.keep(self.daemon.wire()) for _ in range(CONNECTIONS)]
        stage.places.append(self)

    def work(self, names):
        before = [cpu_us(master) for master in self.masters]
        for verb in "LOCK", "UNLOCK":
            for i, wire in enumerate(self.wires):
                mine = names[i::CONNECTIONS]
                wire.socket.sendall(b"".join(encode(verb, name) for name in mine))
            for i, wire in enumerate(self.wires):
                for _ in names[i::CONNECTIONS]:
                    wire.reply()
        for i, master in enumerate(self.masters):
            self.used[i] += cpu_us(master) - before[i]


class Stage(Rack):
    """With places."""

    def __init__(self, program, folder):
        super().__init__(folder)
        self.program, self.places = program, []


def cpu_us(server):
    with server.wire() as wire:
        return 1e6 * sum(float(wire.info(f"used_cpu_{what}")) for what in ("user", "sys"))


def one(stage, replicated):
    master = stage.keep(kept(stage.folder))
    if replicated:
        replica = stage.keep(kept(stage.folder))
        replica.ask("REPLICAOF", "127.0.0.1", master.port)
        until(lambda: replica.info("master_link_status") == "up", "it follows", READY_S)
    return Place(stage, master.url, [master])


def three(stage, replicated):
    cluster = Cluster(stage, replicated=replicated)
    return {publish: Place(stage, f"{cluster.url}?publish={publish}", cluster.masters)
            for publish in ("both", "sharded")}


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    names = [f"name-{i}" for i in range(NAMES)]
    with tempfile.TemporaryDirectory() as folder, Stage(program, folder) as stage:
        pairs = rounds * len(names)
        rows = [(replicated, one(stage, replicated), three(stage, replicated))
                for replicated in (False, True)]
        for turn in range(rounds + 1):
            for place in stage.places:
                place.work(names)
                if turn == 0:  # all names have been there
                    place.used = [0.0] * len(place.masters)
        for replicated, single, clusters in rows:
            print("with a replica each" if replicated else "without replicas")
            alone = single.used[0] / pairs
            print(f"  one master            {alone:6.2f} us for a pair")
            for publish, place in clusters.items():
                each = [used / pairs for used in place.used]
                print(f"  three, {publish + ':':14} {max(each):6.2f} us for the busiest of "
                      f"{' '.join(f'{us:.2f}' for us in each)}: {alone / max(each):.2f} x")


main()
