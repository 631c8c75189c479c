#!/usr/bin/env python3
"""A quorum of independent masters on the wire: quorum.py LATCHD.

Real redis-servers that are killed, stopped and come back empty; several daemons on them.
Prints TAP.
"""
import contextlib
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from lock_scripts import TAKE_SEVERAL
from stand import tap
from children import until
from resp import Error
from servers import Latchd, Redis

LEASE_MS = 2000  # of the watchdog, and how long a new server has no vote
SOON_S = 60


class Quorum:
    """Servers, and daemons on all of them."""

    def __init__(self, latchd, folder, count, daemons, lease_ms=LEASE_MS):
        self.lease_ms = lease_ms
        self.folder = pathlib.Path(folder)
        self.servers = [Redis(self.folder).ready() for _ in range(count)]
        self.text = "quorum " + " ".join(s.url for s in self.servers)
        self.program = latchd
        self.daemons = [self.daemon(f"d{i}") for i in range(daemons)]

    def daemon(self, name):
        return Latchd(self.program, self.folder, name, self.text, "--watchdog-timeout",
                      f"{self.lease_ms}ms", "--redis-timeout", "3s")

    def voting(self):
        """Every daemon counts on every server: they have run for long enough."""
        for daemon in self.daemons:
            until(lambda d=daemon: all(f",role=master,up=1" in n for n in nodes(d)),
                  "all servers vote", SOON_S)
        return self

    def holders(self, name):
        """What each server has under that name; None: it cannot be asked."""
        return [holder(s, name) for s in self.servers]

    def stop(self):
        for child in self.daemons:
            child.stop()
        for server in self.servers:
            server.stop()


def nodes(daemon):
    try:
        with daemon.wire() as wire:
            lines = wire.ask("INFO", "redis").splitlines()
    except (OSError, Error):
        return [""]
    return [line for line in lines if line.startswith("redis_node")]


def holder(server, name):
    try:
        with server.wire(3) as wire:
            return wire.ask("HKEYS", name)
    except OSError:
        return None


@contextlib.contextmanager
def fresh_quorum(latchd, count=3, daemons=1, lease_ms=LEASE_MS):
    """Its servers have no vote yet."""
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        q = Quorum(latchd, folder, count, daemons, lease_ms)
        try:
            for daemon in q.daemons:
                daemon.ready()
            yield q
        finally:
            q.stop()


@contextlib.contextmanager
def quorum(latchd, count=3, daemons=1):
    with fresh_quorum(latchd, count, daemons) as q:
        yield q.voting()


def same(got, wanted):
    if got != wanted:
        raise AssertionError(f"wanted {wanted!r}, got {got!r}")


def refused(wire, word, *command):
    try:
        reply = wire.ask(*command)
    except Error as error:
        if word in str(error):
            return
        raise
    raise AssertionError(f"{command}: wanted {word}, got {reply!r}")


def free(q, name, but=()):
    until(lambda: all(h in ([], None) or i in but
                      for i, h in enumerate(q.holders(name))), f"{name} is free", SOON_S)


# --- the cases ------------------------------------------------------------------------

def every_server_has_what_is_held(latchd):
    with quorum(latchd, daemons=2) as q:
        with q.daemons[0].wire() as a, q.daemons[1].wire() as b:
            token = a.ask("LOCK", "job", "WAIT", 5000)
            until(lambda: all(h == q.holders("job")[0] != [] for h in q.holders("job")),
                  "all three have it", SOON_S)
            same(b.ask("LOCK", "job", "WAIT", 0), None)
            same(b.ask("UNLOCK", "job", "TOKEN", token), 0)
            same(b.ask("UNLOCK", "job", "TOKEN", token), 0)
            free(q, "job")
            again = b.ask("LOCK", "job", "WAIT", 5000)
            if again <= token:
                raise AssertionError(f"{again} is not above {token}")
            same(b.ask("UNLOCK", "job"), 0)


def a_release_wakes_who_waits_elsewhere(latchd):
    with quorum(latchd, daemons=2) as q:
        with q.daemons[0].wire() as a, q.daemons[1].wire() as b:
            a.ask("LOCK", "job", "WAIT", 5000)
            b.send("LOCK", "job", "WAIT", 20000)
            until(lambda: q.servers[0].ask("PUBSUB", "NUMSUB",
                                           "redisson_lock__channel:{job}")[1] > 0,
                  "it listens", SOON_S)
            time.sleep(0.1)  # not for luck: it is to sleep by now, if it ever does
            begin = time.monotonic()
            same(a.ask("UNLOCK", "job"), 0)
            if not isinstance(b.reply(), int):
                raise AssertionError("not granted")
            print(f"# woken after {1000 * (time.monotonic() - begin):.1f} ms")
            same(b.ask("UNLOCK", "job"), 0)


def kinds_that_it_has_not_are_refused(latchd):
    with quorum(latchd) as q, q.daemons[0].wire() as a:
        for kind in ("FAIR", "READ", "WRITE"):
            refused(a, "quorum", "LOCK", "job", kind, "WAIT", 0)
        refused(a, "quorum", "EVAL", TAKE_SEVERAL, 2, "one", "two", "v", 5000)
        free(q, "one")
        token = a.ask("MLOCK", 2, "one", "two", "WAIT", 5000)
        same(len(token), 2)
        same(a.ask("UNLOCK", "one", "TOKEN", token[0]), 0)
        same(a.ask("UNLOCK", "two", "TOKEN", token[1]), 0)
        first = a.ask("LOCK", "own", "OWNER", "o", "WAIT", 5000)
        same(a.ask("LOCK", "own", "OWNER", "o", "WAIT", 5000), first)
        same(a.ask("UNLOCK", "own", "OWNER", "o"), 1)
        same(a.ask("UNLOCK", "own", "OWNER", "o"), 0)
        free(q, "own")
        token = a.ask("LOCK", "id", "ID", "0123456789abcdef", "WAIT", 5000)
        same(a.ask("LOCK", "id", "ID", "0123456789abcdef", "WAIT", 5000), token)
        same(a.ask("UNLOCK", "id", "ID", "0123456789abcdef"), 0)
        free(q, "id")


def numbers_that_cannot_be_are_refused(latchd):
    urls = [f"redis://127.0.0.1:{p}" for p in (1, 2, 3, 4)]
    for words, why in ((urls[:2], "3 or 5"), (urls, "3 or 5"),
                       ([*urls[:2], urls[0]], "twice"),
                       ([*urls[:2], "rediss://127.0.0.1:3"], "or none"),
                       (urls[:3], "acknowledges")):
        done = subprocess.run([latchd, "--port", "0", "--redis", "quorum " + " ".join(words),
                               "--min-replicas", "1"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SOON_S, check=False)
        if done.returncode == 0 or why not in done.stderr + done.stdout:
            raise AssertionError(f"{words}: {done.returncode} {done.stderr}{done.stdout}")


def a_dead_minority_costs_nothing(latchd):
    with quorum(latchd) as q, q.daemons[0].wire() as a:
        held = a.ask("LOCK", "held", "WAIT", 5000)
        last = held
        q.servers[2].kill()
        for _ in range(20):
            token = a.ask("LOCK", "job", "WAIT", 5000)
            if token <= last:
                raise AssertionError(f"{token} is not above {last}")
            last = token
            same(a.ask("UNLOCK", "job"), 0)
        q.servers[2].restart()  # empty
        until(lambda: holder(q.servers[2], "held"), "it is healed", SOON_S)
        same(q.holders("held")[2], q.holders("held")[0])
        same(q.servers[2].ask("HGET", "held", q.holders("held")[0][0]), "1")
        if int(q.daemons[0].info("redis_quorum_healed")) == 0:
            raise AssertionError("healed, but not counted")
        q.voting()
        q.servers[0].kill()
        token = a.ask("LOCK", "job", "WAIT", 10000)
        if token <= last:
            raise AssertionError(f"{token} is not above {last}")
        same(a.ask("UNLOCK", "job"), 0)
        same(a.ask("UNLOCK", "held", "TOKEN", held), 0)


def two_that_come_back_empty_let_nobody_else_in(latchd):
    with quorum(latchd, daemons=2) as q:
        with q.daemons[0].wire() as a, q.daemons[1].wire() as b:
            token = a.ask("LOCK", "job", "WAIT", 5000)
            for i in (1, 2):
                q.servers[i].kill()
                q.servers[i].restart()
                same(b.ask("LOCK", "job", "WAIT", 300), None)
                until(lambda i=i: holder(q.servers[i], "job"), "it is healed", SOON_S)
            same(a.ask("UNLOCK", "job", "TOKEN", token), 0)


def one_that_was_a_replica_has_no_vote(latchd):
    """However long it has been running: it may have lost what it granted."""
    with quorum(latchd) as q:
        q.servers[0].ask("REPLICAOF", "127.0.0.1", q.servers[1].port)
        until(lambda: any("up=0" in n for n in nodes(q.daemons[0])), "it is gone", SOON_S)
        q.servers[0].ask("REPLICAOF", "NO", "ONE")
        until(lambda: any("role=abstains,up=1" in n for n in nodes(q.daemons[0])),
              "it abstains", SOON_S)
        q.voting()


def names_that_are_withheld_are_not_said_to_be_held(latchd):
    with fresh_quorum(latchd, lease_ms=10_000) as q:
        with q.daemons[0].wire() as a, q.daemons[0].wire() as head:
            same(state(a, "job"), "withheld")
            head.send("LOCK", "job")
            for wait in (0, 300):
                refused(a, "no new grants", "LOCK", "free", "WAIT", wait)
                refused(a, "no new grants", "LOCK", "job", "WAIT", wait)
                refused(a, "no new grants", "LOCK", "id", "ID", "0123456789abcdef", "WAIT", wait)
                refused(a, "no new grants", "LOCK", "own", "OWNER", "o", "WAIT", wait)
                refused(a, "no new grants", "MLOCK", 2, "one", "two", "WAIT", wait)
            same(state(a, "job"), "withheld")
            if not isinstance(head.reply(), int):  # when they vote
                raise AssertionError("not granted")
            same(a.ask("LOCK", "job", "WAIT", 0), None)
            for server in q.servers[:2]:
                server.kill()
                server.restart()  # empty, and the third has what is held
            until(lambda: ",up=1" in "".join(nodes(q.daemons[0])[:1]), "they are back", SOON_S)
            same(a.ask("LOCK", "job", "WAIT", 300), None)
            until(lambda: tells(a, "no new grants", "LOCK", "free", "WAIT", 300),
                  "it is withheld", SOON_S)


def state(wire, name):
    reply = wire.ask("LOCKINFO", name)
    return reply[reply.index("state") + 1]


def tells(wire, word, *command):
    try:
        refused(wire, word, *command)
    except (AssertionError, Error):
        return False
    return True


def what_a_minority_granted_is_undone(latchd):
    with quorum(latchd) as q, q.daemons[0].wire() as a:
        for server in q.servers[:2]:  # a stranger's RedLock
            server.ask("HSET", "job", "uuid:1", 1)
            server.ask("PEXPIRE", "job", 60000)
        same(a.ask("LOCK", "job", "WAIT", 0), None)
        free(q, "job", but=(0, 1))
        q.servers[2].pause()
        same(a.ask("LOCK", "job", "WAIT", 100), None)
        q.servers[2].resume()
        free(q, "job", but=(0, 1))
        until(lambda: q.daemons[0].info("redis_quorum_chores") == "0", "all is done", SOON_S)
        same(q.holders("job")[2], [])
        a.send("LOCK", "job", "WAIT", 20000)
        until(lambda: q.servers[0].ask("PUBSUB", "NUMSUB",
                                       "redisson_lock__channel:{job}")[1] > 0,
              "it listens", SOON_S)
        for server in q.servers[:2]:
            server.ask("DEL", "job")
            server.ask("PUBLISH", "redisson_lock__channel:{job}", "0")
        if not isinstance(a.reply(), int):
            raise AssertionError("not granted")


def a_stopped_minority_costs_nothing(latchd):
    with quorum(latchd, 5, 2) as q:
        with q.daemons[0].wire() as a, q.daemons[1].wire() as b:
            for server in q.servers[3:]:
                server.pause()
            for i in range(50):
                wire = a if i % 2 else b
                token = wire.ask("LOCK", "job", "WAIT", 5000)
                same((b if i % 2 else a).ask("LOCK", "job", "WAIT", 0), None)
                same(wire.ask("UNLOCK", "job", "TOKEN", token), 0)
            for server in q.servers[3:]:
                server.resume()
            free(q, "job")
            for daemon in q.daemons:
                until(lambda d=daemon: d.info("redis_quorum_chores") == "0", "all is done",
                      SOON_S)
            same(q.holders("job"), [[]] * 5)


def without_a_majority_nothing_is_granted(latchd):
    with quorum(latchd) as q, q.daemons[0].wire() as a:
        for server in q.servers[:2]:
            server.kill()
        refused(a, "BACKEND", "LOCK", "job", "WAIT", 0)
        for server in q.servers[:2]:
            server.restart()
        if not isinstance(a.ask("LOCK", "job", "WAIT", 20000), int):
            raise AssertionError("not granted")


def a_client_goes_on_at_another_daemon(latchd):
    with quorum(latchd, daemons=2) as q:
        with q.daemons[0].wire() as a:
            token = a.ask("LOCK", "job", "WAIT", 5000)
            q.daemons[0].kill()
        with q.daemons[1].wire() as b:
            until(lambda: renewed(b, token), "it is kept there", LEASE_MS / 1000)
            end = time.monotonic() + 1.5 * LEASE_MS / 1000
            while time.monotonic() < end:  # it is renewed there
                same(b.ask("LOCK", "job", "WAIT", 0), None)
                time.sleep(0.1)
            same(b.ask("UNLOCK", "job", "TOKEN", token), 0)
            free(q, "job")


def an_id_keeps_its_token_where_its_majority_is_gone(latchd):
    """Of the three that had it one is left, one lost it, one has died, and so has its daemon."""
    words = "LOCK", "job", "ID", "0123456789abcdef", "LEASE", 60_000, "WAIT", 5000
    with quorum(latchd, daemons=2) as q:
        with q.daemons[0].wire() as a:
            token = a.ask(*words)
            until(lambda: all(h == q.holders("job")[0] != [] for h in q.holders("job")),
                  "all three have it", SOON_S)
        q.daemons[0].kill()
        q.servers[1].ask("DEL", *q.servers[1].ask("KEYS", "*job*"))
        q.servers[2].kill()
        with q.daemons[1].wire() as b:
            same(b.ask(*words), token)
            held = q.holders("job")
            same((held[0] == held[1] != [], held[2]), (True, None))
            same(b.ask("UNLOCK", "job", "TOKEN", token), 0)
            free(q, "job")


def renewed(wire, token):
    try:
        wire.ask("RENEW", "job", "TOKEN", token)
    except Error as error:
        if not str(error).startswith("BACKEND"):
            raise
        return False
    return True


def a_server_with_two_addresses_has_one_vote(latchd):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as text:
        folder = pathlib.Path(text)
        with contextlib.ExitStack() as stack:
            path = folder / "redis.sock"
            servers = [stack.enter_context(Redis(folder, *options).ready())
                       for options in (("--unixsocket", path), ())]
            daemon = stack.enter_context(Latchd(
                latchd, folder, "d", f"quorum {servers[0].url} unix://{path} {servers[1].url}",
                "--watchdog-timeout", f"{LEASE_MS}ms", "--redis-timeout", "1s"))
            until(lambda: "are one server: it has one vote" in daemon.said(), "it is told",
                  SOON_S)
            until(lambda: grants(daemon, "job"), "both together are a majority", SOON_S)
            servers[1].kill()
            until(lambda: not grants(daemon, "other"), "one alone is none", SOON_S)


def grants(daemon, name):
    try:
        with daemon.wire() as wire:
            return isinstance(wire.ask("LOCK", name, "WAIT", 0, "LEASE", 100), int)
    except (OSError, Error):
        return False


def many_daemons_ask_for_one_name(latchd):
    rounds, granted, failures = 10, [], []

    def contend(daemon):
        try:
            with daemon.wire() as wire:
                for _ in range(rounds):
                    token = wire.ask("LOCK", "job", "WAIT", 25000)
                    granted.append(token)
                    same(wire.ask("UNLOCK", "job", "TOKEN", token), 0)
        except Exception as error:  # it is told below
            failures.append(error)

    with quorum(latchd, daemons=5) as q:
        begin = time.monotonic()
        threads = [threading.Thread(target=contend, args=[d]) for d in q.daemons]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"# {len(granted)} grants in {time.monotonic() - begin:.2f} s")
        same(failures, [])
        same(len(granted), rounds * len(q.daemons))
        same(granted, sorted(set(granted)))
        free(q, "job")


CASES = [every_server_has_what_is_held, a_release_wakes_who_waits_elsewhere,
         kinds_that_it_has_not_are_refused, numbers_that_cannot_be_are_refused,
         a_dead_minority_costs_nothing, two_that_come_back_empty_let_nobody_else_in,
         one_that_was_a_replica_has_no_vote, names_that_are_withheld_are_not_said_to_be_held,
         what_a_minority_granted_is_undone, a_stopped_minority_costs_nothing,
         without_a_majority_nothing_is_granted, a_client_goes_on_at_another_daemon,
         an_id_keeps_its_token_where_its_majority_is_gone,
         a_server_with_two_addresses_has_one_vote, many_daemons_ask_for_one_name]


def main():
    latchd, wanted = sys.argv[1], sys.argv[2:]
    chosen = [c for c in CASES if not wanted or c.__name__ in wanted]
    sys.exit(1 if tap([(c.__name__, lambda c=c: c(latchd)) for c in chosen], at_once=3) else 0)


main()
