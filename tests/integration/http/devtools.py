"""Talks to Chromium as its own tools do: WebSocket (RFC 6455), as much of it as is needed."""
import base64
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import urllib.parse
import urllib.request

from http_stand import PATIENCE_S, wait_for
from stand import Skip

# No network but ours, nothing of the user's.
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars"]


def chromium():
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        raise Skip("there is no chromium")
    return program


class Devtools:
    def __init__(self, url):
        at = urllib.parse.urlsplit(url)
        self.number = 0
        self.socket = socket.create_connection((at.hostname, at.port), 60)
        self.file = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\n"
                             "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
                             "\r\n").encode())
        assert b" 101 " in self.file.readline()
        while self.file.readline() != b"\r\n":
            pass

    def send(self, text):
        data = text.encode()
        size = (bytes([0x80 | len(data)]) if len(data) < 126
                else b"\xfe" + struct.pack(">H", len(data)))
        mask = os.urandom(4)
        self.socket.sendall(b"\x81" + size + mask +
                            bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def read(self):
        _, size = self.file.read(2)
        if size == 126:
            size, = struct.unpack(">H", self.file.read(2))
        elif size == 127:
            size, = struct.unpack(">Q", self.file.read(8))
        return self.file.read(size).decode()

    def call(self, method, **params):
        self.number += 1
        self.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            reply = json.loads(self.read())
            if reply.get("id") == self.number:
                assert "error" not in reply, reply
                return reply["result"]

    def evaluate(self, expression):
        return self.call("Runtime.evaluate", expression=expression)["result"].get("value")

    def close(self):
        self.file.close()
        self.socket.close()


class Browser:
    """A Chromium of its own, as a Devtools."""

    def __enter__(self):
        program = chromium()
        self.folder = tempfile.TemporaryDirectory(prefix="latchd-test-",
                                                  ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [program, *QUIET, f"--user-data-dir={self.folder.name}",
             "--remote-debugging-port=0"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        port = pathlib.Path(self.folder.name) / "DevToolsActivePort"
        wait_for(lambda: port.exists() and port.read_text().count("\n") > 0, "no browser")
        at = f"http://127.0.0.1:{port.read_text().split()[0]}/json/list"
        pages = wait_for(lambda: [p for p in json.load(urllib.request.urlopen(at))
                                  if p["type"] == "page"], "no page")
        self.tools = Devtools(pages[0]["webSocketDebuggerUrl"])
        return self.tools

    def __exit__(self, *exception):
        self.tools.close()
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.folder.cleanup()
