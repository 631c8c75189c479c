"""The Redis, or several of them, where latchd and Redisson meet.

Each has a `url` for latchd, a `topology` and `ports` for Redisson, what latchd is given
besides (`options`), and connect(): a connection by which any key is reached.
"""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))

# pylint: disable=wrong-import-position,wrong-import-order
from peers import DEADLINE_S  # noqa: E402  also finds what is shared with other suites
import clusters  # noqa: E402
import servers  # noqa: E402


class Redis(servers.Redis):
    """A single one."""

    topology = "single"
    options = ()
    part = 1.0  # how much there is to do, of what a short run does with a single one
    share = 1.0  # of what a side has to get at least there

    def __init__(self, stage):
        super().__init__(stage.folder)
        stage.keep(self).ready()
        self.ports, self.nodes = str(self.port), [self]

    def connect(self):
        return self.wire(DEADLINE_S)

    def address_of(self, _):
        return ("127.0.0.1", self.port)


class Masters(Redis):
    """Three that know nothing of each other, for RedLock. What is no lock is at the
    first. None was ever there before, so none has forgotten anything."""

    topology = "quorum"
    options = ("--failover-quarantine", 0)

    def __init__(self, stage):
        super().__init__(stage)
        self.nodes += [stage.keep(servers.Redis(stage.folder)).ready() for _ in range(2)]
        self.ports = ",".join(str(node.port) for node in self.nodes)
        self.url = "quorum " + " ".join(node.url for node in self.nodes)


class Cluster(clusters.Cluster):
    """Three masters with a replica each. Nothing moves, so slots are asked for once."""

    topology = "cluster"
    options = ()
    part = 0.4
    share = 0.4  # Redisson waits for replicas after every script

    def __init__(self, stage):
        super().__init__(stage)
        self.ports = ",".join(str(node.port) for node in self.nodes)
        self.owners = {}

    def owner_of(self, key):
        if key not in self.owners:
            self.owners[key] = self.masters.index(self.master_of(key))
        return self.owners[key]

    def connect(self):
        return Wires(self)

    def address_of(self, name):
        return ("127.0.0.1", self.masters[self.owner_of(name)].port)


class Wires:
    """Of each master one; which is asked depends on the key."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.wires = [master.wire(DEADLINE_S) for master in cluster.masters]

    def __enter__(self):
        return self

    def __exit__(self, *what):
        for wire in self.wires:
            wire.close()

    def ask(self, *words):
        command, *rest = words
        if command == "PUBSUB":
            return self.listeners(*rest)
        if command == "KEYS":
            return [key for wire in self.wires for key in wire.ask(*words)]
        if command == "EXISTS":
            return sum(self.at(key).ask(command, key) for key in rest)
        return (self.at(rest[0]) if rest else self.wires[0]).ask(*words)

    def at(self, key):
        return self.wires[self.cluster.owner_of(key)]

    def listeners(self, what, channel):
        """Of both ways to publish."""
        found = [wire.ask("PUBSUB", how + what, channel)
                 for wire in self.wires for how in ("", "SHARD")]
        if what == "CHANNELS":
            return sorted({name for names in found for name in names})
        return [channel, sum(count for _, count in found)]
