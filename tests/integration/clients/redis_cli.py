"""redis-cli: one-shot, RESP3, and interactive with hints and completion."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

SOCKET = os.environ["LATCHD_SOCKET"]
PASSWORD = os.environ["LATCHD_PASSWORD"]
BASE = ["redis-cli", "-s", SOCKET] + (["-a", PASSWORD, "--no-auth-warning"]
                                      if PASSWORD else [])
DEADLINE_S = 10


def cli(*args):
    return subprocess.run([*BASE, *args], capture_output=True, text=True, check=True,
                          timeout=DEADLINE_S).stdout.rstrip("\n")


def one_shot():
    token = cli("LOCK", "job")
    assert token.isdigit(), token
    assert cli("LOCK", "job", "WAIT", "0") == ""
    assert cli("-3", "LOCK", "job", "WAIT", "0") == ""
    assert "state held" in cli("-3", "LOCKINFO", "job")
    assert cli("UNLOCK", "job", "TOKEN", token) == "0"
    assert cli("UNLOCK", "other", "TOKEN", "1").startswith("NOTHELD ")
    assert cli("NOSUCH", "a") == ("ERR unknown command 'NOSUCH', "
                                  "with args beginning with: 'a' ")
    assert "redis_mode:standalone" in cli("INFO")
    assert cli("-3", "HELLO").startswith("server latchd\nversion ")


class Terminal:
    """redis-cli on a terminal, as a person sees it."""

    def __init__(self):
        self.seen = ""
        self.child, self.fd = pty.fork()
        if self.child == 0:
            os.environ["TERM"] = "xterm"
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
            os.execvp(BASE[0], BASE)

    def expect(self, pattern):
        end = time.monotonic() + DEADLINE_S
        while not (found := re.search(pattern, self.seen)):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")
            self.seen += os.read(self.fd, 4096).decode(errors="replace")
        self.seen = self.seen[found.end():]

    def run(self, line, pattern):
        """A whole line; what is typed before the next prompt would be thrown away."""
        self.type("\x15" + line + "\r")
        self.expect(pattern)
        self.expect(r"sock> ")

    def type(self, text):
        os.write(self.fd, text.encode())

    def close(self):
        self.type("\x15quit\r")
        os.waitpid(self.child, 0)
        os.close(self.fd)


def interactive():
    term = Terminal()
    term.expect("sock> ")
    term.type("LOCK ")
    term.expect(r"name .*\[WAIT ms\] \[LEASE ms\] \[OWNER owner\] \[ID request\]")
    term.type("\x15forceun\t ")
    term.expect(r"FORCEUNLOCK.* name TOKEN token\|OWNER owner\|ANY")
    term.type("\x15client k\t ")
    term.expect(r"CLIENT KILL.*\[ID client-id\]")
    term.type("\x15")
    term.run("help unlock", r"summary:.*Releases a lock")
    term.run("LOCK typed", r"\(integer\) \d+")
    term.run("LOCK typed WAIT 0", r"\(nil\)")
    term.run("UNLOCK typed", r"\(integer\) 0")
    term.close()


one_shot()
interactive()
