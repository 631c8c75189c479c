#!/usr/bin/env python3
"""How soon a holder learns that its hold is lost or uncertain, by real client libraries.

notices_run.py LATCHD BUILD_DIR: prints TAP. Each client holds some locks and is told in
one way: by the `invalidate` push of CLIENT TRACKING, by a channel, or as it asks LOCKINFO
again and again. Holds are freed by force one after the other, then Redis is stopped for a
moment. What counts is the time from the daemon's own line in its log to the moment at
which the program behind the library has it. It is to be 100 ms; a machine that does other
things at the same time is forgiven more.
"""
import datetime
import json
import os
import pathlib
import queue
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))
sys.path.append(str(HERE))

# pylint: disable=wrong-import-position
from stand import Skip, Stand, tap  # noqa: E402

try:
    import kits
    from wire import Wire
except ImportError:
    print("1..0 # SKIP the other clients are not there")
    sys.exit(0)

AIM_MS = 100
FORGIVEN_MS = 400  # to a busy machine
PATIENCE_S = 30
LOSSES = 5
OPTIONS = ["--redis-timeout", "300ms", "--watchdog-timeout", "3s",
           "--log-level", "info", "--log-format", "json"]
SAID = {"lost": "a hold is lost", "uncertain": "a hold is uncertain"}

CLIENTS = [
    ("redis-py 8", "redis-py", "notices_redis_py.py", ["push", "channel", "asked"]),
    ("redis-py 4", "debian-redis-py", "notices_redis_py.py", ["channel", "asked"]),
    ("node-redis 6", "node-6", "notices_node_redis.js", ["push", "channel", "asked"]),
]


class Told:
    """The client's program: it holds, and says when it was told of what."""

    def __init__(self, command, environment):
        self.child = subprocess.Popen([str(w) for w in command], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, env=environment)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.lines.put(line.split())
        self.lines.put([])

    def expect(self, *wanted):
        """The rest of the first line that begins so."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                line = self.lines.get(timeout=max(0.001, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"it was not told: {wanted}") from None
            if not line:
                raise AssertionError("its program has ended")
            if line[:len(wanted)] == list(wanted):
                return line[len(wanted):]

    def close(self):
        self.child.stdin.close()
        try:
            self.child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def logged_ms(log, what, name):
    """When the daemon knew: the first such line."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = [entry for entry in map(json.loads, log.read_text().splitlines())
                 if entry["message"].startswith(SAID[what]) and entry.get("name") == name]
        if found:
            when = datetime.datetime.fromisoformat(found[0]["time"].replace("Z", "+00:00"))
            return when.timestamp() * 1000
        time.sleep(0.01)
    raise AssertionError(f"the log never says that {name} is {what}")


def follow(stand, log, told, names):
    """Delays in ms."""
    delays = []
    with Wire(("127.0.0.1", stand.port)) as wire:
        for name in names[:LOSSES]:
            assert wire.ask("FORCEUNLOCK", name, "ANY") == 1
            when = float(told.expect("told", name)[0])
            delays.append(when - logged_ms(log, "lost", name))
    stand.redis.send_signal(signal.SIGSTOP)
    try:
        for name in names[LOSSES:]:
            when = float(told.expect("told", name)[0])
            delays.append(when - logged_ms(log, "uncertain", name))
    finally:
        stand.redis.send_signal(signal.SIGCONT)
    return delays


class LoggingStand(Stand):
    """Its daemon writes to a file."""

    def __init__(self, binary, log):
        # A shell between, as the log is its standard error; what Stand says of the log
        # is left out.
        script = log.parent / "latchd"
        script.write_text(f'#!/bin/sh\nexec "{binary}" "$1" "$2" {" ".join(OPTIONS)} 2>"{log}"\n')
        script.chmod(0o755)
        super().__init__(str(script))


def check(latchd, build, kit, program, way):
    try:
        folder = kits.make(kit, build)
    except kits.Missing as why:
        raise Skip(str(why)) from None
    names = [f"{way}{i}" for i in range(LOSSES + 1)]
    with tempfile.TemporaryDirectory(prefix="latchd-notices-") as scratch:
        log = pathlib.Path(scratch) / "log"
        with LoggingStand(latchd, log) as stand:
            interpreter = "node" if program.endswith(".js") else sys.executable
            paths = {"PYTHONPATH": str(folder), "NODE_PATH": f"{folder}/node_modules"}
            if kit == "debian-redis-py":
                interpreter, paths = "/usr/bin/python3", {}
            told = Told([interpreter, HERE / program, stand.port, way, *names],
                        {**os.environ, **paths})
            try:
                told.expect("ready")
                delays = follow(stand, log, told, names)
            finally:
                told.close()
    print(f"# {program} {way}: {', '.join(f'{d:.0f}' for d in delays)} ms", flush=True)
    for what, some in (("losses", delays[:LOSSES]), ("doubts", delays[LOSSES:])):
        assert statistics.median(some) <= AIM_MS + FORGIVEN_MS, f"{what}: median of {some}"


def main():
    latchd, build = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    build.mkdir(parents=True, exist_ok=True)
    return tap([(f"{title} is told by {way}",
                 lambda kit=kit, program=program, way=way:
                 check(latchd, build, kit, program, way))
                for title, kit, program, ways in CLIENTS for way in ways])


if __name__ == "__main__":
    sys.exit(main())
