#!/usr/bin/env python3
"""latchd with TLS to one Redis, and to all servers of a Redis Cluster, and of a quorum:
tls_places.py LATCHD.

Prints TAP. The servers have a port without TLS as well: for this test, not for latchd.
"""
import pathlib
import signal
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is written beside the sources
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import Certs, Skip, need, run, tap
from children import until
from clusters import Cluster
from resp import Error
from servers import PORTS, Latchd, Rack, Redis

DAEMON = ("--failover-quarantine", "0")


class Stage(Rack):
    """With certificates."""

    def __init__(self, program, folder):
        super().__init__(folder)
        self.program, self.certs = program, Certs(folder)

    def tls(self):
        """Options of a redis-server."""
        return ["--tls-port", PORTS.take(), *self.certs.of_redis()]

    def latchd(self, place, *more, name="latchd", authority="ca"):
        return self.keep(Latchd(self.program, self.folder, name, place, *DAEMON, *more,
                                "--redis-tls-ca-cert-file", self.certs.path(f"{authority}.pem")))


def tls_port(server):
    return server.command[server.command.index("--tls-port") + 1]


def urls(servers):
    return [f"127.0.0.1:{tls_port(server)}" for server in servers]


def one_redis(stage):
    """Also with a certificate of ours, which is replaced; and not if it is another's."""
    redis = stage.keep(Redis(stage.folder, *stage.tls(), "--tls-auth-clients", "yes")).ready()
    redis.ask("CONFIG", "SET", "requirepass", "secret")
    stage.certs.make("client", "latchd")
    key = stage.certs.path("client.key")
    how = (f"rediss://:secret@127.0.0.1:{tls_port(redis)}", "--redis-tls-cert-file",
           stage.certs.path("client.pem"), "--redis-tls-key-file", key)
    with stage.latchd(*how).ready().wire() as wire:
        assert wire.ask("LOCK", "there") > 0
        assert wire.ask("UNLOCK", "there") == 0
        assert wire.ask("CONFIG", "SET", "redis-tls-key-file", key) == "OK"
        try:
            got = wire.ask("CONFIG", "SET", "redis-tls-ca-cert-file", "/nonexistent")
        except Error as error:
            got = str(error)
        assert "redis-tls-ca-cert-file /nonexistent: No such file" in got, got
    stage.certs.authority("unknown")
    stranger = stage.latchd(*how, name="stranger", authority="unknown")
    until(lambda: "its certificate is refused" in stranger.said(), "Redis is refused")


def a_cluster(stage):
    """Nodes know each other's ports for it; a slot that moves is followed there."""
    cluster = Cluster(stage, "--tls-cluster", "yes", each=stage.tls, replicated=False)
    daemon = stage.latchd("clusters://" + urls(cluster.nodes)[0]).ready()
    names = [f"name-{i}" for i in range(20)]
    with daemon.wire() as wire:
        for name in names:
            assert wire.ask("LOCK", name) > 0
        known = {wire.info(f"redis_node{i}").split(",")[0] for i in range(3)}
        assert known == {f"address={at}" for at in urls(cluster.nodes)}, known
        source = cluster.master_of("moved")
        cluster.move(cluster.slot("moved"), next(m for m in cluster.masters if m is not source))
        assert wire.ask("LOCK", "moved") > 0


def a_quorum(stage):
    servers = [stage.keep(Redis(stage.folder, *stage.tls())).ready() for _ in range(3)]
    daemon = stage.latchd("quorum " + " ".join("rediss://" + at for at in urls(servers))).ready()
    with daemon.wire() as wire:
        assert wire.ask("LOCK", "name") > 0
        assert wire.ask("UNLOCK", "name") == 0


def on_a_stage(program, case):
    if "+tls" not in run([program, "--version"]).stdout:
        raise Skip("this latchd was built without TLS")
    with tempfile.TemporaryDirectory(prefix="latchd-tls-") as folder:
        with Stage(program, folder) as stage:
            case(stage)


def main():
    need("redis-server")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(1 if tap([(case.__name__, lambda case=case: on_a_stage(sys.argv[1], case))
                       for case in (one_redis, a_cluster, a_quorum)]) else 0)


main()
