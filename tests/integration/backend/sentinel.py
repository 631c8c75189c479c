#!/usr/bin/env python3
"""latchd behind real Sentinels: sentinel.py LATCHD. Prints TAP.

Failover under load, with a checker, is in tests/failover; the Sentinels here are those
of there.
"""
import contextlib
import functools
import pathlib
import select
import signal
import sys
import tempfile
import time
import urllib.request

sys.dont_write_bytecode = True  # nothing is written beside the sources
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import Certs, Skip, need, run, tap
from children import Child, until
from faults import Network
from sentinels import NAME, REDIS_FROM, Sentinels
from servers import PORTS, Latchd, Rack

BACK_S = 5  # from +switch-master to grants
DAEMON = ("--redis-timeout", "1s", "--watchdog-timeout", "5s")


@contextlib.contextmanager
def stage():
    with tempfile.TemporaryDirectory(prefix="latchd-sentinel-") as folder:
        with Rack(folder) as one:
            yield one


class TooLate(AssertionError):
    """What was to be seen could not be seen any more: neither right nor wrong."""


def in_calm(case, networked=False):
    """On a machine that is too busy, Sentinels may take a master for dead that is only
    slow, or correct what a case was about to look at: then it is tried again. Networked:
    everybody reaches everybody through sentinels.network."""
    @functools.wraps(case)
    def tried():
        for again in (True, True, False):
            with stage() as here:
                network = here.keep(Network(here.folder)) if networked else None
                sentinels = Sentinels(here, network)
                try:
                    return case(here, sentinels)
                except (AssertionError, TimeoutError) as error:
                    if not again or (sentinels.calm() and not isinstance(error, TooLate)):
                        raise
                    print(f"# again, as Sentinels acted by themselves: {error}")
    return tried


def latchd(here, url, *options):
    return here.keep(Latchd(PROGRAM, here.folder, "a", url, *DAEMON, *options))


def has(feature):
    return feature in run([PROGRAM, "--version"]).stdout


def kept(daemon):
    """A connection that holds `held`, and one that waits for it."""
    holder, waiter = daemon.wire(), daemon.wire()
    token = holder.ask("LOCK", "held")
    waiter.send("LOCK", "held")
    until(lambda: daemon.info("waiters") == "1", "somebody waits")
    return holder, waiter, token


def is_back(daemon, since):
    """From +switch-master to a grant of a name that nobody had."""
    def granted():
        with daemon.wire() as wire:
            try:
                return wire.ask("LOCK", "new", "WAIT", 0, "LEASE", 100)
            except Exception:  # pylint: disable=broad-exception-caught
                return None
    until(granted, "locks are granted")
    took = time.monotonic() - since
    print(f"# granted {took * 1000:.0f} ms after +switch-master", flush=True)
    return took


def goes_on(holder, waiter, token):
    """The hold is kept, and handed over with a higher token."""
    said = holder.ask("UNLOCK", "held", "TOKEN", token)
    assert said == 0, said  # nothing is left of it
    said = waiter.reply()
    assert said > token, f"{said} after {token}"


@in_calm
def a_killed_master_is_replaced_while_somebody_waits(here, sentinels):
    port = PORTS.take()
    daemon = latchd(here, sentinels.url,
                    *(["--http-port", port] if has("+http") else [])).ready()
    assert daemon.info("redis_kind") == "sentinel"
    assert daemon.info("redis_address").endswith(f":{sentinels.master.port}")
    until(lambda: daemon.info("redis_sentinels_reachable") == "3", "all are heard")
    sentinels.sentinels[2].kill()
    sentinels.news.pop()
    until(lambda: daemon.info("redis_sentinels_reachable") == "2", "one is gone")
    holder, waiter, token = kept(daemon)
    with holder, waiter:
        sentinels.master.kill()
        sentinels.switched()
        took = is_back(daemon, time.monotonic())
        goes_on(holder, waiter, token)
    assert took < BACK_S + quarantine(daemon), f"{took} s\n{daemon.said()}"
    assert daemon.info("redis_address").endswith(f":{sentinels.master.port}"), daemon.said()
    assert daemon.info("redis_switches") == "1", daemon.said()
    assert int(daemon.info("redis_master_epoch")) >= 1, daemon.said()
    if has("+http"):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
            metrics = page.read().decode().splitlines()
        for line in ("latchd_sentinels 3", "latchd_sentinels_reachable 2",
                     "latchd_redis_switches_total 1"):
            assert line in metrics, line
    for line in ("failover: the master", "min-replicas-to-write is 0"):
        assert line in daemon.log.read_text(), daemon.said()


def quarantine(daemon):
    """How long names that nobody held here are not granted, if they are not."""
    with daemon.wire() as wire:
        said = wire.ask("CONFIG", "GET", "failover-quarantine")
    return 5 if said else 0


def scripts(server):
    with server.wire() as wire:
        for line in wire.ask("INFO", "commandstats").splitlines():
            if line.startswith("cmdstat_evalsha:calls="):
                return int(line.split("=")[1].split(",")[0])
    return 0


def is_still_master(server):
    if server.info("role") != "master":
        raise TooLate("Sentinels have told it")


@in_calm
def a_stopped_master_that_goes_on_is_not_written_to(here, sentinels):
    daemon = latchd(here, sentinels.url).ready()
    old = sentinels.master
    holder, waiter, token = kept(daemon)
    with holder, waiter:
        old.pause()
        sentinels.switched()
        is_back(daemon, time.monotonic())
        old.resume()
        goes_on(holder, waiter, token)
    # It still takes itself for the master, for the 8 s after which Sentinels tell it
    # otherwise, and what was sent before has run.
    is_still_master(old)
    before = scripts(old)
    end = time.monotonic() + 1
    with daemon.wire() as wire:
        while time.monotonic() < end:
            wire.ask("UNLOCK", "busy", "TOKEN", wire.ask("LOCK", "busy"))
    is_still_master(old)
    assert scripts(old) == before
    assert "name=latchd" not in old.ask("CLIENT", "LIST")


@in_calm
def passwords_are_used_on_both_through_a_failover(here, sentinels):
    for server in sentinels.servers:
        with server.wire() as wire:
            for key in ("masterauth", "requirepass"):
                wire.ask("CONFIG", "SET", key, "of:redis")
    for sentinel in sentinels.sentinels:
        with sentinel.wire() as wire:
            wire.ask("SENTINEL", "SET", NAME, "auth-pass", "of:redis")
            wire.ask("SENTINEL", "CONFIG", "SET", "sentinel-pass", "of&sentinels")
            wire.ask("ACL", "SETUSER", "default", "resetpass", ">of&sentinels")
    places = ",".join(f"localhost:{s.port}" for s in sentinels.sentinels)
    url = (f"sentinel://:of%3Aredis@{places}/{NAME}/3"
           "?sentinel-password=of%26sentinels")
    daemon = latchd(here, url).ready()
    holder, waiter, token = kept(daemon)
    with holder, waiter:
        with sentinels.sentinels[0].wire() as wire:
            wire.ask("AUTH", "of&sentinels")
            until(lambda: failed_over(wire), "a failover begins", every_s=0.1)
        sentinels.switched()
        is_back(daemon, time.monotonic())
        goes_on(holder, waiter, token)
    with daemon.wire() as wire:
        shown = wire.ask("CONFIG", "GET", "redis")[1]
    assert shown == f"sentinel://:***@{places}/{NAME}/3?sentinel-password=***", shown
    assert "of:redis" not in daemon.log.read_text()
    assert "of&sentinels" not in daemon.log.read_text()


def left_of_the_gate(daemon):
    """What is to be counted, or None while Redis cannot be asked."""
    with daemon.wire() as wire:
        try:
            said = wire.ask("LATCH", "INFO", "gate")
        except Exception:  # pylint: disable=broad-exception-caught
            return None
    about = dict(zip(said[::2], said[1::2]))
    assert about["state"] == "set", said
    return about["left"]


def is_silent(wire):
    return not select.select([wire.socket], [], [], 0)[0]


@functools.partial(in_calm, networked=True)
def a_latch_has_its_counts_again_after_a_failover_that_lost_them(here, sentinels):
    """Two of three counts are on no server but the master that dies. Who waits, through
    either daemon, goes on once, when the last part is counted and not before."""
    daemons = [here.keep(Latchd(PROGRAM, here.folder, label, sentinels.url,
                                "--redis-timeout", "1s")).ready() for label in "ab"]
    parts = [f"part-{i}-of-the-gate" for i in range(4)]
    with contextlib.ExitStack() as stack:
        a, b = (stack.enter_context(daemon.wire()) for daemon in daemons)
        waiters = [stack.enter_context(daemon.wire()) for daemon in 2 * daemons]
        assert a.ask("LATCH", "SET", "gate", len(parts)) == 1
        for waiter in waiters:
            waiter.send("LATCH", "AWAIT", "gate")
        for daemon in daemons:
            until(lambda daemon=daemon: daemon.info("awaits") == "2", "they wait")
        assert a.ask("LATCH", "COUNT", "gate", "ID", parts[0]) == 3
        replicas = sentinels.servers[1:]
        until(lambda: all(r.ask("GET", "gate") == "3" for r in replicas), "it is replicated")
        sentinels.network.between(REDIS_FROM, sentinels.master.port, "hold")
        assert a.ask("LATCH", "COUNT", "gate", "ID", parts[1]) == 2
        assert b.ask("LATCH", "COUNT", "gate", "ID", parts[2]) == 1
        assert [r.ask("GET", "gate") for r in replicas] == ["3", "3"]
        sentinels.master.kill()
        sentinels.switched()
        for daemon in daemons:
            until(lambda daemon=daemon: daemon.info("redis_switches") == "1", "it follows")
            until(lambda daemon=daemon: left_of_the_gate(daemon) == 1, "both are counted again")
        assert all(is_silent(waiter) for waiter in waiters)
        assert b.ask("LATCH", "COUNT", "gate", "ID", parts[1]) == 1
        assert sentinels.master.ask("GET", "gate") == "1"
        assert all(is_silent(waiter) for waiter in waiters)
        assert b.ask("LATCH", "COUNT", "gate", "ID", parts[3]) == 0
        for waiter in waiters:
            assert waiter.reply() == 1
            assert waiter.ask("PING") == "PONG"  # and nothing was said before that
        for daemon in daemons:
            assert daemon.info("awaits") == "0"
        assert a.ask("LATCH", "COUNT", "gate", "ID", parts[2]) == 0


def failed_over(wire):
    """-NOGOODSLAVE and so on, until the Sentinel has seen all with their passwords."""
    try:
        return wire.ask("SENTINEL", "FAILOVER", NAME) == "OK"
    except Exception:  # pylint: disable=broad-exception-caught
        return False


def without_any_sentinel_it_waits_and_says_so():
    with stage() as here:
        sentinels = Sentinels(here)
        for sentinel in sentinels.sentinels:
            sentinel.kill()
        daemon = latchd(here, sentinels.url)
        until(lambda: daemon.log.read_text().count("cannot use") >= 3, "it says so")
        daemon.alive()
        sentinels.sentinels[1].restart()
        daemon.ready()


def tls_is_used_to_all_of_them():
    if not has("+tls"):
        raise Skip("this latchd was built without TLS")
    with stage() as here:
        certs = Certs(here.folder)
        common = ["--port", 0, "--dir", here.folder, "--save", "", "--bind", "127.0.0.1",
                  "--tls-replication", "yes", *certs.of_redis()]
        ports = PORTS.take(), PORTS.take()
        config = here.folder / "sentinel.conf"
        config.write_text(f"sentinel monitor {NAME} 127.0.0.1 {ports[0]} 1\n")
        for port, how in zip(ports, ([], [config, "--sentinel"])):
            here.keep(Child(["redis-server", *how, "--tls-port", port, *common],
                            here.folder / f"{port}.log"))
        daemon = here.keep(Latchd(
            PROGRAM, here.folder, "a", f"sentinels://localhost:{ports[1]}/{NAME}", *DAEMON,
            "--redis-tls-ca-cert-file", certs.path("ca.pem"))).ready()
        assert daemon.info("redis_address") == f"127.0.0.1:{ports[0]}"


CASES = [
    a_killed_master_is_replaced_while_somebody_waits,
    a_stopped_master_that_goes_on_is_not_written_to,
    passwords_are_used_on_both_through_a_failover,
    a_latch_has_its_counts_again_after_a_failover_that_lost_them,
    without_any_sentinel_it_waits_and_says_so,
    tls_is_used_to_all_of_them,
]

PROGRAM = sys.argv[1]
need("redis-server")
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
WANTED = sys.argv[2:]
sys.exit(1 if tap([(c.__name__, c) for c in CASES if not WANTED or c.__name__ in WANTED],
                   at_once=3)
         else 0)
