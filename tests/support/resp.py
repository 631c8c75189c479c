"""RESP for tests that are not written in C: requests out, replies in.

    with Wire(("127.0.0.1", port)) as redis: redis.ask("PING")

An address is a port of the loopback, a (host, port), or the path of a unix socket.
Whoever wants replies in another form makes a Link and reads its `file`; whoever has a
loop of its own uses encode() and a Parser.
"""
import socket

TIMEOUT_S = 30
NOTHING = object()  # from a Parser: there is no whole reply yet


class Error(Exception):
    """An error reply."""


class Push(list):
    """What RESP3 says without having been asked."""


class Unfinished(Exception):
    """The reply goes on in bytes that are not there yet."""


def encode(*words):
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(out)


class Parser:
    """Replies of both protocols as Python values: errors as Error (not raised), null as
    None, maps as dicts; strings are text, or bytes if `raw`."""

    def __init__(self, raw=False):
        self.raw = raw
        self.input, self.at = b"", 0

    def feed(self, data):
        self.input = self.input[self.at:] + data
        self.at = 0

    def next(self):
        """A value or NOTHING."""
        before = self.at
        try:
            return self.value()
        except Unfinished:
            self.at = before
            return NOTHING

    def line(self):
        end = self.input.find(b"\r\n", self.at)
        if end < 0:
            raise Unfinished
        line = self.input[self.at:end]
        self.at = end + 2
        return line

    def bulk(self, size):
        end = self.at + size
        if end + 2 > len(self.input):
            raise Unfinished
        data = self.input[self.at:end]
        self.at = end + 2
        return data

    def value(self):
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b"_" or (rest == b"-1" and kind in b"$*"):
            return None
        if kind == b":":
            return int(rest)
        if kind in b"$=":
            data = self.bulk(int(rest))
            return data if self.raw else data.decode()
        if kind in b"*~":
            return [self.value() for _ in range(int(rest))]
        if kind == b">":
            return Push(self.value() for _ in range(int(rest)))
        if kind == b"%":
            return {self.value(): self.value() for _ in range(int(rest))}
        if kind == b"-":
            return Error(rest.decode())
        return rest.decode()


class Link:
    """A connection, perhaps from the address `source`; what comes is read from `file`. No
    read is without a deadline."""

    def __init__(self, address, timeout_s=TIMEOUT_S, source=None):
        if isinstance(address, int):
            address = ("127.0.0.1", address)
        family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
        self.socket = socket.socket(family)
        self.file = None
        try:
            self.socket.settimeout(timeout_s)
            if source is not None:
                self.socket.bind((source, 0))
            self.socket.connect(address if isinstance(address, tuple) else str(address))
            self.file = self.socket.makefile("rb")
        finally:
            if self.file is None:
                self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, *words):
        self.socket.sendall(encode(*words))


class Wire(Link):
    """One that asks and is answered. Error replies are raised."""

    raw = False

    def __init__(self, address, timeout_s=TIMEOUT_S, source=None):
        super().__init__(address, timeout_s, source)
        self.parser = Parser(self.raw)

    def receive(self):
        """The next reply, or push; an error as a value."""
        while (value := self.parser.next()) is NOTHING:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the other side closed")
            self.parser.feed(data)
        return value

    def reply(self):
        value = self.receive()
        if isinstance(value, Error):
            raise value
        return value

    def ask(self, *words):
        self.send(*words)
        return self.reply()

    def info(self, field):
        """What INFO has in this field; None: there is none."""
        for line in self.ask("INFO", "everything").splitlines():
            if line.startswith(field + ":"):
                return line.split(":", 1)[1]
        return None
