"""latchd from telnet: words and Enter, replies as they are on the wire.

telnet.py HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../README.md
"""
import os
import pty
import re
import select
import sys
import time

HOST, PORT, _PROTOCOL, USER, PASSWORD, _CA, NAME, *SCENARIOS = sys.argv[1:]
DEADLINE_S = 30


class Telnet:
    """telnet at a terminal."""

    def __init__(self):
        self.seen = ""
        child, self.fd = pty.fork()
        if child == 0:
            os.execvp("telnet", ["telnet", HOST, PORT])
        self.expect("Escape character.*\n")

    def expect(self, pattern):
        end = time.monotonic() + DEADLINE_S
        while not (found := re.search(pattern, self.seen)):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")
            self.seen += os.read(self.fd, 4096).decode(errors="replace")
        self.seen = self.seen[found.end():]
        return found.group(1) if found.groups() else None

    def ask(self, *words):
        os.write(self.fd, " ".join(map(str, words)).encode() + b"\r")
        return self.expect(r"(?:^|\n)([-+:$][^\r\n]*)\r*\n")


telnet = Telnet()


def ask(*words):
    return telnet.ask(*words)


def number(*words):
    reply = ask(*words)
    assert reply.startswith(":"), reply
    return int(reply[1:])


def version():
    print("version any")


def hello():
    assert ask("PING") == "+PONG"
    token = number("LOCK", NAME, "WAIT", 0)
    assert token > 2**31
    assert number("UNLOCK", NAME, "TOKEN", token) == 0


def busy():
    token = number("LOCK", NAME)
    assert ask("LOCK", NAME, "WAIT", 0) == "$-1"
    assert ask("LOCK", NAME, "WAIT", 50) == "$-1"
    assert number("RENEW", NAME, "TOKEN", token) > 0
    assert number("UNLOCK", NAME) == 0
    assert number("LOCK", NAME, "FAIR", "WAIT", 0) > token
    assert number("UNLOCK", NAME) == 0


def reenter():
    token = number("LOCK", NAME, "OWNER", "ann")
    assert number("LOCK", NAME, "OWNER", "ann") == token
    assert number("UNLOCK", NAME, "OWNER", "ann") == 1
    assert number("UNLOCK", NAME, "OWNER", "ann") == 0


def lose():
    token = number("LOCK", NAME)
    assert number("FORCEUNLOCK", NAME, "TOKEN", token) == 1
    assert ask("UNLOCK", NAME, "TOKEN", token).startswith("-NOTHELD ")
    assert ask("RENEW", NAME, "TOKEN", token).startswith("-NOTHELD ")
    assert ask("LOCK", NAME, "SOON").startswith("-ERR unknown option")


def share():
    one, two = number("LOCK", NAME, "READ"), number("LOCK", NAME, "READ")
    assert ask("LOCK", NAME, "WRITE", "WAIT", 0) == "$-1"
    assert number("UNLOCK", NAME, "TOKEN", one) == 0
    assert number("UNLOCK", NAME, "TOKEN", two) == 0
    token = number("LOCK", NAME, "WRITE", "WAIT", 0)
    assert number("UNLOCK", NAME, "TOKEN", token) == 0


def main():
    if PASSWORD != "-":
        words = ["AUTH", *([] if USER == "-" else [USER]), f'"{PASSWORD}"']
        assert ask(*words) == "+OK"
    for scenario in SCENARIOS:
        globals()[scenario]()
        print("ok", scenario, flush=True)
    assert ask("QUIT") == "+OK"


main()
