#!/usr/bin/env python3
"""LOCK ... LOCAL where Redis is not just one: local_topologies.py LATCHD.

Behind Sentinels, on a Cluster and with min-replicas a name is lent as it is by a single Redis;
on a quorum LOCAL is an ordinary LOCK. Prints TAP.
"""
import contextlib
import pathlib
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # nothing is written beside the sources
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import need, tap
from children import until
from clusters import Cluster
from resp import Error
from sentinels import NAME, Sentinels
from servers import Redis
from stage import Stage

WINDOW_MS = 100
OPTIONS = ("--local-window", f"{WINDOW_MS}ms")
WAITERS, HANDOVERS = 5, 400
SOON_S = 60


@contextlib.contextmanager
def stage():
    with tempfile.TemporaryDirectory(prefix="latchd-local-") as folder:
        with Stage(PROGRAM, pathlib.Path(folder)) as one:
            yield one


def scripts(servers):
    """Calls of scripts that these have counted."""
    lines = [line for server in servers for line in server.ask("INFO", "commandstats").split()
             if line.startswith(("cmdstat_evalsha:", "cmdstat_eval:"))]
    return sum(int(line.split("calls=")[1].split(",")[0]) for line in lines)


def fields(server, name):
    with server.wire() as wire:
        return wire.ask("HKEYS", name)


def pass_on(daemon, name, count=HANDOVERS):
    """So many grants among some clients who wait, in order: (the last token, ms)."""
    last, began = 0, time.monotonic()
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(daemon.wire()) for _ in range(WAITERS)]
        for wire in wires:
            wire.send("LOCK", name, "LOCAL")
        for i in range(count):
            wire = wires[i % WAITERS]
            token = wire.receive()
            assert token > last, (token, last)
            last = token
            wire.send("UNLOCK", name, "TOKEN", token)
            assert wire.receive() == 0
            if i + WAITERS < count:
                wire.send("LOCK", name, "LOCAL")
    return last, (time.monotonic() - began) * 1000


def lent(daemon, servers, name="job"):
    """The last token of some hand-overs that stayed in memory."""
    last = 0

    def stay():
        nonlocal last
        before = scripts(servers)
        last, took_ms = pass_on(daemon, name)
        calls = scripts(servers) - before
        print(f"# {calls} scripts for {HANDOVERS} hand-overs in {took_ms:.0f} ms", flush=True)
        return calls <= 4 + 4 * (took_ms / WINDOW_MS + 1)
    until(stay, "a daemon that has just found Redis lends names", SOON_S)
    return last


def settled(daemon, server, name="job"):
    """A LOCAL hold that has a field of its own: its connection, and the token."""
    wire = daemon.wire()
    token = wire.ask("LOCK", name, "LOCAL")
    until(lambda: fields(server(), name) == [f"latchd:{token}"], "it is settled", SOON_S)
    return wire, token


def on_a_quorum_it_is_an_ordinary_lock():
    with stage() as here:
        servers = [here.keep(Redis(here.folder)).ready() for _ in range(3)]
        daemon = here.latchd("a", "quorum " + " ".join(s.url for s in servers),
                             "--failover-quarantine", "0", *OPTIONS).ready()
        before = scripts(servers)
        with daemon.wire() as wire:
            for _ in range(50):
                token = wire.ask("LOCK", "job", "LOCAL", "WAIT", 5000)
                until(lambda: sum(fields(s, "job") != [] for s in servers) >= 2,
                      "a majority has it", SOON_S)
                assert wire.ask("UNLOCK", "job", "TOKEN", token) == 0
        assert scripts(servers) - before >= 2 * 2 * 50


def on_a_cluster_names_are_lent():
    with stage() as here:
        cluster = Cluster(here)
        daemon = here.latchd("a", cluster.url, *OPTIONS).ready()
        for name in ("job", "other", "{tag}third"):
            last = lent(daemon, cluster.nodes, name)
            wire, token = settled(daemon, lambda n=name: cluster.master_of(n), name)
            assert token > last
            assert wire.ask("UNLOCK", name, "TOKEN", token) == 0
            wire.close()


def renews_loans(daemon, name="job"):
    """Clients go on asking for the name, until Redis has confirmed a loan of it once more."""
    before = int(daemon.info("loan_renewals"))

    def asked_on():
        pass_on(daemon, name, 4 * HANDOVERS)  # longer than a window
        return int(daemon.info("loan_renewals")) > before
    until(asked_on, "a loan is renewed", SOON_S)


def on_a_cluster_loans_are_renewed():
    with stage() as here:
        cluster = Cluster(here)
        daemon = here.latchd("a", cluster.url, "--local-window", "20ms").ready()
        renews_loans(daemon)
        renews_loans(daemon, "{tag}third")


def with_replicas_loans_are_renewed():
    with stage() as here:
        master, replica = (here.keep(Redis(here.folder)).ready() for _ in range(2))
        replica.ask("REPLICAOF", "127.0.0.1", master.port)
        until(lambda: replica.info("master_link_status") == "up", "it follows", SOON_S)
        daemon = here.latchd("a", master.url, "--min-replicas", "1", "--local-window",
                             "20ms").ready()
        until(lambda: grants(daemon, "job", 0), "it is acknowledged", SOON_S)
        renews_loans(daemon)


def behind_sentinels_names_are_lent_and_a_failover_keeps_a_settled_hold():
    with stage() as here:
        sentinels = Sentinels(here)
        daemon = here.latchd("a", sentinels.url, *OPTIONS, watchdog_ms=20_000).ready()
        last = lent(daemon, [sentinels.master])
        wire, token = settled(daemon, lambda: sentinels.master)
        assert token > last
        old = sentinels.master
        sentinels.sentinels[0].ask("SENTINEL", "FAILOVER", NAME)
        until(lambda: master_of(sentinels) is not old, "another master", SOON_S)
        until(lambda: renews(wire, token), "the hold is confirmed", SOON_S)
        assert wire.ask("UNLOCK", "job", "TOKEN", token) == 0
        until(lambda: grants(daemon, "job", token), "it is lent again", SOON_S)
        wire.close()


def master_of(sentinels):
    port = int(sentinels.sentinels[0].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)[1])
    return next(s for s in sentinels.servers if sentinels.public(s.port) == port)


def renews(wire, token):
    try:
        return wire.ask("RENEW", "job", "TOKEN", token) > 0
    except Error as error:
        assert "BACKEND" in str(error), error
        return False


def grants(daemon, name, above):
    try:
        with daemon.wire() as wire:
            token = wire.ask("LOCK", name, "LOCAL", "WAIT", 1000)
            assert token is None or token > above, (token, above)
            return token is not None and wire.ask("UNLOCK", name, "TOKEN", token) == 0
    except Error as error:
        assert "BACKEND" in str(error), error
        return False


def nobody_is_told_what_no_replica_has_acknowledged():
    with stage() as here:
        master, replica = (here.keep(Redis(here.folder)).ready() for _ in range(2))
        replica.ask("REPLICAOF", "127.0.0.1", master.port)
        until(lambda: replica.info("master_link_status") == "up", "it follows", SOON_S)
        daemon = here.latchd("a", master.url, "--min-replicas", "1", "--replica-timeout",
                             "300ms", *OPTIONS).ready()
        until(lambda: grants(daemon, "job", 0), "it is acknowledged", SOON_S)
        last = lent(daemon, [master])
        replica.pause()
        time.sleep(2 * WINDOW_MS / 1000)  # what was lent before is no more
        with daemon.wire() as wire:
            for _ in range(5):
                try:
                    said = wire.ask("LOCK", "job", "LOCAL", "WAIT", 0)
                except Error as error:
                    said = str(error).split(" ", maxsplit=1)[0]
                assert said in (None, "NOREPLICAS"), said
        replica.resume()
        until(lambda: acknowledged(daemon, last), "it is acknowledged again", SOON_S)


def acknowledged(daemon, above):
    try:
        return grants(daemon, "job", above)
    except AssertionError as error:
        assert "NOREPLICAS" in str(error), error
        return False


def main():
    need("redis-server")
    return 1 if tap([(case.__name__, case) for case in (
        on_a_quorum_it_is_an_ordinary_lock, on_a_cluster_names_are_lent,
        on_a_cluster_loans_are_renewed, with_replicas_loans_are_renewed,
        behind_sentinels_names_are_lent_and_a_failover_keeps_a_settled_hold,
        nobody_is_told_what_no_replica_has_acknowledged)], at_once=3) else 0


PROGRAM = sys.argv[1]
sys.exit(main())
