"""etcd and ZooKeeper as places of a torture: three servers each, of which a majority has to live,
set up as their own documentation does it."""
import contextlib
import json
import socket
import urllib.request

from children import Child, until
from machine import Machine
from places import LOOK_S, Place
from servers import PORTS, READY_S

SIZE, ANSWER_S = 3, 2
START_S = 120  # of some JVMs beside each other


class Member(Child):
    """One of the servers. `port` is its clients'."""

    def __init__(self, folder, port, command, **how):
        self.folder, self.port = folder, port
        super().__init__(command, folder / "log", **how)

    def restart(self):
        self.launch()

    def stop(self):
        self.kill()
        self.output.close()

    def leads(self):
        """Whether it says so; None: it says nothing."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            return self.ask_leads()
        return None

    def ask_leads(self):
        raise NotImplementedError


class Etcd(Member):
    def __init__(self, folder, index, ports, peers):
        folder.mkdir()
        url, peer = (f"http://127.0.0.1:{every[index]}" for every in (ports, peers))
        super().__init__(folder, ports[index], [
            "etcd", "--name", f"m{index}", "--data-dir", folder / "data",
            "--listen-client-urls", url, "--advertise-client-urls", url,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", ",".join(
                f"m{i}=http://127.0.0.1:{port}" for i, port in enumerate(peers))])

    def ask_leads(self):
        asking = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v3/maintenance/status", b"{}")
        with urllib.request.urlopen(asking, timeout=ANSWER_S) as answer:
            said = json.load(answer)
        return said["leader"] == said["header"]["member_id"] if said["leader"] != "0" else None


class Keeper(Member):
    """Of ZooKeeper; its clock can be set."""

    TICK_MS = 1000  # half of the shortest session that it grants

    def __init__(self, folder, index, ports, peers, classpath, library):
        folder.mkdir()
        self.machine, file = library and Machine(folder, library), folder / "zoo.cfg"
        peers = [f"server.{i}=127.0.0.1:{a}:{b};127.0.0.1:{port}"
                 for i, ((a, b), port) in enumerate(zip(peers, ports))]
        (folder / "myid").write_text(str(index))
        file.write_text("\n".join([
            f"tickTime={self.TICK_MS}", "initLimit=10", "syncLimit=5", f"dataDir={folder}",
            "admin.enableServer=false", *peers, ""]))
        super().__init__(folder, ports[index], [
            "java", "-Xmx128m", "-XX:+UseSerialGC", "-cp", classpath,
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", file],
            env=self.machine and self.machine.environment)

    def ask_leads(self):
        with socket.create_connection(("127.0.0.1", self.port), ANSWER_S) as link:
            link.sendall(b"srvr")
            said = b"".join(iter(lambda: link.recv(1 << 12), b""))
        return b"Mode: leader" in said if b"Mode: " in said else None


class Ensemble(Place):
    """Clients reach the servers through the network; these reach each other."""

    def __init__(self, stage, library):
        super().__init__(stage)
        ports = [PORTS.take() for _ in range(SIZE)]
        self.members = [stage.keep(m) for m in self.make(ports, library)]
        network = self.with_network()
        self.ports = [network.stands_for(port) for port in ports]
        self.old = None
        self.settled()

    def make(self, ports, library):
        raise NotImplementedError

    def servers(self):
        return self.members

    def leading(self):
        return next((m for m in self.members if m.leads()), None)

    def settled(self):
        until(lambda: sorted(str(m.leads()) for m in self.members) == ["False", "False", "True"],
              "one leads two", START_S, LOOK_S)

    def chosen(self):
        """The leader, that something is going to happen to."""
        self.old = self.leading()
        return self.old

    def switched(self):
        until(lambda: any(m.leads() for m in self.members if m is not self.old),
              "another one leads", READY_S, LOOK_S)


class EtcdCluster(Ensemble):
    def make(self, ports, library):
        peers = [PORTS.take() for _ in ports]
        return [Etcd(self.stage.folder / f"etcd-{i}", i, ports, peers) for i in range(SIZE)]


class Keepers(Ensemble):
    classpath = None

    def make(self, ports, library):
        peers = [(PORTS.take(), PORTS.take()) for _ in ports]
        return [Keeper(self.stage.folder / f"keeper-{i}", i, ports, peers, self.classpath, library)
                for i in range(SIZE)]
