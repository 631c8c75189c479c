"""A Redis Cluster: masters, usually with a replica each."""
from children import until
from resp import Error
from servers import PORTS, READY_S, Redis

SLOTS = 16384
NODE_TIMEOUT_MS = 1000


class Node(Redis):
    """One of them. With a network all reach it through that, and it comes from `address`."""

    def __init__(self, folder, *options, network=None, address=None):
        port, self.bus, self.address = PORTS.take(), PORTS.take(), address
        if network is not None:
            options = ("--cluster-announce-port", network.stands_for(port),
                       "--cluster-announce-bus-port", network.stands_for(self.bus),
                       "--bind-source-addr", address, *options)
        super().__init__(
            folder, "--appendonly", "yes", "--cluster-enabled", "yes", "--cluster-port",
            self.bus, "--cluster-announce-ip", "127.0.0.1", "--cluster-node-timeout",
            NODE_TIMEOUT_MS, "--cluster-replica-validity-factor", 0, *options, name="node",
            port=port)

    def id(self):
        return self.ask("CLUSTER", "MYID")

    def cluster(self, field):
        with self.wire() as wire:
            lines = wire.ask("CLUSTER", "INFO").splitlines()
        return next(line.split(":")[1] for line in lines if line.startswith(field + ":"))

    def owner(self, slot):
        """The port that it takes for the slot's master's."""
        for first, last, master, *_ in self.ask("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return master[1]
        return None


class Cluster:
    """The topology."""

    def __init__(self, stage, *options, masters=3, replicated=True, each=tuple, network=None):
        """`each`: gives more options, for one node."""
        count = 2 * masters if replicated else masters
        self.network = network
        self.nodes = [stage.keep(Node(stage.folder, *options, *each(), network=network,
                                      address=f"127.0.1.{i + 1}")) for i in range(count)]
        for node in self.nodes:
            node.ready()
        self.masters, replicas = self.nodes[:masters], self.nodes[masters:]
        for i, node in enumerate(self.nodes):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for i, node in enumerate(self.masters):
            node.ask("CLUSTER", "ADDSLOTSRANGE", SLOTS * i // masters,
                     SLOTS * (i + 1) // masters - 1)
        for node in self.nodes[1:]:
            self.nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", node.port, node.bus)
        until(self.met, "all nodes have met", READY_S)
        self.replica_of = dict(zip(self.masters, replicas))
        for master, replica in self.replica_of.items():
            replica.ask("CLUSTER", "REPLICATE", master.id())
        until(self.complete, "the cluster is complete", READY_S)

    def met(self):
        count = str(len(self.nodes))
        return all(n.cluster("cluster_known_nodes") == count
                   and "handshake" not in n.ask("CLUSTER", "NODES") for n in self.nodes)

    def complete(self):
        return (all(n.cluster("cluster_state") == "ok" for n in self.nodes) and
                all(r.info("master_link_status") == "up" for r in self.replica_of.values()))

    @property
    def url(self):
        return "cluster://" + ",".join(f"127.0.0.1:{self.public(n.port)}" for n in self.nodes)

    def public(self, port):
        """The one that the cluster tells of."""
        return port if self.network is None else self.network.stands_for(port)

    def slot(self, name):
        return self.nodes[0].ask("CLUSTER", "KEYSLOT", name)

    def master_of(self, name):
        slot = self.slot(name)
        port = self.nodes[0].owner(slot)
        return next(n for n in self.nodes if n.port == port)

    def settled(self, slot, owner, without=()):
        """Waits until all but `without` know whose the slot is, and the cluster is well."""
        def done():
            for node in self.nodes:
                if node not in without and (node.owner(slot) != owner.port or
                                            node.cluster("cluster_state") != "ok"):
                    return False
            return True
        until(done, f"slot {slot} is at {owner.port} for all", READY_S)

    def move(self, slot, target):
        """Resharding, as redis-cli does it."""
        source = next(n for n in self.nodes if n.port == self.nodes[0].owner(slot))
        ids = {node: node.id() for node in (source, target)}
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 10):
            try:
                source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            except Error as why:
                if not str(why).startswith("NOKEY"):
                    raise
        for node in (target, source, *self.nodes):
            if node.info("role") == "master":
                node.ask("CLUSTER", "SETSLOT", slot, "NODE", ids[target])
        return source
