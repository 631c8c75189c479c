#!/usr/bin/env python3
"""latchd in the sandbox of its unit file, made by hand: sandbox.py LATCHD UNIT.

What systemd would do for the settings in the unit: its list of system calls, no memory
that is both written and run, no other address families, a file system that is read-only but
for the state directory, /tmp, /home and devices of its own, nobody's user, no capabilities.
The daemon and the embedded Redis below it then do all that they do. Prints TAP; skipped
where such a sandbox cannot be had.
"""
import ctypes
import ctypes.util
import errno
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import Skip, is_sanitized, tap
from children import DEADLINE_S, die_with_parent, until
from resp import Error, Wire

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWIPC = 0x20000, 0x8000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND = 1, 2, 4, 32, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
NOBODY = 65534
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EQUAL, MASKED = 4, 7
NEW_NAMESPACES = 0x7E020000
PROT_WRITE, PROT_EXEC = 2, 4
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}
DEVICES = ["null", "zero", "full", "random", "urandom"]


class Compare(ctypes.Structure):
    """struct scmp_arg_cmp"""
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64),
                ("b", ctypes.c_uint64)]


def settings(unit):
    """Of [Service]: key -> values, in order."""
    found = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.M):
        found.setdefault(key, []).append(value)
    return found


def calls_of(group):
    """The system calls of a group of systemd, with those of the groups in it."""
    if not group.startswith("@"):
        return {group}
    out = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True,
                         text=True, check=True).stdout
    words = [line.strip() for line in out.splitlines()[1:]]
    calls = set()
    for word in words:
        if word and not word.startswith("#"):
            calls |= calls_of(word)
    return calls


def allowed_calls(lines):
    """As systemd reads them: the first list is what is allowed, `~` takes away."""
    calls = set()
    for line in lines:
        take_away = line.startswith("~")
        for group in line.lstrip("~").split():
            calls = calls - calls_of(group) if take_away else calls | calls_of(group)
    return calls


class Filter:
    """Made in the parent, loaded in the child."""

    def __init__(self, unit):
        name = ctypes.util.find_library("seccomp")
        if name is None:
            raise Skip("no libseccomp")
        self.lib = lib = ctypes.CDLL(name)
        lib.seccomp_init.restype = ctypes.c_void_p
        refused = ERRNO | getattr(errno, unit["SystemCallErrorNumber"][0])
        self.filter = ctypes.c_void_p(lib.seccomp_init(refused))
        conditional = {"mmap", "mprotect", "socket", "pkey_mprotect", "shmat", "clone",
                       "clone3", "unshare", "setns"}
        for call in allowed_calls(unit["SystemCallFilter"]) - conditional:
            self.allow(call)
        self.allow_without_run(unit["MemoryDenyWriteExecute"] == ["yes"])
        for family in unit["RestrictAddressFamilies"][0].split():
            self.allow("socket", Compare(0, EQUAL, FAMILIES[family], 0))
        assert unit["RestrictNamespaces"] == ["yes"]
        self.allow("clone", Compare(0, MASKED, NEW_NAMESPACES, 0))
        self.rule(ERRNO | errno.ENOSYS, "clone3")

    def allow(self, name, *conditions):
        self.rule(ALLOW, name, *conditions)

    def rule(self, action, name, *conditions):
        call = self.lib.seccomp_syscall_resolve_name(name.encode())
        if call < 0:
            return  # of another architecture
        array = (Compare * len(conditions))(*conditions)
        code = self.lib.seccomp_rule_add_array(self.filter, action, call, len(conditions),
                                               array)
        assert code == 0, (name, code)

    def allow_without_run(self, deny):
        """mmap: not both; mprotect: not to run."""
        if not deny:
            raise Skip("the unit does not deny memory that is written and run")
        for bits in (0, PROT_WRITE, PROT_EXEC):
            self.allow("mmap", Compare(2, MASKED, PROT_WRITE | PROT_EXEC, bits))
        self.allow("mprotect", Compare(2, MASKED, PROT_EXEC, 0))

    def load(self):
        assert self.lib.seccomp_load(self.filter) == 0


def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(what, where, kind=None, flags=0, data=None):
    check(LIBC.mount(str(what).encode(), str(where).encode(),
                     kind and kind.encode(), ctypes.c_ulong(flags),
                     data and data.encode()))


def bind(what, where, flags=0):
    """The same there; read-only if the flags say so."""
    mount(what, where, None, MS_BIND | MS_REC)
    if flags:
        mount("none", where, None, MS_BIND | MS_REMOUNT | flags)


class Sandbox:
    """root: an empty folder, which becomes /. program: becomes /latchd."""

    def __init__(self, root, program, state, unit):
        self.root, self.program, self.state = root, program, state
        self.filter = Filter(unit)
        self.places = [p for p in ("usr", "etc", "bin", "sbin", "lib", "lib64")
                       if pathlib.Path("/", p).exists()]
        self.last_capability = int(pathlib.Path(
            "/proc/sys/kernel/cap_last_cap").read_text())

    def build(self):
        """In a mount namespace of its own."""
        root = self.root
        check(LIBC.unshare(CLONE_NEWNS | CLONE_NEWIPC))
        mount("none", "/", None, MS_REC | MS_PRIVATE)
        mount("root", root, "tmpfs", MS_NOSUID, "mode=755")
        for place in self.places:
            (root / place).mkdir()
            bind(f"/{place}", root / place, MS_RDONLY | MS_NOSUID | MS_NODEV)
        for folder in ("proc", "dev", "tmp", "home", "root", "var", "var/lib",
                       "var/lib/latchd"):
            (root / folder).mkdir()
        mount("proc", root / "proc", "proc", MS_NOSUID, "hidepid=invisible")
        for device in DEVICES:
            (root / "dev" / device).touch()
            bind(f"/dev/{device}", root / "dev" / device)
        mount("tmp", root / "tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
        bind(self.state, root / "var/lib/latchd")
        (root / "latchd").touch()
        bind(self.program, root / "latchd", MS_RDONLY | MS_NOSUID)
        mount("none", root, None, MS_REMOUNT | MS_RDONLY | MS_NOSUID)

    def enter(self):
        """In the child, before it is the daemon."""
        die_with_parent()
        self.build()
        os.chroot(self.root)
        os.chdir("/")
        for capability in range(self.last_capability + 1):
            LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        os.umask(0o077)
        die_with_parent()  # that goes with the user
        check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        self.filter.load()


class Daemon:
    """latchd in it, with an embedded Redis and a port for HTTP."""

    def __init__(self, program, unit, folder):
        self.folder, self.program, self.unit = folder, program, unit
        root, self.state = folder / "root", folder / "state"
        root.mkdir()
        self.state.mkdir()
        os.chown(self.state, NOBODY, NOBODY)
        folder.chmod(0o755)
        self.log = folder / "log"
        self.socket = self.state / "socket"
        (self.state / "latchd.conf").write_text("maxclients 500\n")
        os.chown(self.state / "latchd.conf", NOBODY, NOBODY)
        sandbox = Sandbox(root, program, self.state, unit)
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen(
                ["/latchd", "--config", "/var/lib/latchd/latchd.conf", "--bind",
                 "127.0.0.1", "--port", "0", "--unixsocket", "/var/lib/latchd/socket",
                 "--unixsocketperm", "777", "--http-port", "auto"],
                preexec_fn=sandbox.enter, stderr=log, stdin=subprocess.DEVNULL,
                env={"PATH": "/usr/bin:/bin", "STATE_DIRECTORY": "/var/lib/latchd"})
        until(lambda: "server: ready" in self.said(), "latchd is ready in its sandbox")

    def said(self):
        if self.child.poll() is not None:
            raise RuntimeError(f"latchd ended with {self.child.returncode}:\n"
                               + self.log.read_text())
        return self.log.read_text()

    def wire(self):
        return Wire(self.socket)

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(DEADLINE_S)


# Each is to be refused: how it is tried, by another program in the same sandbox.
TRIES = """
import ctypes, mmap, os, socket
def refused(what, *args):
    try:
        what(*args)
    except OSError:
        return
    raise SystemExit(f"{what} {args} is let through")
for path in ("/usr/new", "/etc/new", "/latchd", "/proc/sys/kernel/core_pattern"):
    refused(os.open, path, os.O_CREAT | os.O_WRONLY)
refused(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW)
refused(socket.socket, socket.AF_PACKET, socket.SOCK_RAW)
refused(mmap.mmap, -1, 4096, mmap.MAP_PRIVATE, mmap.PROT_WRITE | mmap.PROT_EXEC)
refused(os.sched_setaffinity, 0, [0])
refused(os.chown, "/var/lib/latchd", 1, 1)
libc = ctypes.CDLL(None)
for call in ("unshare", "setuid", "iopl", "sethostname", "mlockall"):
    if getattr(libc, call)(0x10000000 if call == "unshare" else 0, 0) == 0:
        raise SystemExit(f"{call} is let through")
if os.listdir("/home") or len([p for p in os.listdir("/proc") if p.isdigit()]) > 3:
    raise SystemExit("it sees others")
"""


def it_is_a_sandbox(daemon):
    if not pathlib.Path("/usr/bin/python3").exists():
        raise Skip("no other program to try it with")
    root = daemon.folder / "other"
    root.mkdir()
    sandbox = Sandbox(root, daemon.program, daemon.state, daemon.unit)
    done = subprocess.run(["/usr/bin/python3", "-c", TRIES], preexec_fn=sandbox.enter,
                          capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done


def status_of(pid):
    return dict(line.split(":\t", 1)
                for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                if ":\t" in line)


def it_is_nobody_with_nothing(daemon):
    child = int(pathlib.Path(
        f"/proc/{daemon.child.pid}/task/{daemon.child.pid}/children").read_text())
    for pid in (daemon.child.pid, child):
        status = status_of(pid)
        assert status["Uid"].split() == [str(NOBODY)] * 4, status["Uid"]
        assert {status[c].strip("0") for c in ("CapPrm", "CapEff", "CapBnd")} == {""}, status
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status


def locks_are_had(daemon):
    with daemon.wire() as one, daemon.wire() as other:
        token = one.ask("LOCK", "job")
        assert other.ask("LOCK", "job", "WAIT", 50) is None
        assert one.ask("UNLOCK", "job", "TOKEN", token) == 0
        assert other.ask("LOCK", "job", "WAIT", 0) > token
        other.ask("UNLOCK", "job")


def redis_is_started_again(daemon):
    children = pathlib.Path(f"/proc/{daemon.child.pid}/task/{daemon.child.pid}/children")
    with daemon.wire() as wire:
        token = wire.ask("LOCK", "kept")
        os.kill(int(children.read_text()), signal.SIGKILL)

        def is_back():
            try:
                return "was killed" in daemon.said() and wire.ask("RENEW", "kept") > 0
            except Error:
                return False

        until(is_back, "Redis is back")
        assert wire.ask("UNLOCK", "kept", "TOKEN", token) == 0


def http_and_its_figures(daemon):
    where = re.search(r"listening on (http://\S+)", daemon.said()).group(1)
    with urllib.request.urlopen(where + "metrics", timeout=DEADLINE_S) as answer:
        text = answer.read().decode()
    for figure in ("process_resident_memory_bytes", "process_open_fds"):
        value = re.search(rf"^\w*{figure} (\S+)$", text, re.M)
        assert value and float(value.group(1)) > 0, figure


def settings_are_read_and_written(daemon):
    with daemon.wire() as wire:
        (daemon.state / "latchd.conf").write_text("maxclients 400\n")
        daemon.child.send_signal(signal.SIGHUP)
        until(lambda: wire.ask("CONFIG", "GET", "maxclients")[1] == "400", "reload")
        assert wire.ask("CONFIG", "SET", "recheck", "6s") == "OK"
        assert wire.ask("CONFIG", "REWRITE") == "OK"
    assert "recheck 6s" in (daemon.state / "latchd.conf").read_text()


def it_stops_in_order(daemon):
    with daemon.wire() as wire:
        wire.ask("LOCK", "left")
        assert daemon.stop() == 0, daemon.log.read_text()
    assert "stopped" in daemon.log.read_text()


CASES = [it_is_a_sandbox, it_is_nobody_with_nothing, locks_are_had, redis_is_started_again,
         http_and_its_figures, settings_are_read_and_written, it_stops_in_order]


def main():
    program, unit = pathlib.Path(sys.argv[1]).resolve(), settings(pathlib.Path(sys.argv[2]))
    for tool in ("systemd-analyze", "redis-server"):
        if shutil.which(tool) is None:
            raise Skip(f"{tool} is not installed")
    if is_sanitized(program):
        raise Skip("sanitizers need more than the sandbox has")
    if os.geteuid() != 0:
        raise Skip("only root can make the sandbox")
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        try:
            daemon = Daemon(program, unit, pathlib.Path(folder))
        except subprocess.SubprocessError as why:
            raise Skip(f"no sandbox can be had here: {why}") from why
        try:
            return 1 if tap([(c.__name__, lambda c=c: c(daemon)) for c in CASES]) else 0
        finally:
            if daemon.child.poll() is None:
                daemon.child.kill()
                daemon.child.wait()


try:
    sys.exit(main())
except Skip as reason:
    print(f"1..0 # SKIP {reason}")
