#!/usr/bin/env python3
"""Ordinary clients against the real daemon: run.py LATCHD redis-cli|redis-py|ioredis|node-redis

Starts a private Redis and latchd on unix sockets in a directory of its own, once without
and once with a password, and runs the check of that client against it. Nothing is
installed: a client that is not there is skipped (exit code 77). Where to look for more
than the system's own: PATH, LATCHD_TEST_PYTHONS (interpreters, `:` between them) and
NODE_PATH.
"""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIP = 77
DEADLINE_S = 15
CHECK_S = 60
HERE = pathlib.Path(__file__).resolve().parent
PASSWORD = "open sesame"


def runs(command):
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              check=False, timeout=CHECK_S).returncode == 0
    except OSError:
        return False


def checks(client):
    """The command lines that check this client: one for each version that is there."""
    if client == "redis-cli":
        return [[sys.executable, HERE / "redis_cli.py"]] if shutil.which(client) else []
    if client == "redis-py":
        pythons = [sys.executable, "/usr/bin/python3"]
        pythons += os.environ.get("LATCHD_TEST_PYTHONS", "").split(":")
        return [[p, HERE / "redis_py.py"] for p in dict.fromkeys(pythons)
                if p and runs([p, "-c", "import redis"])]
    module = {"ioredis": "ioredis", "node-redis": "redis"}[client]
    return ([["node", HERE / f"{client.replace('-', '_')}.js"]]
            if runs(["node", "-e", f"require('{module}')"]) else [])


def answers(path, request, reply):
    """Waits until somebody answers on that socket."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(1)
                s.connect(str(path))
                s.sendall(request)
                if s.recv(64).startswith(reply):
                    return True
        except OSError:
            pass
        time.sleep(0.01)
    return False


class Server:
    """A child that is stopped at the end, and must end well."""

    def __init__(self, command, path, replies):
        self.name = str(command[0])
        self.child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.ready = answers(path, b"PING\r\n", replies)

    def __enter__(self):
        if not self.ready:
            self.child.kill()
            self.child.wait()
            sys.exit(f"{self.name} does not answer")
        return self

    def __exit__(self, *what):
        self.child.send_signal(signal.SIGTERM)
        code = self.child.wait(DEADLINE_S)
        if code != 0 and what[0] is None:
            sys.exit(f"{self.name} ended with {code}")


def check_all(latchd, commands, password):
    with tempfile.TemporaryDirectory(prefix="latchd-clients-") as name:
        folder = pathlib.Path(name)
        redis, unix = folder / "redis.sock", folder / "latchd.sock"
        env = dict(os.environ, LATCHD_SOCKET=str(unix), LATCHD_PASSWORD=password)
        extra = ["--requirepass", password] if password else []
        with Server(["redis-server", "--port", "0", "--unixsocket", redis, "--save", "",
                     "--dir", folder], redis, b"+PONG"), \
             Server([latchd, "--port", "0", "--unixsocket", unix, "--redis",
                     f"unix://{redis}", *extra], unix, b"-NOAUTH" if password else b"+PONG"):
            for command in commands:
                print(f"# {' '.join(map(str, command))}", "with password" * bool(password),
                      flush=True)
                subprocess.run(command, env=env, check=True, timeout=CHECK_S)


def main():
    latchd, client = sys.argv[1:]
    commands = checks(client)
    if not commands or not shutil.which("redis-server"):
        print(f"{client} or redis-server is not here")
        sys.exit(SKIP)
    for password in ("", PASSWORD):
        check_all(latchd, commands, password)


if __name__ == "__main__":
    main()
