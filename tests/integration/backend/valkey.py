#!/usr/bin/env python3
"""Valkey is called Valkey: valkey.py LATCHD. Prints TAP.

Here it is a redis-server that is called valkey-server, or whose answer to INFO says, on its
way through this program, that it is one.
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import Stand, tap
from children import DEADLINE_S, die_with_parent, until

# As many bytes, so that the length that stands before them is right.
OF_REDIS = b"multiplexing_api:epoll"
OF_VALKEY = b"valkey_version:8.1.345"


class Daemon:
    def __init__(self, folder, *words, **environment):
        self.log = pathlib.Path(folder) / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [LATCHD, "--port", "0", "--state-dir", f"{folder}/state", *words],
                stderr=log, preexec_fn=die_with_parent, env={**os.environ, **environment})

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(DEADLINE_S)

    def says(self, words):
        until(lambda: re.search(words, self.log.read_text()), words)
        return re.search(words, self.log.read_text())


def an_embedded_one_that_dies():
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        os.symlink(shutil.which("redis-server"), f"{folder}/valkey-server")
        with Daemon(folder, "--log-level", "debug", PATH=folder) as daemon:
            daemon.says("server: ready")
            pid = int(daemon.says(r"valkey-server: (\d+):")[1])
            os.kill(pid, signal.SIGKILL)
            daemon.says(rf"embedded: Valkey \(process {pid}\) was killed by signal 9")


def carry(source, to):
    while True:
        data = source.recv(65536)
        if not data:
            to.close()
            return
        to.sendall(data.replace(OF_REDIS, OF_VALKEY))


def serve(listener, path):
    while True:
        near, _ = listener.accept()
        far = socket.socket(socket.AF_UNIX)
        far.connect(path)
        for pair in ((near, far), (far, near)):
            threading.Thread(target=carry, args=pair, daemon=True).start()


def one_that_is_connected_to():
    with Stand(LATCHD) as stand, socket.create_server(("127.0.0.1", 0)) as listener, \
            tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        threading.Thread(target=serve, args=(listener, str(stand.redis_socket)),
                         daemon=True).start()
        url = f"redis://127.0.0.1:{listener.getsockname()[1]}"
        with Daemon(folder, "--redis", url) as daemon:
            daemon.says(r"redis: connected to \S+, Valkey 8\.1\.345\n")
        with Daemon(folder, "--redis", f"unix://{stand.redis_socket}") as daemon:
            daemon.says(r"redis: connected to \S+, Redis \d+\.\d+\.\d+\n")


CASES = [an_embedded_one_that_dies, one_that_is_connected_to]

LATCHD = str(pathlib.Path(sys.argv[1]).resolve())
threading.excepthook = lambda _: None  # a connection that breaks is none of their business
sys.exit(1 if tap([(case.__name__, case) for case in CASES]) else 0)
