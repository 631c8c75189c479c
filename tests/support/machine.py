"""Machines, as far as programs see them: clocks that are set, suspend, a disk that is full, a
power cut, a cable. machine.c is preloaded into the programs; without it only the disk can be
full, and the cable cut."""
import contextlib
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import time

from children import LIBC, Child, until
from resp import Error
from servers import PORTS, READY_S, Redis
from stand import Skip

US_PER_S = 1_000_000
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
CLOCKS, SYNCED = struct.Struct("qq"), struct.Struct("QQ")  # as in machine.c


class Machine:
    """The clocks and the disk of the programs that have its `environment`. library: what
    machine.c becomes."""

    def __init__(self, folder, library):
        number = PORTS.take()
        self.clocks, self.disk = folder / f"clocks-{number}", folder / f"disk-{number}"
        self.clocks.write_bytes(CLOCKS.pack(0, 0))
        self.disk.touch()
        self.environment = dict(os.environ, LD_PRELOAD=str(library),
                                LATCHD_CLOCK=str(self.clocks), LATCHD_DISK=str(self.disk))

    def change(self, ahead_s=None, slept_s=0):
        """Sets the wall clock, or lets the machine sleep for so long more."""
        with open(self.clocks, "r+b") as file:
            ahead_us, slept_us = CLOCKS.unpack(file.read())
            if ahead_s is not None:
                ahead_us = int(ahead_s * US_PER_S)
            file.seek(0)
            file.write(CLOCKS.pack(ahead_us, slept_us + int(slept_s * US_PER_S)))

    def synced(self, inode):
        """How much of that file is on the disk for certain."""
        journal = self.disk.read_bytes()
        whole = len(journal) // SYNCED.size * SYNCED.size
        return dict(SYNCED.iter_unpack(journal[:whole])).get(inode, 0)


class Server(Redis):
    """A Redis that keeps what it acknowledged, whose disk can be full, whose clock set and
    whose power cut. machine: a Machine; None: only the disk."""

    def __init__(self, folder, *options, machine=None, **more):
        self.machine = machine
        self.environment = dict(os.environ) if machine is None else machine.environment
        super().__init__(folder, "--appendonly", "yes", *options, **more)

    def launch(self):
        # SIGXFSZ stays ignored, so that a file that may not grow is a disk that is full.
        self.how.update(env=self.environment, restore_signals=False)
        super().launch()

    def restart(self):
        """After kill(). One that refuses the file that it left ends again: see revive()."""
        self.launch()
        until(lambda: self.well() or self.is_down(), "redis-server answers, or ends", READY_S)

    def well(self):
        with contextlib.suppress(RuntimeError):  # it ends just then
            return self.answers()
        return False

    def is_down(self):
        """It has ended, and nobody made it."""
        return self.child.poll() is not None and not self.killed

    def writes(self):
        """What it acknowledges gets into its file, as far as it is there at all."""
        try:
            return self.info("aof_last_write_status") == "ok"
        except (OSError, Error):
            return self.is_down()

    def revive(self):
        """As an operator does it: once more, or else without its file. True: without."""
        if self.is_down():
            self.restart()
        if not self.is_down():
            return False
        aside = self.folder / f"refused-{time.monotonic_ns()}"
        (self.folder / "appendonlydir").rename(aside)
        super().restart()
        return True

    def cut_power(self, part=0.0):
        """Kills it; only this part of what was not synced is on its disk then. Returns how
        many bytes are not."""
        self.kill()
        lost = 0
        for file in self.folder.glob("appendonlydir/*"):
            at = file.stat()
            synced = min(self.machine.synced(at.st_ino), at.st_size)
            kept = synced + int((at.st_size - synced) * part)
            os.truncate(file, kept)
            lost += at.st_size - kept
        return lost

    def fill_disk(self, room=4096):
        """The append-only file may grow by so many bytes."""
        files = self.folder.glob("appendonlydir/*.incr.aof")
        size = max(file.stat().st_size for file in files)
        self.limit(size + room)

    def limit(self, size):
        resource.prlimit(self.child.pid, resource.RLIMIT_FSIZE,
                         (size, resource.RLIM_INFINITY))

    def empty_disk(self):
        if self.child.poll() is None:
            self.limit(resource.RLIM_INFINITY)


assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN  # as Python has it


class Cable(Child):
    """Between this process, which gets a network of its own, and another machine: a network
    in which runs what is started in there()."""

    HERE, THERE = "10.99.0.1", "10.99.0.2"
    ENDS = {HERE: ("here", "02:00:00:00:00:01"), THERE: ("there", "02:00:00:00:00:02")}
    NOBODY = "02:00:00:00:00:03"

    def __init__(self, folder):
        for tool in ("ip", "unshare"):
            if shutil.which(tool) is None:
                raise Skip(f"{tool} is not installed")
        self.leave()
        self.network = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        super().__init__(["unshare", "--net", "sleep", "infinity"], folder / "cable.log")
        try:
            self.connect()
        except (Skip, RuntimeError) as why:
            self.stop()
            raise Skip(why) from why

    def connect(self):
        other = pathlib.Path(f"/proc/{self.child.pid}/ns/net")
        mine = os.readlink("/proc/self/ns/net")
        until(lambda: self.alive() and os.readlink(other) != mine, "the other network")
        self.other = os.open(other, os.O_RDONLY | os.O_CLOEXEC)
        self.ip("link", "add", "here", "type", "veth", "peer", "name", "there", "netns",
                self.child.pid)
        self.plug(self.HERE, self.THERE)
        with self.there():
            self.plug(self.THERE, self.HERE)

    @staticmethod
    def leave():
        """The network of the machine: as root, or as who is root in here."""
        user, group = os.getuid(), os.getgid()
        if LIBC.unshare(CLONE_NEWNET | (CLONE_NEWUSER if user else 0)) != 0:
            raise Skip("no network of one's own")
        if user:
            try:
                for name, said in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"),
                                   ("gid_map", f"0 {group} 1")):
                    pathlib.Path("/proc/self", name).write_text(said)
            except OSError as why:
                raise Skip(f"no network of one's own: {why}") from why

    @staticmethod
    def ip(*words):
        done = subprocess.run(["ip", *map(str, words)], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise Skip(f"ip {words[0]} {words[1]}: {done.stdout.strip()}")

    def plug(self, own, far):
        name, address = self.ENDS[own]
        self.ip("link", "set", "lo", "up")
        self.ip("link", "set", name, "address", address, "up")
        self.ip("address", "add", f"{own}/24", "dev", name)
        self.deliver(own, far, self.ENDS[far][1])

    def deliver(self, own, far, address):
        self.ip("neighbour", "replace", far, "lladdr", address, "dev", self.ENDS[own][0],
                "nud", "permanent")

    @contextlib.contextmanager
    def there(self):
        LIBC.setns(self.other, CLONE_NEWNET)
        try:
            yield
        finally:
            LIBC.setns(self.network, CLONE_NEWNET)

    def lose(self, own, lost=True):
        """All packets from that end are lost: they are sent to nobody."""
        far = self.THERE if own == self.HERE else self.HERE
        with self.there() if own == self.THERE else contextlib.nullcontext():
            self.deliver(own, far, self.NOBODY if lost else self.ENDS[far][1])

    def stop(self):
        self.kill()
        super().stop()
