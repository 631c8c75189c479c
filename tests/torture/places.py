"""Topologies for a torture: servers, behind a proxy where that can be, what may be done to
them, and what has to be true before the next fault."""
import contextlib

from children import until
from clusters import Cluster
from faults import Network
from machine import Machine, Server
from resp import Error
from sentinels import REDIS_FROM, SENTINEL_FROM, Sentinels
from servers import READY_S

TINY = "2mb"  # maxmemory that evicts
LOOK_S = 0.05  # how often it is looked whether servers are well


class Place:
    """kinds: of faults, names of methods of Nemesis. watchdog_ms: how long a hold lasts."""

    kinds = ("kill_latchd", "stop_latchd", "restart_latchd")
    network_kinds = ("partition", "cut", "delay", "half")
    plain_only = False
    hoards = True  # no UNLOCK is lost
    watchdog_ms = 3000
    options = ()
    network = None

    def __init__(self, stage):
        self.stage = stage

    def server(self, library):
        """One on a machine of its own; without the library, on this one."""
        folder = self.stage.folder
        return Server(folder, machine=library and Machine(folder, library))

    def servers(self):
        """Those that hold locks."""
        raise NotImplementedError

    def targets(self):
        """The servers' ports that the network stands before."""
        return list(self.network.ports)

    def settled(self):
        """Waits until another fault may come."""

    def leading(self):
        """The server that others may take the place of; None: there is none such."""
        return None

    def downs(self):
        """Servers that have ended by themselves."""
        return [s for s in self.servers() if isinstance(s, Server) and s.is_down()]

    def with_network(self):
        self.network = self.stage.keep(Network(self.stage.folder))
        return self.network

    def wires(self):
        """To every server that takes writes."""
        for server in self.servers():
            with contextlib.suppress(OSError, Error):
                if server.info("role") == "master":
                    yield server

    def flush(self):
        for server in self.wires():
            server.ask("FLUSHALL")


class Single(Place):
    """One Redis that loses nothing when it is killed."""

    kinds = (*Place.kinds, *Place.network_kinds, "kill_redis", "stop_redis", "disk_full",
             "flushall", "evict", "clock", "clock_back", "power")

    def __init__(self, stage, library):
        super().__init__(stage)
        self.redis = stage.keep(self.server(library)).ready()
        self.url = f"redis://127.0.0.1:{self.with_network().stands_for(self.redis.port)}"

    def servers(self):
        return [self.redis]

    def settled(self):
        until(self.redis.answers, "Redis answers", READY_S, LOOK_S)


class Quorum(Place):
    """Three masters that know nothing of each other; one at a time is in trouble."""

    kinds = (*Place.kinds, *Place.network_kinds, "kill_redis", "stop_redis", "disk_full",
             "power")
    plain_only = True

    def __init__(self, stage, library):
        super().__init__(stage)
        self.masters = [stage.keep(self.server(library)) for _ in range(3)]
        network = self.with_network()
        self.url = "quorum " + " ".join(
            f"redis://127.0.0.1:{network.stands_for(m.ready().port)}" for m in self.masters)

    def servers(self):
        return self.masters

    def settled(self):
        for master in self.masters:
            until(master.answers, "a master answers", READY_S, LOOK_S)


class Replicated(Place):
    """A master that Sentinels replace."""

    kinds = (*Place.kinds, *Place.network_kinds, "kill_master", "stop_master", "lag",
             "flushall", "cut_off")
    watchdog_ms = 4000
    hoards = False

    def __init__(self, stage, _library):
        super().__init__(stage)
        self.sentinels = Sentinels(stage, self.with_network())
        self.url = self.sentinels.url

    def servers(self):
        return self.sentinels.servers

    def leading(self):
        return self.sentinels.master

    def settled(self):
        """All follow the master that the Sentinels name."""
        until(self.whole, "a master, and replicas that follow it", READY_S, LOOK_S)

    def whole(self):
        try:
            port = int(self.sentinels.sentinels[0].ask(
                "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")[1])
            master = next(s for s in self.servers() if self.sentinels.public(s.port) == port)
            self.sentinels.master = master
            return (master.info("role") == "master" and all(
                s is master or (s.info("master_link_status") == "up"
                                and s.info("master_port") == str(port))
                for s in self.servers()))
        except (OSError, Error, StopIteration):
            return False

    def switched(self):
        """Waits until another one is master."""
        old = self.sentinels.master

        def done():
            with contextlib.suppress(OSError, Error):
                said = [s.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")[1]
                        for s in self.sentinels.sentinels]
                return self.sentinels.public(old.port) not in map(int, said)
            return False
        until(done, "another master", READY_S, LOOK_S)

    def side_of(self, daemon, how):
        """The daemon and the master on one side, all else on the other; or no more."""
        master = self.sentinels.master
        if how == "pass":
            for server in (*self.servers(), *self.sentinels.sentinels):
                self.network.between("*", server.port, "pass")
            return
        others = [d for d in self.stage.daemons if d != daemon]
        for who in (*others, REDIS_FROM, SENTINEL_FROM):
            self.network.between(who, master.port, how)
        for server in (*self.servers(), *self.sentinels.sentinels):
            if server is not master:
                self.network.between(daemon, server.port, how)


class Acked(Replicated):
    """The same, and what counts is on every replica that may be promoted."""

    options = ("--min-replicas", "2", "--replica-timeout", "500ms")


class Clustered(Place):
    """A Redis Cluster of three masters with a replica each."""

    kinds = (*Place.kinds, "kill_master", "failover", "flushall")
    watchdog_ms = 4000
    hoards = False

    def __init__(self, stage, _library):
        super().__init__(stage)
        self.cluster = Cluster(stage, "--cluster-require-full-coverage", "no",
                               network=self.network)
        self.url = self.cluster.url
        self.victim = None

    def servers(self):
        return self.cluster.nodes

    def settled(self):
        until(self.whole, "a whole cluster", READY_S, LOOK_S)

    def whole(self):
        try:
            self.cluster.masters = [n for n in self.cluster.nodes
                                    if n.info("role") == "master"]
            replicas = [n for n in self.cluster.nodes if n not in self.cluster.masters]
            by_port = {self.cluster.public(n.port): n for n in self.cluster.masters}
            self.cluster.replica_of = {by_port[int(r.info("master_port"))]: r
                                       for r in replicas}
            return len(self.cluster.masters) == 3 and self.cluster.complete()
        except (OSError, Error, KeyError):
            return False

    def switched(self):
        """Waits until a replica has taken over from the one that was killed."""
        old = self.victim
        heir = self.cluster.replica_of[old]

        def done():
            with contextlib.suppress(OSError, Error):
                return heir.info("role") == "master" and all(
                    n.cluster("cluster_state") == "ok" for n in self.servers()
                    if n is not old)
            return False
        until(done, "a replica takes over", READY_S, LOOK_S)


class Parted(Clustered):
    """The same, and what is between daemons and nodes, and among nodes, can be cut."""

    kinds = (*Clustered.kinds, *Place.network_kinds, "part_master")

    def __init__(self, stage, library):
        self.stage = stage
        self.with_network()
        super().__init__(stage, library)

    def targets(self):
        return [n.port for n in self.cluster.nodes]

    def apart(self, master, clients):
        """The other nodes do not hear it, nor it them; and its clients, too."""
        for node in self.cluster.nodes:
            who = "*" if node is master else master.address
            self.network.between(who, node.bus, "hold")
        if clients:
            self.network.between("*", master.port, "hold")

    def together(self):
        for node in self.cluster.nodes:
            self.network.between("*", node.bus, "pass")
            self.network.between("*", node.port, "pass")


PLACES = {"single": Single, "sentinel": Replicated, "cluster": Clustered, "quorum": Quorum,
          "acked": Acked, "parted": Parted}
