#!/usr/bin/env python3
"""Users and passwords at Redis, and how they change under load: passwords.py LATCHD. Prints TAP."""
import contextlib
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import tap
from children import Child, until
from clusters import Cluster
from resp import Error
from servers import Latchd, Rack, Redis

SOON_S = 60
OLD, NEW = "the old one", "the/new@one"
OLD_QUOTED, NEW_QUOTED = "the%20old%20one", "the%2Fnew%40one"


def single(rack):
    redis = rack.keep(Redis(rack.folder).ready())
    return [redis], redis.url


def on_a_unix_socket(rack):
    redis = Redis(rack.folder, "--unixsocket", rack.folder / "redis.sock")
    return [rack.keep(redis.ready())], f"unix://{rack.folder}/redis.sock"


def behind_a_sentinel(rack):
    redis = rack.keep(Redis(rack.folder).ready())
    file = rack.folder / "sentinel.conf"
    file.write_text(f"sentinel monitor main 127.0.0.1 {redis.port} 1\n"
                    "sentinel down-after-milliseconds main 60000\n")
    sentinel = rack.keep(Redis(rack.folder, name="sentinel", file=file).ready())
    return [redis], f"sentinel://127.0.0.1:{sentinel.port}/main"


def in_a_cluster(rack):
    cluster = Cluster(rack, replicated=False)
    return cluster.masters, cluster.url


def in_a_quorum(rack):
    servers = [rack.keep(Redis(rack.folder).ready()) for _ in range(3)]
    return servers, " ".join(["quorum", *(server.url for server in servers)])


TOPOLOGIES = [single, on_a_unix_socket, behind_a_sentinel, in_a_cluster, in_a_quorum]


class Configured(Latchd):
    """With a configuration file only."""

    def __init__(self, program, folder, config):  # pylint: disable=super-init-not-called
        self.label, self.socket = "d", folder / "d.sock"
        Child.__init__(self, [program, "--unixsocket", self.socket, "--port", 0, "--state-dir",
                              folder, "--config", config], folder / "d.log")


class Place(Rack):
    """Servers with a user u, and a daemon with a configuration file, whose `redis` has the
    login, and with a password file, if that is to have a password."""

    def __init__(self, latchd, folder, topology, *how):
        super().__init__(folder)
        self.servers, self.url = topology(self)
        self.config, self.file = self.folder / "latchd.conf", self.folder / "password"
        self.on_all("ACL", "SETUSER", "u", "on", "resetpass", f">{OLD}", "~*", "&*", "+@all")
        self.configure(*how)
        self.daemon = self.keep(Configured(latchd, self.folder, self.config).ready())
        until(self.all_are_up, "all servers are used", SOON_S)

    def all_are_up(self):
        with self.daemon.wire() as wire:
            return wire.ask("INFO", "redis").count(",role=master,up=1") == len(self.servers)

    def on_all(self, *words):
        for server in self.servers:
            server.ask(*words)

    def configure(self, login, in_file=None):
        lines = [f"redis {self.url.replace('://', f'://{login}@')}",
                 "failover-quarantine 0"]  # of the servers of a quorum, which are new
        if in_file is not None:
            self.file.write_text(in_file)
            lines.append(f"redis-password-file {self.file}")
        self.config.write_text("\n".join(lines) + "\n")

    def log(self):
        return self.daemon.log.read_text(errors="replace")

    def reload(self):
        self.daemon.child.send_signal(signal.SIGHUP)

    def until_log(self, text, times=1):
        until(lambda: self.log().count(text) >= times, f"the log says {text}", SOON_S)

    def break_links(self):
        """Those of all servers; they are back when this returns."""
        before = int(self.daemon.info("redis_reconnects"))
        self.on_all("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        self.on_all("CLIENT", "KILL", "TYPE", "pubsub")
        until(lambda: int(self.daemon.info("redis_reconnects")) >= before + len(self.servers)
              and self.daemon.info("redis_link") == "up", f"it is back:\n{self.log()}", SOON_S)


@contextlib.contextmanager
def place(latchd, *how):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Place(latchd, folder, *how) as made:
            yield made


# How the login changes: of `redis`, and of the password file, before and after.
CHANGES = {
    "a password file": (("u", f"{OLD}\n"), ("u", f"{NEW}\r\nand a comment\n")),
    "the address": ((f"u:{OLD_QUOTED}",), (f"u:{NEW_QUOTED}",)),
}


def a_change_loses_no_lock(latchd, topology, before, after):
    """Redis knows both passwords for a while; then the old one and the links end."""
    with place(latchd, topology, *before) as here, here.daemon.wire() as wire:
        token = wire.ask("LOCK", "job", "WAIT", 0)
        here.on_all("ACL", "SETUSER", "u", f">{NEW}")
        here.configure(*after)
        here.reload()
        here.until_log("logged in at", len(here.servers))
        assert here.daemon.info("redis_reconnects") == "0"
        here.on_all("ACL", "SETUSER", "u", f"<{OLD}")
        here.break_links()
        assert wire.ask("RENEW", "job", "TOKEN", token) is not None
        assert wire.ask("UNLOCK", "job", "TOKEN", token) == 0
        assert wire.ask("LOCK", "job", "WAIT", 0) > token
        assert here.daemon.info("holds_lost") in ("0", None)
        for password in (OLD, NEW, OLD_QUOTED, NEW_QUOTED):
            assert password not in here.log(), "the log has a password"
        assert NEW not in str(wire.ask("CONFIG", "GET", "redis*"))


def a_user_that_is_deleted_gives_way_to_another(latchd):
    """Redis ends the links of a deleted user."""
    with place(latchd, single, f"u:{OLD_QUOTED}") as here, here.daemon.wire() as wire:
        token = wire.ask("LOCK", "job", "WAIT", 0)
        here.on_all("ACL", "SETUSER", "v", "on", f">{NEW}", "~*", "&*", "+@all")
        here.configure(f"v:{NEW_QUOTED}")
        here.reload()
        here.until_log("logged in at")
        here.on_all("ACL", "DELUSER", "u")
        with here.daemon.wire() as other:
            other.send("LOCK", "job", "WAIT", 60000)
            until(lambda: here.daemon.info("waiters") == "1", "it waits", SOON_S)
            assert wire.ask("UNLOCK", "job", "TOKEN", token) == 0
            assert other.receive() > token


def a_wrong_password_is_said_and_nothing_is_lost(latchd):
    with place(latchd, single, "u", OLD) as here, here.daemon.wire() as wire:
        token = wire.ask("LOCK", "job", "WAIT", 0)
        here.configure("u", "a wrong one")
        here.reload()
        here.until_log("refuses the new user or password")
        assert here.daemon.info("redis_link") == "up"
        assert wire.ask("RENEW", "job", "TOKEN", token) is not None
        here.file.unlink()
        here.reload()
        here.until_log("nothing is changed, correct this first: redis-password-file")
        here.configure("u", OLD)
        here.reload()
        here.until_log("logged in at")
        here.break_links()
        assert wire.ask("UNLOCK", "job", "TOKEN", token) == 0


def config_set_reads_the_file(latchd):
    with place(latchd, single, "u", OLD) as here, here.daemon.wire() as wire:
        here.on_all("ACL", "SETUSER", "u", f">{NEW}")
        here.file.write_text(NEW)
        assert wire.ask("CONFIG", "SET", "redis-password-file", here.file) == "OK"
        here.until_log("logged in at")
        try:
            wire.ask("CONFIG", "SET", "redis-password-file", here.folder / "none")
            raise AssertionError("it takes a file that is not there")
        except Error as error:
            assert "No such file" in str(error), error
        here.file.unlink()
        assert wire.ask("CONFIG", "SET", "recheck", "2s") == "OK"


# What a start refuses, and the words of the refusal.
REFUSED = [
    (["--redis", "redis://u@h"], "a user needs a password"),
    (["--redis", "unix://u@/r"], "a user needs a password"),
    (["--redis", "sentinel://u@h/m"], "a user needs a password"),
    (["--redis", "redis://u@h", "--redis-password-file", "{}/none"], "No such file"),
    (["--redis", "redis://h", "--redis-password-file", "{}/empty"], "is empty"),
    (["--redis", "redis://h", "--redis-password-file", "{}/long"], "more than 512 bytes"),
    (["--redis", "embedded", "--redis-password-file", "{}/good"], "needs no password"),
]


def a_start_refuses(latchd, options, words):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as name:
        folder = pathlib.Path(name)
        (folder / "empty").write_text("\nsecond line\n")
        (folder / "long").write_text("x" * 513)
        (folder / "good").write_text("x" * 512)
        for mode in (["--check-config"], []):
            done = subprocess.run([latchd, *mode, "--port", "0", "--state-dir", name,
                                   *(word.format(name) for word in options)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=SOON_S, check=False)
            assert done.returncode != 0 and words in done.stdout, done.stdout


def the_longest_password_is_taken(latchd):
    password = "x" * 512
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder, Rack(folder) as rack:
        redis = rack.keep(Redis(rack.folder).ready())
        redis.ask("ACL", "SETUSER", "u", "on", f">{password}", "~*", "&*", "+@all")
        (rack.folder / "password").write_text(password)
        rack.keep(Latchd(latchd, rack.folder, "d", redis.url.replace("//", "//u@"),
                         "--redis-password-file", rack.folder / "password")).ready()


def main(latchd):
    cases = [(f"{topology.__name__.replace('_', ' ')}: a change of {name} loses no lock",
              lambda t=topology, c=change: a_change_loses_no_lock(latchd, t, *c))
             for topology in TOPOLOGIES for name, change in CHANGES.items()]
    cases += [(f"{' '.join(options)}: a start is refused",
               lambda o=options, w=words: a_start_refuses(latchd, o, w))
              for options, words in REFUSED]
    for function in (a_user_that_is_deleted_gives_way_to_another,
                     a_wrong_password_is_said_and_nothing_is_lost, config_set_reads_the_file,
                     the_longest_password_is_taken):
        cases.append((function.__name__.replace("_", " "), lambda f=function: f(latchd)))
    return 1 if tap(cases, at_once=3) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
