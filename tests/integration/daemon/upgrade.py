#!/usr/bin/env python3
"""A new latchd takes the sockets over, and the old one serves its clients until they leave:
upgrade.py LATCHD [UPGRADES]. Prints TAP.

By hand, with 100 upgrades, before a release.
"""
import contextlib
import http.client
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import Certs, tap
from children import LIBC, Child, until
from resp import Error, Wire, encode
from servers import PORTS, Latchd, Rack, Redis

PR_SET_CHILD_SUBREAPER = 36
WORKERS = 4
SOON_S = 60
ITS_ID = "the-one-of-this-test"


class Place(Rack):
    """A Redis, and a latchd whose program is a file of its own: to be replaced."""

    def __init__(self, folder, *options):
        super().__init__(folder)
        self.program = self.folder / "latchd"
        self.install(PROGRAM)
        self.pids = []
        self.redis = self.keep(Redis(self.folder).ready())
        self.stack.callback(self.end_successors)
        self.daemon = self.keep(Latchd(self.program, self.folder, "d", self.redis.url, *options))
        self.daemon.ready()
        self.pids.append(self.pid())

    def install(self, program):
        new = self.folder / "new"
        shutil.copy(program, new)
        new.rename(self.program)

    def script(self, text):
        path = self.folder / "script"
        path.write_text(text)
        path.chmod(0o755)
        self.install(path)

    def pid(self):
        """Of the latchd that accepts a new connection."""
        return int(self.daemon.info("process_id"))

    def wire(self):
        return self.keep(self.daemon.wire())

    def log(self):
        return self.daemon.log.read_text(errors="replace")

    def says(self, text, times=1):
        until(lambda: self.log().count(text) >= times, f"the log says {text}", SOON_S)

    def ask_for_it(self):
        os.kill(self.pids[-1], signal.SIGUSR2)

    def upgrade(self):
        self.ask_for_it()
        self.says("takes new clients", len(self.pids))
        self.pids.append(self.pid())
        assert self.pids[-1] not in self.pids[:-1], self.pids

    def end_successors(self):
        """Also those of a case that failed before it knew them."""
        pids = {*self.pids[1:], *self.children()}
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for pid in pids:
            until(lambda p=pid: is_over(p), f"{pid} ends", SOON_S)

    def children(self):
        """Of this process: those that run the program, also one that was replaced."""
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
                if parent == os.getpid():
                    program = os.readlink(stat.with_name("exe")).removesuffix(" (deleted)")
                    if program == str(self.program):
                        yield int(stat.parent.name)


def is_over(pid):
    """This process is the parent of those whose parent ended."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return not pathlib.Path(f"/proc/{pid}").exists()


@contextlib.contextmanager
def place(*options):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Place(pathlib.Path(folder), *options) as here:
            yield here


class Load:
    """Clients that each count under one lock, some of them on a new connection each time:
    two that count at once would lose a number. Their times show the pause."""

    def __init__(self, here):
        self.here, self.over, self.errors = here, threading.Event(), []
        self.value = self.counted = self.token = 0
        self.longest_ms = 0
        self.threads = [threading.Thread(target=self.work, args=(i % 2 == 0,))
                        for i in range(WORKERS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *what):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def count(self, wire):
        token = wire.ask("LOCK", "count", "WAIT", 60000)
        value = self.value
        assert token > self.token, (token, self.token)
        self.token = token
        os.sched_yield()
        self.value = value + 1
        self.counted += 1
        done = wire.ask("UNLOCK", "count", "TOKEN", token)
        assert done == 0, done

    def work(self, stays):
        try:
            with contextlib.ExitStack() as stack:
                wire = stack.enter_context(self.here.daemon.wire())
                while not self.over.is_set():
                    began = time.monotonic()
                    if stays:
                        self.count(wire)
                    else:
                        with self.here.daemon.wire() as own:
                            self.count(own)
                    self.longest_ms = max(self.longest_ms, (time.monotonic() - began) * 1000)
        except (OSError, Error, AssertionError) as error:
            self.errors.append(repr(error))


def clients_notice_nothing():
    with place("--unixsocketperm", "700") as here:
        holder, first, second, half, hears = (here.wire() for _ in range(5))
        hears.ask("SUBSCRIBE", "lost:job")
        token = holder.ask("LOCK", "job")
        for wire in (first, second):
            wire.send("LOCK", "job", "WAIT", 600000)
            number = 1 if wire is first else 2
            until(lambda n=number: len(holder.ask("WAITERS", "job")) == n, "it waits")
        request = encode("PING", "all of it")
        half.socket.sendall(request[:9])
        with Load(here) as load:
            for _ in range(UPGRADES):
                counted = load.counted
                here.upgrade()
                until(lambda c=counted: load.counted > c + WORKERS or load.errors, "they count")
        assert not load.errors, load.errors
        assert load.value == load.counted, (load.value, load.counted)
        print(f"# {load.counted} turns, the longest {load.longest_ms:.0f} ms")
        half.socket.sendall(request[9:])
        assert half.reply() == "all of it"
        assert holder.ask("UNLOCK", "job", "TOKEN", token) == 0
        next_token = first.reply()
        assert next_token > token
        assert first.ask("UNLOCK", "job", "TOKEN", next_token) == 0
        assert second.reply() > next_token
        hears.send("PING")
        assert hears.receive()[0] == "pong", "it heard something"
        for wire in (holder, first, second, half, hears):
            wire.close()
        for pid in here.pids[:-1]:
            until(lambda p=pid: is_over(p) or p == here.daemon.child.pid, f"{pid} leaves", SOON_S)
        here.daemon.child.wait(SOON_S)
        assert here.pid() == here.pids[-1]


def served_by(wire):
    return int(wire.info("process_id"))


def clients_at_rest_move():
    """With what they have said of themselves, and what they just send."""
    with place("--max-keep", "600s") as here:
        with here.daemon.wire() as wire:
            late = wire.ask("LOCK", "late", "LEASE", 600000)
        with here.daemon.wire() as wire:
            assert wire.ask("LOCK", "late", "WAIT", 0, "ID", ITS_ID, "KEEP", 600000) is None
        pooled, busy, half, hears = (here.wire() for _ in range(4))
        pooled.ask("HELLO", 3, "SETNAME", "pooled")
        pooled.ask("CLIENT", "SETINFO", "lib-ver", "1.2")
        number = pooled.ask("CLIENT", "ID")
        token = busy.ask("LOCK", "job")
        request = encode("PING", "all of it")
        half.socket.sendall(request[:9])
        hears.ask("SUBSCRIBE", "lost:job")
        here.upgrade()
        old, new = here.pids
        until(lambda: served_by(pooled) == new, "it moves", SOON_S)
        assert pooled.ask("CLIENT", "ID") == number
        assert pooled.ask("CLIENT", "GETNAME") == "pooled"
        about = pooled.ask("CLIENT", "LIST", "ID", number)
        assert " lib-ver=1.2" in about and " resp=3" in about, about
        with here.wire() as young:
            assert young.ask("CLIENT", "ID") > number
        assert served_by(busy) == old
        assert busy.ask("UNLOCK", "job", "TOKEN", token) == 0
        half.socket.sendall(request[9:])
        assert half.reply() == "all of it"
        until(lambda: served_by(busy) == new, "it moves as well", SOON_S)
        until(lambda: served_by(half) == new, "it moves, too", SOON_S)
        assert here.daemon.child.poll() is None, "a client listens"
        hears.ask("UNSUBSCRIBE", "lost:job")
        until(lambda: served_by(hears) == new, "it moves at last", SOON_S)
        # The old one still has a place for its client, which asks again later.
        assert busy.ask("UNLOCK", "late", "TOKEN", late) == 0
        until(lambda: ITS_ID in str(busy.ask("LOCKINFO", "late")), "the lock is taken", SOON_S)
        late = busy.ask("LOCK", "late", "WAIT", 0, "ID", ITS_ID)
        assert busy.ask("UNLOCK", "late", "TOKEN", late) == 0
        here.daemon.child.wait(SOON_S)
        assert busy.ask("LOCK", "job") > token


def goes_on(here, why):
    """The old one: with its clients, and with new ones."""
    here.says(why)
    assert here.pid() == here.pids[0]


def a_successor_that_fails_changes_nothing():
    with place() as here:
        holder, hears = here.wire(), here.wire()
        token = holder.ask("LOCK", "job")
        hears.ask("SUBSCRIBE", "lost:job")
        failed = "ended before it was ready"
        here.script("#!/bin/sh\nexit 3\n")
        here.ask_for_it()
        goes_on(here, failed)
        here.script("not a program")
        here.ask_for_it()
        here.says(failed, 2)
        here.script(TALKS.format(words=b"nonsense"))
        here.ask_for_it()
        here.says("sent a message that is none")
        # It is to listen, and ends instead.
        here.script(TALKS.format(words=b"ready"))
        here.ask_for_it()
        here.says(failed, 3)
        assert here.pid() == here.pids[0]
        assert holder.ask("RENEW", "job", "TOKEN", token) > 0
        here.install(PROGRAM)
        here.upgrade()
        assert holder.ask("UNLOCK", "job", "TOKEN", token) == 0
        os.kill(here.pids[1], signal.SIGKILL)
        here.says("the new latchd has ended")


# A successor that says these words, and hears what comes next.
TALKS = """#!/usr/bin/env python3
import os, socket
link = socket.socket(fileno=int(os.environ["LATCHD_UPGRADE_FD"]))
assert link.recv(100) == b"latchd-upgrade 1"
link.send({words})
link.recv(100)
"""
# The same, until the old latchd waits for an answer, and then until it ends.
HEARS_ALL = """
while (said := link.recv(100)) and not said.startswith(b"go"):
    pass
assert said
open({file!r}, "w").close()
link.recv(100)
"""


def none_takes_over_while_redis_is_away():
    """The old one may have to withhold names afterwards, and the new one does not know."""
    with place() as here:
        ready = here.folder / "ready"
        os.mkfifo(ready)
        here.script(TALKS.format(words=f"open({str(ready)!r}, 'rb').read(5)"))
        here.ask_for_it()
        here.says("a new latchd starts")
        here.redis.kill()
        until(lambda: here.daemon.info("redis_link") == "down", "Redis is away")
        with open(ready, "r+b", buffering=0) as pipe:
            pipe.write(b"ready")
            here.says("goes on as before: Redis is out of reach")
        here.redis.restart()
        here.daemon.ready()
        assert here.pid() == here.pids[0]


def sigterm_leaves_the_socket_to_the_other_process():
    """Between the offer and the answer."""
    with place() as here, socket.socket(socket.AF_UNIX) as listens:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = here.folder / "old.sock"
        listens.bind(str(path))
        listens.listen()
        with ours, its:
            ours.settimeout(SOON_S)
            ours.send(b"latchd-upgrade 1")
            successor = here.keep(Child(
                [PROGRAM, "--port", 0, "--redis", here.redis.url], here.folder / "successor",
                pass_fds=[its.fileno()],
                env={**os.environ, "LATCHD_UPGRADE_FD": str(its.fileno())}))
            its.close()
            assert ours.recv(100) == b"ready"
            socket.send_fds(ours, [b"socket plain file"], [listens.fileno()])
            until(lambda: f"listening on unix:{path}" in successor.said(), "it listens")
            successor.stop()
            assert path.exists()
        heard = here.folder / "heard"
        here.script(TALKS.format(words=b"ready") + HEARS_ALL.format(file=str(heard)))
        here.ask_for_it()
        until(heard.exists, "it was offered", SOON_S)
        os.kill(here.pids[0], signal.SIGTERM)
        here.daemon.child.wait(SOON_S)
        assert here.daemon.socket.exists()


def a_version_that_is_not_known_is_refused():
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, its:
        ours.send(b"latchd-upgrade 99")
        done = subprocess.run(
            [PROGRAM, "--port", "0", "--redis", "unix:///nonexistent"], capture_output=True,
            text=True, timeout=SOON_S, check=False, pass_fds=[its.fileno()],
            env={**os.environ, "LATCHD_UPGRADE_FD": str(its.fileno())})
        assert done.returncode == 1, done
        assert "the old latchd has version 99" in done.stderr, done.stderr
        its.close()
        assert ours.recv(100) == b"", "it said something"


def all_sockets_go_over_and_stop_takes_all_along():
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        certs, ports = Certs(folder), [PORTS.take() for _ in range(3)]
        context = ssl.create_default_context(cafile=certs.path("ca.pem"))

        def tls():
            link = socket.create_connection(("127.0.0.1", ports[1]), SOON_S)
            return context.wrap_socket(link, server_hostname="localhost")

        def ask(link, *words):
            link.sendall(encode(*words))
            return link.recv(100)
        with place("--bind", "127.0.0.1", "--tls-port", str(ports[1]), "--tls-cert-file",
                   certs.path("server.pem"), "--tls-key-file", certs.path("server.key"),
                   "--http-port", str(ports[2])) as here, tls() as before:
            wire = here.wire()
            wire.ask("LOCK", "job", "ID", ITS_ID)
            assert ask(before, "PING") == b"+PONG\r\n"
            here.upgrade()
            here.upgrade()
            assert ask(before, "PING") == b"+PONG\r\n"
            with tls() as after:
                assert ask(after, "PING") == b"+PONG\r\n"
            assert healthz(ports[2]) == 200
            os.kill(here.pids[-1], signal.SIGTERM)
            assert here.daemon.child.wait(SOON_S) == 0
            for pid in here.pids[1:]:
                until(lambda p=pid: is_over(p), f"{pid} ends", SOON_S)
            assert not here.daemon.socket.exists()


def healthz(port):
    web = http.client.HTTPConnection("127.0.0.1", port, timeout=SOON_S)
    try:
        web.request("GET", "/healthz")
        return web.getresponse().status
    finally:
        web.close()


def the_address_for_http_stays_and_its_port_may_go():
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        conf, port = pathlib.Path(folder, "conf"), PORTS.take()
        conf.write_text(f"http-port {port}\n")
        with place("--config", conf) as here:
            conf.write_text(f"http-port {port}\nhttp-bind 0.0.0.0\n")
            here.upgrade()
            assert healthz(port) == 200
            here.says(f"listening on http://127.0.0.1:{port}/", 2)
            assert "there is no password" not in here.log()
            conf.write_text("")
            here.upgrade()
            try:
                healthz(port)
            except ConnectionRefusedError:
                return
            raise AssertionError("it still listens")


def systemd_hears_of_the_new_process():
    said = []

    def listen(systemd):
        while (words := systemd.recv(1000)) != b"over":
            said.append(words.decode())
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"{folder}/notify")
        reader = threading.Thread(target=listen, args=(systemd,), daemon=True)
        reader.start()
        os.environ.update(NOTIFY_SOCKET=f"{folder}/notify", WATCHDOG_USEC="200000")
        try:
            with place() as here:
                here.upgrade()
                main_pid = f"MAINPID={here.pids[1]}\nWATCHDOG=1\nSTATUS=Serving"
                until(lambda: main_pid in said, "systemd hears the process ID")
                here.daemon.child.wait(SOON_S)
                count = len(said)
                until(lambda: "WATCHDOG=1" in said[count:], "the new process is alive")
        finally:
            del os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_USEC"]
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
                end.sendto(b"over", f"{folder}/notify")
            reader.join()


def with_the_embedded_redis_it_is_refused():
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Latchd(PROGRAM, pathlib.Path(folder), "d", "embedded").ready() as daemon:
            daemon.child.send_signal(signal.SIGUSR2)
            until(lambda: "no upgrade: the embedded Redis" in daemon.said(), "it says so")


def main():
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    cases = [(f.__name__, f) for f in (
        clients_notice_nothing,
        clients_at_rest_move,
        a_successor_that_fails_changes_nothing,
        none_takes_over_while_redis_is_away,
        sigterm_leaves_the_socket_to_the_other_process,
        a_version_that_is_not_known_is_refused,
        all_sockets_go_over_and_stop_takes_all_along,
        the_address_for_http_stays_and_its_port_may_go,
        systemd_hears_of_the_new_process,
        with_the_embedded_redis_it_is_refused,
    )]
    return 1 if tap(cases) else 0


PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
UPGRADES = int(sys.argv[2]) if len(sys.argv) > 2 else 5
if __name__ == "__main__":
    sys.exit(main())
