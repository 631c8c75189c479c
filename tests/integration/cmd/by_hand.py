#!/usr/bin/env python3
"""What a person tries first, against a real daemon: by_hand.py LATCHD.

Two shells with redis-cli, and telnet. Prints TAP. Libraries are in the suite `clients`.
"""
import fcntl
import functools
import os
import pathlib
import pty
import select
import shutil
import struct
import subprocess
import sys
import termios
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import DEADLINE_S, Skip, Stand, run, tap

def need(tool):
    if shutil.which(tool) is None:
        raise Skip(f"{tool} is not installed")


def cli(stand, *words):
    need("redis-cli")
    return run(["redis-cli", "--no-raw", "-p", str(stand.port), *words]).stdout.strip()


def expect(good, got):
    if not good:
        raise AssertionError(f"unexpected: {got!r}")


def two_shells(stand):
    first = cli(stand, "LOCK", "cli", "LEASE", "60000")
    expect(first.startswith("(integer) "), first)
    expect(cli(stand, "LOCK", "cli", "WAIT", "0") == "(nil)", "not nil")
    with subprocess.Popen(["redis-cli", "-p", str(stand.port), "LOCK", "cli"],
                          stdout=subprocess.PIPE, text=True) as second:
        end = time.monotonic() + DEADLINE_S
        while "1)" not in cli(stand, "WAITERS", "cli"):
            expect(time.monotonic() < end, "nobody waits")
        expect(second.poll() is None, "it does not wait")
        expect(cli(stand, "UNLOCK", "cli", "TOKEN", first.split()[1]) == "(integer) 0", first)
        expect(int(second.communicate(timeout=DEADLINE_S)[0]) > int(first.split()[1]), first)


class Terminal:
    """A program at a terminal of 200 columns."""

    def __init__(self, args):
        self.args = args

    def __enter__(self):
        self.fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
        self.program = subprocess.Popen(
            self.args, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        return self

    def __exit__(self, *exception):
        self.program.kill()
        self.program.wait()
        os.close(self.fd)

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, wanted):
        got = ""
        end = time.monotonic() + 30
        while wanted not in got:
            expect(time.monotonic() < end, got)
            if select.select([self.fd], [], [], 1)[0]:
                got += os.read(self.fd, 65536).decode(errors="replace")

    def ask(self, line, wanted):
        self.type(line + "\r")
        self.expect(wanted)


def telnet(stand):
    need("telnet")
    with Terminal(["telnet", "127.0.0.1", str(stand.port)]) as terminal:
        terminal.expect("Escape character")
        terminal.ask("LOCK tel", ":1")
        terminal.ask("LOCK tel WAIT 0", "$-1")
        terminal.ask("UNLOCK tel", ":0")
        terminal.ask("QUIT", "+OK")


def half_close(stand):
    """printf ... | nc -N ends its side at once: what needs nobody else is answered."""
    need("nc")
    if "-N" not in run(["nc", "-h"]).stdout:
        raise Skip("this nc has no -N")
    for lines, wanted in (("PING\\r\\nECHO a\\r\\n", "+PONG $1 a"),
                          ("MULTI\\r\\nECHO b\\r\\nPING\\r\\nEXEC\\r\\n",
                           "+OK +QUEUED +QUEUED *2 $1 b +PONG")):
        got = run(["sh", "-c", f"printf '{lines}' | nc -N 127.0.0.1 {stand.port}"]).stdout
        expect(got.split() == wanted.split(), got)


CASES = [
    ("the_second_shell_waits_until_the_first_unlocks", two_shells),
    ("a_telnet_user_can_lock", telnet),
    ("what_does_not_wait_is_answered_after_a_half_close", half_close),
]


def main():
    with Stand(sys.argv[1]) as stand:
        failed = tap([(name, functools.partial(case, stand)) for name, case in CASES])
    sys.exit(1 if failed else 0)


main()
