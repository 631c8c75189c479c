"""Servers of every topology, on the loopback, with ports and a folder of their own.

All are children of the thread that starts them and end with it. The ports are none that
the kernel gives to connections, so a server that is down finds its own again.
"""
import contextlib
import itertools
import pathlib
import random
import socket

from children import Child, until
from resp import Error, Wire

READY_S = 40
BACKLOG = 512
FIRST_PORT = 10_100


class Ports:
    """Ports that no other test has taken: each is reserved, as long as this process
    lives, by an abstract unix socket with its number."""

    def __init__(self):
        text = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
        first = int(text.split()[0])
        self.last = first if first > FIRST_PORT + 1000 else 65_000
        self.reserved = []

    def take(self):
        for _ in range(1000):
            port = random.randrange(FIRST_PORT, self.last)
            mark = socket.socket(socket.AF_UNIX)
            try:
                mark.bind(f"\0latchd-test-port-{port}")
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            except OSError:
                mark.close()
                continue
            self.reserved.append(mark)
            return port
        raise RuntimeError("no port is free")


PORTS = Ports()


class Rack:
    """A folder, and servers in it that are stopped in the end."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.stack.close()

    def keep(self, server):
        return self.stack.enter_context(server)


class Redis(Child):
    """A redis-server; what it keeps survives it. With a file it is a Sentinel."""

    serial = itertools.count(1)

    def __init__(self, folder, *options, name="redis", port=None, file=None):
        self.port = port or PORTS.take()
        self.folder = folder / f"{name}-{next(self.serial)}"
        self.folder.mkdir()
        self.url = f"redis://127.0.0.1:{self.port}"
        how = [file, "--sentinel"] if file is not None else [
            "--save", "", "--repl-diskless-sync-delay", 0, "--repl-ping-replica-period", 1]
        super().__init__(["redis-server", *how, "--port", self.port, "--bind", "127.0.0.1",
                          "--protected-mode", "no",
                          "--dir", self.folder, *options], self.folder / "log")

    def wire(self, timeout_s=20):
        return Wire(self.port, timeout_s)

    def ask(self, *words):
        with self.wire() as wire:
            return wire.ask(*words)

    def info(self, field):
        with self.wire() as wire:
            return wire.info(field)

    def answers(self):
        self.alive()
        try:
            return self.ask("PING") == "PONG"
        except (OSError, Error):
            return False

    def ready(self):
        until(self.answers, "redis-server answers", READY_S)
        return self

    def restart(self):
        """After kill(): on the same port, with its data; ready when this returns."""
        self.launch()
        self.ready()

    def stop(self):
        """Nothing of it is wanted any more."""
        self.kill()
        self.output.close()


def kept(folder, **more):
    """One that loses nothing when it is killed."""
    return Redis(folder, "--appendonly", "yes", **more).ready()


class Latchd(Child):
    """On a unix socket, so that it is found again after a restart. activated: the socket
    is systemd's, and stays open while one latchd follows another; who connects then waits."""

    def __init__(self, program, folder, name, redis, *options, activated=False, machine=None,
                 port=0):
        self.label = name
        self.socket = folder / f"{name}.sock"
        command, how = [program, "--unixsocket", self.socket], {}
        if machine is not None:
            how = {"env": machine.environment}
        if activated:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(str(self.socket))
            self.listener.listen(BACKLOG)
            fd = self.listener.fileno()
            command = ["sh", "-c", f"exec 3<&{fd}; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"",
                       program]
            how["pass_fds"] = [fd]
        super().__init__(
            [*command, "--port", port, "--redis", redis, "--state-dir", folder, *options],
            folder / f"{name}.log", **how)

    def ready(self):
        until(self.serves, f"latchd {self.label} serves", READY_S)
        return self

    def serves(self):
        self.alive()
        try:
            with Wire(self.socket) as wire:
                wire.ask("LOCK", f"ready-{self.label}", "WAIT", 0, "LEASE", 100)
                return True
        except Error as error:  # that is for the places where names are to tell
            return "no new grants" in str(error)
        except OSError:
            return False

    def wire(self):
        return Wire(self.socket)

    def info(self, field):
        with self.wire() as wire:
            return wire.info(field)

    def restart(self):
        self.launch()
        self.ready()

    def leave(self):
        """It is told to stop, and does."""
        self.end()
        self.child.wait(READY_S)
        if self.child.returncode != 0:
            raise RuntimeError(f"{self.name} ended with {self.child.returncode}:\n{self.said()}")

    def replace(self):
        """The next one follows, as systemd does it."""
        self.leave()
        self.launch()
