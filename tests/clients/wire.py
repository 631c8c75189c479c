"""The test's own view of a server: requests and replies of RESP2 on a socket.

Errors come as strings that begin with `-`, null as None, maps as lists.
"""
import socket

TIMEOUT_S = 30


class Wire:
    """One connection."""

    def __init__(self, address):
        family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
        self.socket = socket.socket(family)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect(address if isinstance(address, tuple) else str(address))
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.file.close()
        self.socket.close()

    def ask(self, *words):
        words = [str(w).encode() for w in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(
            b"$%d\r\n%b\r\n" % (len(w), w) for w in words))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("closed")
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == "-1" else self.file.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return None if rest == "-1" else [self.reply() for _ in range(int(rest))]
        return "-" + rest if kind == b"-" else rest

    def info(self, field):
        lines = self.ask("INFO").splitlines()
        return next(line.split(":", 1)[1] for line in lines if line.startswith(field + ":"))
