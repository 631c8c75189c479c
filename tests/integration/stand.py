"""A private Redis and a latchd on it, for tests of clients that are not written in C.

    with Stand(binary) as stand: ... stand.port ...
"""
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

DEADLINE_S = 250


class Skip(Exception):
    """The reason why something cannot be tried on this machine."""


def run(args, folder=None, **more):
    return subprocess.run(args, cwd=folder, stdin=subprocess.DEVNULL, timeout=DEADLINE_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)


def python_with_redis():
    """An interpreter that has the redis module; Debian's is not always the first."""
    for name in ("/usr/bin/python3", sys.executable):
        if run([name, "-c", "import redis"]).returncode == 0:
            return name
    raise Skip("the redis module is not installed")


class Stand:
    """Both servers; the daemon is started as systemd does it: the socket is ours, and
    so connections wait for it."""

    def __init__(self, binary):
        self.binary = binary

    def __enter__(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="latchd-test-")
        self.folder = pathlib.Path(self.scratch.name)
        self.redis_socket = self.folder / "redis.sock"
        self.start_redis()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.start_daemon()
        return self

    def start_redis(self):
        self.redis_socket.unlink(missing_ok=True)
        self.redis = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.redis_socket, "--dir",
             self.folder, "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL)
        end = time.monotonic() + DEADLINE_S
        while not self.redis_socket.exists():
            if time.monotonic() > end or self.redis.poll() is not None:
                sys.exit("redis-server does not start")
            time.sleep(0.01)

    def start_daemon(self):
        fd = self.listener.fileno()
        self.daemon = subprocess.Popen(
            ["sh", "-c", f'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@" 3<&{fd}', self.binary,
             "--redis", f"unix://{self.redis_socket}", "--log-level", "warning"],
            pass_fds=[fd])

    def __exit__(self, *exception):
        self.daemon.send_signal(signal.SIGTERM)
        code = self.daemon.wait(DEADLINE_S)
        self.redis.kill()
        self.redis.wait()
        self.listener.close()
        self.scratch.cleanup()
        if code != 0 and exception[0] is None:
            sys.exit(f"latchd ended with {code}")


def tap(cases):
    """Runs (name, function) pairs, prints TAP, returns how many failed. A function
    fails by an exception, and is skipped by Skip."""
    failed = 0
    print(f"1..{len(cases)}")
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
