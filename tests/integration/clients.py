#!/usr/bin/env python3
"""Ordinary clients, as they come, against a real daemon: clients.py LATCHD.

redis-cli (one-shot and interactive), telnet, redis-py, and the two common Node clients
where they are installed. Prints TAP.
"""
import fcntl
import functools
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import termios
import time

from stand import DEADLINE_S, Skip, Stand, python_with_redis, run, tap

REDIS_PY = """
import sys, threading, uuid, redis
port = int(sys.argv[1])
for options in ({}, {"decode_responses": True}, {"client_name": "me"}):
    r = redis.Redis(port=port, **options)
    assert r.ping()
    token = r.execute_command("LOCK", "job")
    assert isinstance(token, int) and token > 0
    assert r.execute_command("LOCK", "job", "WAIT", 0) is None
    assert r.execute_command("UNLOCK", "job", "TOKEN", token) == 0
    try:
        r.execute_command("UNLOCK", "job", "TOKEN", token + 1)
        raise SystemExit("no error")
    except redis.ResponseError as e:
        assert str(e).startswith("NOTHELD"), e
    assert r.info()["role"] == "master"
    assert r.client_id() > 0
inside = most = 0
guard = threading.Lock()
def work():
    global inside, most
    for _ in range(20):
        request = str(uuid.uuid4())
        while r.execute_command("LOCK", "shared", "WAIT", 4000, "ID", request) is None:
            pass
        with guard:
            inside += 1
            most = max(most, inside)
        with guard:
            inside -= 1
        assert r.execute_command("UNLOCK", "shared", "ID", request) == 0
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert most == 1, most
p = r.pubsub()
p.subscribe("granted:news")
assert p.get_message(timeout=5)["type"] == "subscribe"
r.execute_command("LOCK", "news", "OWNER", "o")
assert p.get_message(timeout=5)["channel"] in ("granted:news", b"granted:news")
"""

IOREDIS = """
const Redis = require('ioredis');
(async () => {
  const r = new Redis({ port: +process.argv[2] });
  const token = await r.call('LOCK', 'io');
  if (!(token > 0) || await r.call('LOCK', 'io', 'WAIT', '0') !== null) process.exit(1);
  if (await r.call('UNLOCK', 'io', 'TOKEN', token) !== 0) process.exit(2);
  await r.quit();
})().catch((e) => { console.error(e); process.exit(3); });
"""

NODE_REDIS = """
const { createClient } = require('redis');
(async () => {
  for (const RESP of [2, 3]) {
    const r = await createClient({ url: 'redis://127.0.0.1:' + process.argv[2], RESP }).connect();
    const token = await r.sendCommand(['LOCK', 'node']);
    if (!(token > 0) || await r.sendCommand(['LOCK', 'node', 'WAIT', '0']) !== null) process.exit(1);
    if (await r.sendCommand(['UNLOCK', 'node', 'TOKEN', String(token)]) !== 0) process.exit(2);
    await r.quit();
  }
})().catch((e) => { console.error(e); process.exit(3); });
"""


def need(tool):
    if shutil.which(tool) is None:
        raise Skip(f"{tool} is not installed")


def cli(stand, *words):
    need("redis-cli")
    return run(["redis-cli", "--no-raw", "-p", str(stand.port), *words]).stdout.strip()


def expect(good, got):
    if not good:
        raise AssertionError(f"unexpected: {got!r}")


def cli_one_shot(stand):
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


def cli_interactive(stand):
    need("redis-cli")
    with Terminal(["redis-cli", "-p", str(stand.port)]) as terminal:
        terminal.expect(f":{stand.port}>")
        terminal.ask("HELP LOCK", "summary:")
        terminal.ask("LOCK term", "(integer) ")
        terminal.ask("LOCK term WAIT 0", "(nil)")
        terminal.ask("UNLOCK term", "(integer) 0")


def cli_hints(stand):
    """Typed without Return: redis-cli shows the arguments, from COMMAND DOCS."""
    need("redis-cli")
    with Terminal(["redis-cli", "-p", str(stand.port)]) as terminal:
        terminal.expect(f":{stand.port}>")
        terminal.type("UNLOCK job ")
        terminal.expect("OWNER")


def telnet(stand):
    need("telnet")
    with Terminal(["telnet", "127.0.0.1", str(stand.port)]) as terminal:
        terminal.expect("Escape character")
        terminal.ask("LOCK tel", ":1")
        terminal.ask("LOCK tel WAIT 0", "$-1")
        terminal.ask("UNLOCK tel", ":0")
        terminal.ask("QUIT", "+OK")


def script(stand, args, text):
    result = run([*args, text, str(stand.port)])
    expect(result.returncode == 0, result.stdout)


def redis_py(stand):
    script(stand, [python_with_redis(), "-c"], REDIS_PY)


def node(package, text, stand):
    need("node")
    if run(["node", "-e", f"require('{package}')"]).returncode != 0:
        raise Skip(f"{package} is not installed")
    path = stand.folder / f"{package}.js"
    path.write_text(text)
    result = run(["node", str(path), str(stand.port)])
    expect(result.returncode == 0, (result.returncode, result.stdout))


CASES = [
    ("redis_cli_locks_waits_and_is_woken", cli_one_shot),
    ("redis_cli_at_a_terminal", cli_interactive),
    ("redis_cli_hints_our_commands", cli_hints),
    ("telnet", telnet),
    ("redis_py", redis_py),
    ("ioredis", functools.partial(node, "ioredis", IOREDIS)),
    ("node_redis", functools.partial(node, "redis", NODE_REDIS)),
]


def main():
    with Stand(sys.argv[1]) as stand:
        failed = tap([(name, functools.partial(case, stand)) for name, case in CASES])
    sys.exit(1 if failed else 0)


main()
