"""A private Redis and a latchd on it, for tests of clients that are not written in C.

    with Stand(binary) as stand: ... stand.port ...
    with Stand(binary, certs=Certs(folder)) as stand: ... stand.tls_port ...
"""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from children import die_with_parent, until
from resp import Wire

DEADLINE_S = 250


class Skip(Exception):
    """The reason why something cannot be tried on this machine."""


def run(args, folder=None, **more):
    return subprocess.run(args, cwd=folder, stdin=subprocess.DEVNULL, timeout=DEADLINE_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)


def need(*tools):
    """Ends the program, as skipped, where the machine has not all of them."""
    for tool in tools:
        if shutil.which(tool) is None:
            print(f"1..0 # SKIP {tool} is not installed")
            sys.exit(0)


def python_with_redis():
    """An interpreter that has the redis module; Debian's is not always the first."""
    for name in ("/usr/bin/python3", sys.executable):
        if run([name, "-c", "import redis"]).returncode == 0:
            return name
    raise Skip("the redis module is not installed")


def is_sanitized(program):
    """Its own look for leaks needs to be let do what is forbidden to others."""
    return "__asan_init" in run(["nm", "-D", program]).stdout


def start_redis(path, *options):
    """A redis-server that keeps nothing, at that socket; it answers."""
    path.unlink(missing_ok=True)
    redis = subprocess.Popen(  # pylint: disable=consider-using-with
        ["redis-server", "--port", "0", "--unixsocket", path, "--dir", path.parent, "--save", "",
         "--appendonly", "no", *options], stdout=subprocess.DEVNULL)

    def is_up():
        if redis.poll() is not None:
            sys.exit("redis-server does not start")
        try:
            with Wire(str(path)) as wire:
                wire.send("PING")
                wire.receive()  # or that it wants a password
                return True
        except OSError:  # there is no socket yet, or nobody listens at it
            return False
    until(is_up, "redis-server is up", DEADLINE_S)
    return redis


class Certs:
    """Certificates, made by openssl in a folder: of an authority, `ca.pem`, of a server,
    `server.pem` and `server.key`, and whatever make() is asked for."""

    def __init__(self, folder):
        if shutil.which("openssl") is None:
            raise Skip("openssl is not installed")
        self.folder = pathlib.Path(folder)
        self.authority("ca")
        self.make("server", "localhost")

    def path(self, name):
        return str(self.folder / name)

    def of_redis(self):
        """Options of a redis-server that shows `server` and asks clients for nothing."""
        return ["--tls-cert-file", self.path("server.pem"), "--tls-key-file",
                self.path("server.key"), "--tls-ca-cert-file", self.path("ca.pem"),
                "--tls-auth-clients", "no"]

    def openssl(self, *words):
        done = run(["openssl", *words], self.folder)
        if done.returncode != 0:
            sys.exit(f"openssl {words}: {done.stdout}")

    def authority(self, name):
        self.openssl("req", "-x509", *self.key(name), "-subj", f"/CN={name}", "-days", "30",
                     "-out", f"{name}.pem")

    def make(self, name, common_name, authority="ca", days=30):
        """`name`.pem and `name`.key; days -1: it is over."""
        names = self.folder / "names"
        names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        self.openssl("req", *self.key(name), "-subj", f"/CN={common_name}", "-out",
                     f"{name}.csr")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem",
                     "-CAkey", f"{authority}.key", "-CAcreateserial", "-days", str(days),
                     "-extfile", "names", "-out", f"{name}.pem")

    @staticmethod
    def key(name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                f"{name}.key"]


class Stand:
    """Both servers; the daemon is started as systemd does it: the sockets are ours, and
    so connections wait for it. `more`: further arguments of the daemon. `certs`: there is
    a second port, for TLS. `unix`: there is a unix socket as well, `socket`."""

    database = 0  # of Redis, that the daemon uses
    before_daemon = None  # what its process does before it is the daemon

    def __init__(self, binary, *more, certs=None, level="warning", unix=False):
        self.binary = binary
        self.more = [*more, "--log-level", level]
        self.unix = unix
        self.log = None  # where the daemon's goes; None: where ours goes
        self.certs = certs
        if certs is not None:
            self.more += ["--tls-cert-file", certs.path("server.pem"), "--tls-key-file",
                          certs.path("server.key"), "--tls-ca-cert-file",
                          certs.path("ca.pem")]

    def __enter__(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="latchd-test-")
        self.folder = pathlib.Path(self.scratch.name)
        self.redis_socket = self.folder / "redis.sock"
        self.start_redis()
        self.listeners = [socket.create_server(("127.0.0.1", 0), backlog=128)
                          for _ in range(1 if self.certs is None else 2)]
        ports = [s.getsockname()[1] for s in self.listeners]
        self.port, self.tls_port = ports[0], ports[-1]
        self.names = ["plain", "tls"][:len(ports)]
        self.socket = self.folder / "latchd.sock"
        if self.unix:
            self.listeners.append(socket.socket(socket.AF_UNIX))
            self.listeners[-1].bind(str(self.socket))
            self.listeners[-1].listen(128)
            self.names.append("plain")
        self.start_daemon()
        return self

    def start_redis(self):
        self.redis = start_redis(self.redis_socket)

    def start_daemon(self):
        fds = [s.fileno() for s in self.listeners]
        redirects = " ".join(f"{3 + i}<&{fd}" for i, fd in enumerate(fds))
        self.daemon = subprocess.Popen(
            ["sh", "-c", f"LISTEN_PID=$$ LISTEN_FDS={len(fds)} "
             f"LISTEN_FDNAMES={':'.join(self.names)} exec \"$0\" \"$@\" {redirects}",
             self.binary, "--redis", f"unix://{self.redis_socket}?db={self.database}", *self.more],
            pass_fds=fds, stderr=self.log, preexec_fn=self.before_daemon)

    def __exit__(self, *exception):
        self.daemon.send_signal(signal.SIGTERM)
        code = self.daemon.wait(DEADLINE_S)
        self.redis.kill()
        self.redis.wait()
        for listener in self.listeners:
            listener.close()
        self.scratch.cleanup()
        if code != 0 and exception[0] is None:
            sys.exit(f"latchd ended with {code}")


def in_a_process(function):
    """Starts that in a process of its own; gives its PID, and where it prints."""
    out = tempfile.TemporaryFile("w+")
    sys.stdout.flush()
    pid = os.fork()
    if pid != 0:
        return pid, out
    said = "# it did not come to its end"
    try:
        die_with_parent()
        os.dup2(out.fileno(), sys.stdout.fileno())
        os.closerange(3, 256)  # of other cases
        function()
        said = ""
    except Skip as why:
        said = f" # SKIP {why}".replace("\n", " ")
    except BaseException as error:  # whatever it is, it is this case's
        said = f"# {type(error).__name__}: {error}"
    finally:
        print(said.replace("\n", "\n# "), flush=True)
        os._exit(1 if said.startswith("#") else 0)


def tap_at_once(cases, at_once):
    """The cases of tap(), so many beside each other."""
    waiting, running, ended, failed, said = list(range(len(cases))), {}, {}, 0, 0
    while said < len(cases):
        while waiting and len(running) < at_once:
            number = waiting.pop(0)
            pid, out = in_a_process(cases[number][1])
            running[pid] = number, out
        pid, status = os.wait()
        if pid in running:
            number, out = running.pop(pid)
            ended[number] = status, out
        while said in ended:
            status, out = ended.pop(said)
            out.seek(0)
            *lines, last = out.read().split("\n")[:-1] or [""]
            out.close()
            skipped = last if last.startswith(" # SKIP") else ""
            for line in [*lines, "" if skipped else last]:
                if line:
                    print(line)
            failed += status != 0
            said += 1
            print(f"{'not ok' if status else 'ok'} {said} - {cases[said - 1][0]}{skipped}", flush=True)
    return failed


def tap(cases, at_once=1):
    """Runs (name, function) pairs, prints TAP, returns how many failed. A function
    fails by an exception, and is skipped by Skip. Cases with servers of their own that
    mostly wait can run beside each other, so many, in processes of their own."""
    failed = 0
    print(f"1..{len(cases)}")
    if at_once > 1:
        return tap_at_once(cases, at_once)
    for number, (name, function) in enumerate(cases, 1):
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}", flush=True)
        except Exception as error:  # whatever it is, it is this case's
            failed += 1
            print("# " + f"{type(error).__name__}: {error}".replace("\n", "\n# "))
            print(f"not ok {number} - {name}", flush=True)
    return failed
