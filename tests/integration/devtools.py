"""Talks to Chromium as its own tools do: WebSocket (RFC 6455), as much of it as is needed."""
import base64
import json
import os
import socket
import struct
import urllib.parse


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
