#!/usr/bin/env python3
"""A Redis that does not let latchd keep locks: fitness.py LATCHD.

Its user lacks rights, scripts are forbidden, memory or the disk is full: latchd says so, in the
log once and for /healthz as long as it lasts, and grants nothing that cannot be released. Prints
TAP.
"""
import contextlib
import http.client
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import tap
from children import until
from clusters import Cluster
from resp import Error
from servers import Latchd, Rack, Redis

SOON_S = 60
MEANWHILE_S = 3  # in which a link would reconnect a dozen times
LINES_MAX = 3    # of one kind in that time: one for each link that has something to say
EVERYTHING = ("~*", "&*", "+@all")


DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs/redis-user.md"


class Place(Rack):
    """A Redis, and a daemon that logs in there as the user u."""

    def __init__(self, latchd, folder, *rights, redis_options=(), options=()):
        super().__init__(folder)
        self.redis = self.keep(Redis(self.folder, *redis_options).ready())
        self.allow(*EVERYTHING, *rights)
        self.daemon = self.keep(Latchd(latchd, self.folder, "d",
                                       self.redis.url.replace("//", "//u:p@"),
                                       "--http-port", "auto", *options))

    def allow(self, *rights):
        assert self.redis.ask("ACL", "SETUSER", "u", "on", ">p", *rights) == "OK"

    def log(self):
        return self.daemon.log.read_text(errors="replace")

    def health(self):
        port = int(until(lambda: re.search(r"http: listening on \S+:(\d+)/", self.log()),
                         "it says where it listens", SOON_S)[1])
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=SOON_S)
        link.request("GET", "/healthz")
        answer = link.getresponse()
        text = answer.read().decode().strip()
        link.close()
        return answer.status, text

    def await_health(self, status, text=""):
        return until(lambda: self.health()[0] == status and text in self.health()[1],
                     f"/healthz says {status} {text}: {self.health()}\n{self.log()}", SOON_S)

    def ask(self, *words):
        with self.daemon.wire() as wire:
            try:
                return wire.ask(*words)
            except Error as error:
                return str(error)

    def connections(self):
        return int(self.redis.info("total_connections_received"))


@contextlib.contextmanager
def place(latchd, *rights, **more):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Place(latchd, folder, *rights, **more) as made:
            yield made


def lines_with(text, log):
    return sum(text in line for line in log.splitlines())


# What is taken away, what the log and /healthz say of it, and what gives it back.
LACKS = [
    (("resetchannels",), "lacks the rights &redisson_lock__channel:*", ("allchannels",)),
    (("-publish",), "lacks the rights +publish", ("+publish",)),
    (("-del", "-hset"), "lacks the rights +del +hset", ("+@all",)),
    (("resetkeys", "~latchd:fence:*"), "~latchd:ended:*", ("allkeys",)),
    (("-evalsha",), "it refuses EVALSHA", ("+evalsha",)),
    (("-script",), "it does not load scripts", ("+script",)),
]


def what_is_missing_is_said_and_nothing_granted(latchd, taken, said, given):
    with place(latchd, *taken) as here:
        until(lambda: said in here.log(), f"the log says {said}", SOON_S)
        before = here.connections()
        status, text = here.health()
        assert status == 503 and said in text, text
        assert here.ask("LOCK", "job", "WAIT", 100).startswith("BACKEND")
        assert here.redis.ask("DBSIZE") == 0
        here.ask("LOCK", "job", "WAIT", 1000 * MEANWHILE_S)
        assert lines_with("cannot use", here.log()) <= LINES_MAX, here.log()
        assert here.connections() - before < 40 * MEANWHILE_S
        here.allow(*given)
        here.await_health(200)
        assert isinstance(here.ask("LOCK", "job", "WAIT", 0), int)


def the_user_of_the_document_has_all_rights(latchd):
    rights = re.search(r"^ACL SETUSER latchd on >secret (.*)$", DOCUMENT.read_text(), re.M)[1]
    with place(latchd, "reset", "on", ">p", *rights.split()) as here:
        here.await_health(200)
        with here.daemon.wire() as first, here.daemon.wire() as second:
            token = first.ask("LOCK", "job", "FAIR", "WAIT", 0)
            second.send("LOCK", "job", "FAIR", "WAIT", 60000)
            until(lambda: here.daemon.info("waiters") == "1", "it waits", SOON_S)
            first.ask("UNLOCK", "job", "TOKEN", token)
            assert second.receive() > token
        assert here.daemon.info("redis_reconnects") == "0"
        for word in ("lacks", "refuses", "cannot"):
            assert word not in here.log(), here.log()


# Commands that the server does not have, and why it cannot keep locks then.
RENAMED = {
    "EVALSHA": "it refuses EVALSHA: ERR unknown command",
    "SCRIPT": "it does not load scripts: ERR unknown command",
    "TIME": "it refuses TIME: ERR unknown command",
    "HSET": "latchd's user lacks the rights +hset",
    "PUBLISH": "latchd's user lacks the rights +publish",
}


def a_renamed_command_is_said(latchd, command):
    with place(latchd, redis_options=("--rename-command", command, "")) as here:
        until(lambda: f"it cannot keep locks: {RENAMED[command]}" in here.log(), "it is said",
              SOON_S)
        status, text = here.health()
        assert status == 503 and "cannot keep locks" in text, text
        assert here.ask("LOCK", "job", "WAIT", 0).startswith("BACKEND")
        assert here.daemon.info("redis_refuses") == "1"
        assert here.daemon.info("redis_trouble") != ""


def locks_are_kept_without_commands_that_only_tell_more(latchd):
    renamed = [word for command in ("INFO", "CLIENT", "CONFIG", "WAIT", "HELLO", "SCAN")
               for word in ("--rename-command", command, "")]
    with place(latchd, redis_options=renamed) as here:
        here.await_health(200)
        token = here.ask("LOCK", "job", "WAIT", 0, "LEASE", 60000)
        assert here.ask("UNLOCK", "job", "TOKEN", token) == 0
        assert here.daemon.info("redis_refuses") == "0"
        for text in ("refuses INFO (", "refuses CONFIG GET (", "does not tell its maxmemory-policy ("):
            assert lines_with(text, here.log()) == 1, here.log()


def an_eviction_policy_that_is_set_later_is_said_until_it_is_gone(latchd):
    """Also where CONFIG is forbidden."""
    with place(latchd, "-config") as here:
        here.await_health(200)
        assert here.daemon.info("redis_evicting") == "0"
        here.redis.ask("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
        until(lambda: here.daemon.info("redis_evicting") == "1", "it is seen", SOON_S)
        assert lines_with("maxmemory-policy is volatile-lru at", here.log()) == 1, here.log()
        here.redis.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        until(lambda: here.daemon.info("redis_evicting") == "0", "it is gone", SOON_S)
        assert lines_with("maxmemory-policy is volatile-lru at", here.log()) == 1, here.log()
        assert lines_with("maxmemory-policy is noeviction at", here.log()) == 1, here.log()


def a_lock_outside_the_users_channels_can_be_released(latchd):
    """Of READ, WRITE and permits as well, though nobody who waits is woken."""
    with place(latchd, "resetchannels", "&redisson_lock__channel:{latchd:probe}",
               options=("--recheck", "200ms")) as here:
        here.await_health(200)
        for name, words in (("job", ()), ("doc", ("WRITE",)), ("doc2", ("READ",)),
                            ("pool", ("PERMITS", 1, "OF", 2))):
            with here.daemon.wire() as wire:
                token = wire.ask("LOCK", name, "WAIT", 0, *words)
                assert isinstance(token, int), token
                assert wire.ask("UNLOCK", name, "TOKEN", token) == 0
                again = wire.ask("LOCK", name, "WAIT", 0, *words)
                assert again > token
                wire.ask("UNLOCK", name, "TOKEN", again)
        with here.daemon.wire() as first, here.daemon.wire() as second:
            token = first.ask("LOCK", "job", "WAIT", 0)
            before = here.connections()
            second.send("LOCK", "job", "WAIT", 60000)
            until(lambda: here.daemon.info("waiters") == "1", "it waits", SOON_S)
            until(lambda: "refuses SUBSCRIBE" in here.log(), "it is said", SOON_S)
            here.ask("LOCK", "other", "WAIT", 0)
            here.ask("LOCK", "other", "WAIT", 1000 * MEANWHILE_S)
            assert here.connections() - before < 10, here.connections() - before
            assert lines_with("refuses SUBSCRIBE (", here.log()) <= LINES_MAX, here.log()
            first.ask("UNLOCK", "job", "TOKEN", token)
            assert second.receive() > token
            assert lines_with("redis-sub: lost", here.log()) <= 1, here.log()


def rights_that_are_taken_away_later_are_said(latchd):
    with place(latchd) as here:
        here.await_health(200)
        here.allow("-evalsha")
        assert here.ask("LOCK", "job", "WAIT", 0).startswith("BACKEND")
        here.await_health(503, "it refuses EVALSHA")
        here.allow("+evalsha")
        here.await_health(200)
        assert isinstance(here.ask("LOCK", "job", "WAIT", 0), int)


def a_redis_without_memory_is_unhealthy(latchd):
    """Also where nobody asks for a lock; what is held is kept and can be released."""
    with place(latchd) as here:
        here.await_health(200)
        token = here.ask("LOCK", "job", "WAIT", 0, "LEASE", 60000)
        here.redis.ask("CONFIG", "SET", "maxmemory", 1)
        here.await_health(503, "OOM command not allowed")
        assert "OOM" in here.daemon.info("redis_trouble")
        until(lambda: "nothing is granted by" in here.log(), "the log says it", SOON_S)
        assert here.ask("UNLOCK", "job", "TOKEN", token) == 0
        here.redis.ask("CONFIG", "SET", "maxmemory", 0)
        here.await_health(200)
        assert here.daemon.info("redis_trouble") == ""
        until(lambda: "takes grants again" in here.log(), "the log says it", SOON_S)
        assert lines_with("OOM", here.log()) == 1, here.log()


def a_redis_that_cannot_save_is_unhealthy(latchd):
    with place(latchd) as here:
        here.await_health(200)
        shutil.rmtree(here.redis.folder)
        here.redis.ask("CONFIG", "SET", "save", "3600 1")
        here.redis.ask("BGSAVE")
        here.await_health(503, "MISCONF")
        here.redis.ask("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
        here.await_health(200)


def a_master_without_its_replica_is_unhealthy(latchd):
    with place(latchd, options=("--min-replicas", 1)) as here:
        here.await_health(503, "replicas")
        replica = here.keep(Redis(here.folder, "--replicaof", "127.0.0.1", here.redis.port))
        here.await_health(200)
        replica.kill()
        here.await_health(503, "replicas")


def looks_without_an_error(master):
    """Whether latchd asks again and again, and the master refuses nothing meanwhile."""
    def calls():
        lines = master.ask("INFO", "commandstats").splitlines()
        return sum(int(line.split("calls=")[1].split(",")[0]) for line in lines
                   if line.startswith("cmdstat_set:"))
    errors, before = master.info("total_error_replies"), calls()
    until(lambda: calls() >= before + 2, "it is asked again", SOON_S)
    return master.info("total_error_replies") == errors


def a_cluster_is_unhealthy_when_no_master_takes_grants(latchd):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder, Rack(folder) as rack:
        cluster = Cluster(rack, replicated=False)
        daemon = rack.keep(Latchd(latchd, rack.folder, "d", cluster.url)).ready()
        for master in cluster.masters:
            until(lambda m=master: looks_without_an_error(m), "its own keys are found", SOON_S)
        for i, master in enumerate(cluster.masters):
            assert daemon.info("redis_trouble") == "", f"{i} of the masters are full"
            master.ask("CONFIG", "SET", "maxmemory", 1)
        until(lambda: "OOM" in daemon.info("redis_trouble"), "it is said", SOON_S)
        cluster.masters[0].ask("CONFIG", "SET", "maxmemory", 0)
        until(lambda: daemon.info("redis_trouble") == "", "it takes grants again", SOON_S)


def main(latchd):
    cases = [(f"{' '.join(row[0])} is said and nothing granted",
              lambda r=row: what_is_missing_is_said_and_nothing_granted(latchd, *r))
             for row in LACKS]
    cases += [(f"renamed {command} is said",
               lambda c=command: a_renamed_command_is_said(latchd, c)) for command in RENAMED]
    for function in (the_user_of_the_document_has_all_rights,
                     locks_are_kept_without_commands_that_only_tell_more,
                     an_eviction_policy_that_is_set_later_is_said_until_it_is_gone,
                     a_lock_outside_the_users_channels_can_be_released,
                     rights_that_are_taken_away_later_are_said,
                     a_redis_without_memory_is_unhealthy,
                     a_redis_that_cannot_save_is_unhealthy,
                     a_master_without_its_replica_is_unhealthy,
                     a_cluster_is_unhealthy_when_no_master_takes_grants):
        cases.append((function.__name__.replace("_", " "), lambda f=function: f(latchd)))
    return 1 if tap(cases, at_once=3) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
