"""The examples of a page, each run against a real daemon: once as it stands, and, where it is
to renew in the background, through what may happen to latchd."""
import os
import re
import signal
import socket
import subprocess
import time
from multiprocessing.connection import wait

from stand import DEADLINE_S, Stand  # and the way to what is shared
from resp import Wire

SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"\]\((examples/\w+\.(js|go|java))\)")
STEPS = re.compile(r"\b20\b")  # of the work, 100 ms each
LEASE_S = 4
# What an example says when it has a lock, or, as a latch gives no token, when it is open.
HAS_IT = re.compile(r"fencing token \d{10}|^all are done$", re.MULTILINE)
RENEWING = ["Helpers", "Python", "Node", "Go", "Java"]  # the sections whose example keeps its lock
# The README's lines that install: tests/package/readme.sh and .ci/run run them.
NO_EXAMPLES = ["Run it", "Test it"]


def examples(page, languages):
    """Title, language and code of each that is in one of these languages."""
    sections = SECTION.findall(page.read_text())
    assert sections, f"{page} has no sections"
    for title, section in sections:
        found = [] if title in NO_EXAMPLES else BLOCK.findall(section)
        found += [(language, (page.parent / file).read_text()) for file, language in FILE.findall(section)]
        for number, (language, code) in enumerate(found, 1):
            if language in languages:
                yield (title if len(found) == 1 else f"{title} {number}"), language, code


def start(language, code, folder, port):
    """language: a function that makes a program of code in a folder, and gives its command
    and environment."""
    folder.mkdir()
    command, env = language(code.replace("5625", str(port)), folder)
    return subprocess.Popen([str(word) for word in command], cwd=folder, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env={**os.environ, **env})


def check(language, code, folder, port):
    with start(language, code, folder, port) as program:
        said, _ = program.communicate(timeout=DEADLINE_S)
    if program.returncode != 0 or not HAS_IT.search(said):
        raise AssertionError(said)


class Restarted(Stand):
    """Its daemon listens by itself, as most do, so that while it is down clients are
    refused. A socket that is bound keeps the port for it."""

    def __init__(self, binary):
        super().__init__(binary, "--bind", "127.0.0.1", "--watchdog-timeout", f"{LEASE_S}s")

    def start_daemon(self):
        if "--port" not in self.more:
            self.listeners[0].close()
            self.listeners = [socket.socket()]
            self.listeners[0].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listeners[0].bind(("127.0.0.1", 0))
            self.port = self.listeners[0].getsockname()[1]
            self.more += ["--port", str(self.port)]
        self.daemon = subprocess.Popen(
            [self.binary, "--redis", f"unix://{self.redis_socket}", *self.more],
            stderr=subprocess.DEVNULL)
        wait_for(self.is_open, "latchd does not start")

    def is_open(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except ConnectionRefusedError:
            return False
        return True

    def end_daemon(self, how):
        self.daemon.send_signal(how)
        self.daemon.wait(DEADLINE_S)


def wait_for(condition, what):
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


class Worker:
    """An example whose work goes on for a minute."""

    def __init__(self, stand, language, code, folder):
        code, changed = STEPS.subn("600", code)
        assert changed == 1, f"{changed} numbers of steps"
        self.said = ""
        self.program = start(language, code, folder, stand.port)
        wait_for(lambda: "fencing token" in self.hear(), "it gets no lock")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.program.kill()
        self.program.communicate()

    def hear(self):
        """All that it has said."""
        out = self.program.stdout.fileno()
        while wait([out], 0):
            more = os.read(out, 65536).decode()
            if not more:
                assert self.program.wait(DEADLINE_S) != 0 and "lost" in self.said, self.said
                break
            self.said += more
        return self.said

    def is_told(self):
        return "the lock is lost" in self.hear()


def nobody_else_gets_it(stand, worker, for_s):
    with Wire(("127.0.0.1", stand.port)) as other:
        end = time.monotonic() + for_s
        while time.monotonic() < end:
            other.send("LOCK", "job", "WAIT", 50)
            got = other.receive()
            refused = got is None or str(got).startswith("BACKEND")  # it has just started
            assert refused, f"another got {got}: {worker.hear()}"
            assert not worker.is_told(), worker.said


def keeps_the_lock_through_restarts_and_says_when_it_is_lost(binary, language, code, folder):
    """For longer than a lease after each restart; then Redis loses the hold."""
    with Restarted(binary) as stand, Worker(stand, language, code, folder) as worker:
        for how in (signal.SIGKILL, signal.SIGTERM):
            stand.end_daemon(how)
            assert not worker.is_told(), worker.said
            stand.start_daemon()
            nobody_else_gets_it(stand, worker, 1.5 * LEASE_S)
        with Wire(str(stand.redis_socket)) as redis:
            assert redis.ask("DEL", "job") == 1
        wait_for(worker.is_told, "it is not told")


def says_when_its_lease_is_over(binary, language, code, folder):
    """latchd stays down: nobody can say so but the program's own clock."""
    with Restarted(binary) as stand, Worker(stand, language, code, folder) as worker:
        stand.end_daemon(signal.SIGKILL)
        down = time.monotonic()
        wait_for(worker.is_told, "it is not told")
        took = time.monotonic() - down
        assert took > LEASE_S / 3, f"it gave up after {took:.1f} s"
        assert took < LEASE_S + 2, f"it went on for {took:.1f} s"
        stand.start_daemon()


RESTARTS = [keeps_the_lock_through_restarts_and_says_when_it_is_lost,
            says_when_its_lease_is_over]


def cases(page, languages, binary, folder):
    """Name and function of each check of each example that renews."""
    for title, language, code in examples(page, languages):
        for check_it in RESTARTS if title.split()[0] in RENEWING else []:
            name = f"{title} in {language} {check_it.__name__}".replace("_", " ")
            yield name, (lambda check_it=check_it, language=language, code=code, name=name:
                         check_it(binary, languages[language], code,
                                  folder / name.replace(" ", "-")))
