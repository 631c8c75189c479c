"""A master, replicas and Sentinels."""
from multiprocessing.connection import wait

from children import until
from servers import PORTS, READY_S, Redis

NAME = "main"
REPLICAS, SENTINELS, VOTES = 2, 3, 2
DOWN_AFTER_MS, FAILOVER_TIMEOUT_MS = 600, 3000
PATIENT_MS = 60_000  # while all start
# Where connections come from, for a Network: clients come from 127.0.0.1.
REDIS_FROM, SENTINEL_FROM = "127.0.0.2", "127.0.0.3"


class Sentinel(Redis):
    """One of them; it knows everybody from the start."""

    def __init__(self, folder, number, port, lines):
        self.id = f"{number + 1:040x}"
        file = folder / f"sentinel-{number}.conf"
        file.write_text("\n".join([
            f"bind-source-addr {SENTINEL_FROM}", f"sentinel myid {self.id}", *lines, ""]))
        super().__init__(folder, name="sentinel", port=port, file=file)


class Sentinels:
    """The topology. With a network, everybody reaches everybody through it."""

    def __init__(self, stage, network=None, *options):
        self.stage, self.network = stage, network
        self.servers = [self.server(*options) for _ in range(1 + REPLICAS)]
        self.master = self.servers[0]
        for replica in self.servers[1:]:
            replica.ready().ask("REPLICAOF", "127.0.0.1", self.public(self.master.port))
        ports = [PORTS.take() for _ in range(SENTINELS)]
        self.sentinels = [
            stage.keep(Sentinel(stage.folder, i, port, self.lines(i, ports)))
            for i, port in enumerate(ports)]
        until(self.complete, "all know all", READY_S)
        for sentinel in self.sentinels:
            sentinel.ask("SENTINEL", "SET", NAME, "down-after-milliseconds", DOWN_AFTER_MS)
        self.heard = set()  # what was switched, in Sentinel's words
        self.news = [s.wire() for s in self.sentinels]
        for wire in self.news:
            stage.stack.callback(wire.close)
            wire.ask("SUBSCRIBE", "+switch-master")

    def public(self, port):
        return port if self.network is None else self.network.stands_for(port)

    def server(self, *options):
        port = PORTS.take()
        return self.stage.keep(Redis(
            self.stage.folder, "--appendonly", "yes", "--bind-source-addr", REDIS_FROM,
            "--replica-announce-ip", "127.0.0.1", "--replica-announce-port",
            self.public(port), *options, port=port)).ready()

    def lines(self, number, ports):
        yield "sentinel announce-ip 127.0.0.1"
        yield f"sentinel announce-port {self.public(ports[number])}"
        yield f"sentinel monitor {NAME} 127.0.0.1 {self.public(self.master.port)} {VOTES}"
        yield f"sentinel down-after-milliseconds {NAME} {PATIENT_MS}"
        yield f"sentinel failover-timeout {NAME} {FAILOVER_TIMEOUT_MS}"
        yield f"sentinel parallel-syncs {NAME} {REPLICAS}"
        for replica in self.servers[1:]:
            yield f"sentinel known-replica {NAME} 127.0.0.1 {self.public(replica.port)}"
        for other, port in enumerate(ports):
            if other != number:
                yield (f"sentinel known-sentinel {NAME} 127.0.0.1 {self.public(port)} "
                       f"{other + 1:040x}")

    def complete(self):
        if any(r.info("master_link_status") != "up" for r in self.servers[1:]):
            return False
        for sentinel in self.sentinels:
            if not sentinel.answers():
                return False
            said = sentinel.ask("SENTINEL", "MASTER", NAME)
            about = dict(zip(said[::2], said[1::2]))
            if about["flags"] != "master" or int(about["num-slaves"]) != REPLICAS:
                return False
            for kind, count in (("REPLICAS", REPLICAS), ("SENTINELS", SENTINELS - 1)):
                others = [dict(zip(o[::2], o[1::2]))
                          for o in sentinel.ask("SENTINEL", kind, NAME)]
                if len(others) != count or any("down" in o["flags"] or "disc" in o["flags"]
                                               for o in others):
                    return False
                if kind == "REPLICAS" and any(o["master-link-status"] != "ok"
                                              for o in others):
                    return False
        return True

    @property
    def url(self):
        places = ",".join(f"127.0.0.1:{self.public(s.port)}" for s in self.sentinels)
        return f"sentinel://{places}/{NAME}"

    def switched(self, within_s=20):
        """Waits for +switch-master; from then on, `master` is the new one."""
        ready = wait([w.socket for w in self.news], within_s)
        if not ready:
            raise TimeoutError(f"no +switch-master within {within_s} s")
        said = next(w for w in self.news if w.socket is ready[0]).receive()[2]
        self.heard.add(said)
        self.master = next(s for s in self.servers
                           if self.public(s.port) == int(said.split(" ")[4]))

    def calm(self):
        """Nothing was switched but what the case did. On a machine that is too busy,
        Sentinels may take a master for dead that is only slow."""
        for wire in self.news:
            wire.socket.settimeout(0.02)
            try:
                while True:
                    self.heard.add(wire.receive()[2])
            except TimeoutError:
                pass
        return len(self.heard) == 1
