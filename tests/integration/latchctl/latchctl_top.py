#!/usr/bin/env python3
"""`latchctl top`, at a terminal and into a pipe: latchctl_top.py LATCHD LATCHCTL. Prints TAP.
"""
import functools
import os
import re
import signal
import socket
import sys
import termios
import time

from latchctl_stand import CtlStand, Shell, child_of, expect, result, until
from resp import Wire
from stand import tap

HELD = 10000
WAITING = 5000
OPEN = "\x1b[?1049h"
CLOSE = "\x1b[?1049l"


def once(stand):
    got = stand.run("top", "--once")
    expect(got.returncode == 0 and "\x1b" not in got.stdout and "\a" not in got.stdout, got)
    expect("Redis answers in" in got.stdout and "NAME" in got.stdout, got)
    expect(stand.run("top").stdout.startswith("latchd "), "a pipe gets one table")


def rows(stand):
    """Hottest first, or as asked for; odd bytes escaped."""
    holders = [stand.start_beat(name) for name in ("cold", "hot", "w\x1barm")]
    waiters = [stand.start("run", name, "true") for name in ("hot", "hot", "w\x1barm")]
    until(lambda: stand.waiters("hot") == 2 and stand.waiters("w\x1barm") == 1, "no waiters")

    def names(*options):
        lines = stand.run("top", "--once", *options).stdout.splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("NAME"))
        return [line.split()[0] for line in lines[start + 1:]]

    expect(names() == ["hot", '"w\\x1barm"', "cold"], names())
    expect(names("--sort", "name") == ["cold", "hot", '"w\\x1barm"'], names("--sort", "name"))
    expect(names("--sort", "held") == ["cold", "hot", '"w\\x1barm"'], names("--sort", "held"))
    expect(names("--count", "1") == ["hot"], names("--count", "1"))
    for ctl in holders:
        ctl.terminate()
    for ctl in holders + waiters:
        result(ctl)


def local(stand):
    """What is granted from memory has a rate, and such a hold a mark, while it is one."""
    with Wire(("127.0.0.1", stand.port)) as client:
        expect("from memory" not in stand.run("top", "--once").stdout)
        expect(client.ask("CONFIG", "SET", "local-window", "100ms") == "OK")

        def seen():
            for _ in range(3):
                client.ask("LOCK", "lent", "LOCAL")
                client.ask("UNLOCK", "lent")
            client.ask("LOCK", "lent", "LOCAL")
            got = stand.run("top", "--once").stdout
            client.ask("UNLOCK", "lent")
            row = next(line for line in got.splitlines() if line.startswith("lent "))
            return re.search(r"  from memory [1-9]", got) and row.endswith(" local")

        until(seen, "no hold from memory")
        client.ask("LOCK", "ordinary")
        got = stand.run("top", "--once").stdout.splitlines()
        client.ask("UNLOCK", "ordinary")
        expect([line for line in got if line.startswith("ordinary ") and "local" not in line], got)


def live(stand):
    with Shell(stand) as shell:
        shell.type("stty -a > before; $L top --interval 0.2\r")
        shell.expect(OPEN)
        shell.expect("HOLDER")
        # It never waits for a key: Ctrl-Z throws away those that poll() has told of.
        expect(termios.tcgetattr(shell.fd)[6][termios.VMIN] == 0)
        holder = stand.start_beat("seen-live")
        shell.expect("seen-live")
        holder.terminate()
        result(holder)
        shell.resize(10, 40)
        shell.expect("\x1b[H")
        shell.type("n")
        shell.expect("\x1b[H")
        shell.type("\x1a")
        shell.expect(CLOSE)
        shell.expect("Stopped")
        shell.type("fg\r")
        shell.expect(OPEN)
        shell.type("q")
        shell.expect(CLOSE)
        shell.resize(24, 80)
        shell.type("\r")
        shell.expect("ready> ")
        shell.type("stty -a > after; cmp before after && echo as-before\r")
        shell.expect("as-before\r\n")


def ends(stand):
    """However it ends, the terminal is given back."""
    for end in ("\x03", "\x1c", "kill"):
        with Shell(stand) as shell:
            shell.type("$L top\r")
            shell.expect("HOLDER")
            if end == "kill":
                os.kill(child_of(shell.pid), signal.SIGTERM)
            else:
                shell.type(end)
            shell.expect("\x1b[?25h" + CLOSE)
            shell.expect("ready> ")


def narrow(stand):
    """Every line fits an 80x24 screen."""
    for number in range(30):
        stand.ask("LOCK", f"narrow-{number}-" + "x" * 100, "LEASE", "60000")
    with Shell(stand) as shell:
        shell.type("$L top --interval 0.1\r")
        shell.expect(OPEN)
        shell.expect("\x1b[H")
        frame = shell.expect("\x1b[J").replace("\x1b[J", "")
        lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", frame).split("\r\n")
        expect(len(lines) <= 24 and max(map(len, lines)) <= 80, lines)
        expect(any(line.startswith("narrow-") for line in lines), lines)
        shell.type("q")
        shell.expect(CLOSE)


def daemon_restarts(stand):
    with Shell(stand) as shell:
        shell.type("$L top --interval 0.1\r")
        shell.expect("HOLDER")
        stand.kill_daemon()
        shell.expect("trying again")
        stand.start_daemon()
        shell.expect("Redis answers")
        shell.type("q")
        shell.expect(CLOSE)


def cpu(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def crowd(stand):
    """Cheap with many names and waiters: counted in CPU time of latchd, not by the clock."""
    with socket.create_connection(("127.0.0.1", stand.port)) as s:
        def many(lines):
            s.sendall("".join(line + "\r\n" for line in lines).encode())
            got = b""
            while got.count(b"\r\n") < len(lines):
                got += s.recv(1 << 20)

        many([f"LOCK crowd:{i} LEASE 300000" for i in range(HELD)])
        many([f"LOCK crowd:{i // 5} WAIT 0 ID waiter-number-{i:05} KEEP 30000"
              for i in range(WAITING)])
        began = time.monotonic()
        got = stand.run("top", "--once")
        opened = time.monotonic() - began
        expect(re.search(rf"held {HELD}  waiting {WAITING}  ", got.stdout), got)
        expect(got.stdout.count("crowd:") == 20, got)
        before, count = cpu(stand.daemon.pid), 50
        for _ in range(count):
            stand.run("top", "--once")
        cost = (cpu(stand.daemon.pid) - before) / count
        print(f"# opened in {opened * 1000:.0f} ms, {cost * 1000:.1f} ms of CPU a refresh")
        expect(cost < 0.02, "more than 2 % of a core at one refresh a second")
        expect(opened < 10, opened)


CASES = [
    ("once_is_a_table", once),
    ("what_is_granted_from_memory_is_marked", local),
    ("the_hottest_names_come_first", rows),
    ("it_lives_and_leaves_the_terminal_as_it_was", live),
    ("however_it_ends_the_terminal_is_given_back", ends),
    ("it_fits_a_small_screen", narrow),
    ("it_survives_a_restart_of_latchd", daemon_restarts),
    ("it_is_cheap_with_many_names", crowd),
]


def main():
    with CtlStand(sys.argv[1], sys.argv[2]) as stand:
        until(lambda: stand.is_free("nothing"), "Redis is not there")
        stand.environment["HOME"] = str(stand.folder)
        os.chdir(stand.folder)
        failed = tap([(name, functools.partial(case, stand)) for name, case in CASES])
        os.chdir("/")
    sys.exit(1 if failed else 0)


main()
