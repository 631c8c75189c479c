"""latchd from redis-cli: one-shot, a script on its standard input, and interactive.

redis_cli.py HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../README.md
"""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

HOST, PORT, PROTOCOL, USER, PASSWORD, CA, NAME, *SCENARIOS = sys.argv[1:]
DEADLINE_S = 30


def command():
    words = ["redis-cli", "-h", HOST, "-p", PORT]
    if PROTOCOL == "3":
        words.append("-3")
    if USER != "-":
        words += ["--user", USER]
    if PASSWORD != "-":
        words += ["-a", PASSWORD, "--no-auth-warning"]
    if CA != "-":
        words += ["--tls", "--cacert", CA]
    return words


def cli(words, text=None, limit=DEADLINE_S, check=True):
    stdin = {"stdin": subprocess.DEVNULL} if text is None else {"input": text}
    return subprocess.run([*command(), *map(str, words)], text=True, check=check,
                          timeout=limit, stdout=subprocess.PIPE, **stdin).stdout.rstrip("\n")


def ask(*words):
    return cli(words)


def version():
    print("version", cli(["--version"]).split()[1])


def hello():
    assert ask("PING") == "PONG"
    token = ask("LOCK", NAME, "WAIT", 0)
    assert int(token) > 2**31
    assert ask("UNLOCK", NAME, "TOKEN", token) == "0"


def busy():
    token = ask("LOCK", NAME)
    assert ask("LOCK", NAME, "WAIT", 0) == ""
    assert ask("LOCK", NAME, "WAIT", 50) == ""
    assert int(ask("RENEW", NAME, "TOKEN", token)) > 0
    assert ask("UNLOCK", NAME, "TOKEN", token) == "0"
    fair = ask("LOCK", NAME, "FAIR", "WAIT", 0)
    assert int(fair) > int(token)
    assert ask("UNLOCK", NAME, "TOKEN", fair) == "0"


def reenter():
    token = ask("LOCK", NAME, "OWNER", "ann")
    assert ask("LOCK", NAME, "OWNER", "ann") == token
    assert ask("UNLOCK", NAME, "OWNER", "ann") == "1"
    assert ask("UNLOCK", NAME, "OWNER", "ann") == "0"


def lose():
    token = ask("LOCK", NAME)
    assert ask("FORCEUNLOCK", NAME, "TOKEN", token) == "1"
    assert ask("UNLOCK", NAME, "TOKEN", token).startswith("NOTHELD ")
    assert ask("RENEW", NAME, "TOKEN", token).startswith("NOTHELD ")
    assert ask("LOCK", NAME, "SOON").startswith("ERR unknown option")


def share():
    one, two = ask("LOCK", NAME, "READ"), ask("LOCK", NAME, "READ")
    assert ask("LOCK", NAME, "WRITE", "WAIT", 0) == ""
    assert ask("UNLOCK", NAME, "TOKEN", one) == ask("UNLOCK", NAME, "TOKEN", two) == "0"
    token = ask("LOCK", NAME, "WRITE", "WAIT", 0)
    assert ask("UNLOCK", NAME, "TOKEN", token) == "0"


def pipeline():
    lines = f"LOCK {NAME}\nLOCK {NAME} WAIT 0\nUNLOCK {NAME}\n"
    assert re.fullmatch(r"\d+\n\n0", cli([], lines))


def multi():
    lines = f"MULTI\nLOCK {NAME} WAIT 0\nUNLOCK {NAME}\nEXEC\n"
    assert re.fullmatch(r"OK\nQUEUED\nQUEUED\n\d+\n0", cli([], lines))


def events():
    heard = subprocess.Popen([*command(), "PSUBSCRIBE", f"*:{NAME}"],
                             stdout=subprocess.PIPE, text=True)
    assert heard.stdout.readline() == "psubscribe\n"
    token = ask("LOCK", NAME, "OWNER", "joe")
    assert ask("FORCEUNLOCK", NAME, "OWNER", "joe") == "1"
    lines = []
    while f"lost:{NAME}" not in lines:
        lines.append(heard.stdout.readline().strip())
    assert heard.stdout.readline() == f"joe {token}\n"
    assert f"granted:{NAME}" in lines
    heard.kill()
    heard.wait()


class Terminal:
    """redis-cli on a terminal, as a person sees it."""

    def __init__(self):
        self.seen = ""
        self.child, self.fd = pty.fork()
        if self.child == 0:
            os.environ["TERM"] = "xterm"
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
            os.execvp("redis-cli", command())

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
        self.expect(rf"{PORT}> ")

    def type(self, text):
        os.write(self.fd, text.encode())

    def close(self):
        self.type("\x15quit\r")
        os.waitpid(self.child, 0)
        os.close(self.fd)


def interactive():
    """Completion and hints come from COMMAND DOCS."""
    term = Terminal()
    term.expect(rf"{PORT}> ")
    term.type("LOCK ")
    term.expect(r"name \[FAIR \| READ \| WRITE \| PERMITS n \[OF limit\]\] \[WAIT ms\] "
                r"\[LEASE ms\] \[OWNER owner\] \[ID request\]")
    term.type("\x15ml\t 2 ")
    term.expect(r"MLOCK 2.* name\.\.\. \[WAIT ms\] \[LEASE ms\]")
    term.type("\x15unlo\t job ")
    term.expect(r"UNLOCK job.* \[READ \| WRITE\] \[TOKEN token\]")
    term.type("\x15forceun\t ")
    term.expect(r"FORCEUNLOCK.* name \(TOKEN token \| OWNER owner \| ANY\)")
    term.type("\x15client pau\t ")
    term.expect(r"CLIENT PAUSE.* ms \[WRITE \| ALL\]")
    term.type("\x15client k\t ")
    term.expect(r"CLIENT KILL.*\[ID client-id\]")
    term.type("\x15")
    term.run("help unlock", r"summary:.*Releases a lock")
    term.run(f"LOCK {NAME}", r"\(integer\) \d+")
    term.run(f"LOCK {NAME} WAIT 0", r"\(nil\)")
    term.run(f"UNLOCK {NAME}", r"\(integer\) 0")
    term.close()


def wait(request, patience):
    """Asks until there is a token; redis-cli prints an empty line for null, and on
    standard error what went wrong with the connection."""
    token, asked = "", 0
    while not token.isdigit():
        asked += 1
        token = cli(["LOCK", NAME, "WAIT", patience, "LEASE", 60000, "ID", request],
                    limit=300, check=False)
        assert not re.match("[A-Z]+ ", token), token
    print("token", token, asked, flush=True)
    print("left", ask("UNLOCK", NAME, "ID", request))


def main():
    if SCENARIOS[0] == "wait":
        wait(*SCENARIOS[1:])
        return
    for scenario in SCENARIOS:
        globals()[scenario]()
        print("ok", scenario, flush=True)


main()
