#!/usr/bin/env python3
"""latchd and Redisson on one Redis: interop.py LATCHD BUILD_DIR REDISSON_VERSION [CHECK...]

Builds RedissonPeer in BUILD_DIR, starts redis-server, two latchds for long leases and one
for short ones, and JVMs, and runs the checks of checks.py, or those named. TAP on standard
output; all is skipped where there is no JDK, Maven, redis-server, or Redisson to be had.
LATCHD_INTEROP=long in the environment: as many entries as it takes to trust it.
"""
import contextlib
import os
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True  # nothing is written beside the sources

# pylint: disable=wrong-import-position
import checks  # noqa: E402
import evidence  # noqa: E402
import maven  # noqa: E402
from peers import Jvm, Latchd, Redis  # noqa: E402


class World:
    """Who is there, and how much is to be done."""

    watchdog_ms = 2000
    recheck_ms = 200

    def __init__(self, program, folder, class_path, version, stack):
        self.version = tuple(map(int, version.split(".")))
        self.full = os.environ.get("LATCHD_INTEROP") == "long"
        self.rounds = self.count(60, 1_000)
        self.contend_s = self.count(60, 1_800)
        self.program, self.folder, self.class_path = program, folder, class_path
        self.redis = stack.enter_context(Redis(folder))
        # So rare a recheck that it hides no lost wake-up.
        rare = ["--recheck", "60s"]
        self.latchd = stack.enter_context(self.latchd_with("first", rare))
        self.second = stack.enter_context(self.latchd_with("second", rare))
        self.quick = stack.enter_context(self.start_latchd("quick"))
        self.jvm = stack.enter_context(
            Jvm(class_path, self.redis, folder, "jvm", 30_000, 300_000))
        self.short = stack.enter_context(self.start_jvm("short-jvm"))

    def count(self, short, long):
        """How many of something, in a run that is short, and in one that is long."""
        return long if self.full else short

    def latchd_with(self, name, options):
        return Latchd(self.program, self.redis, self.folder, name, *options)

    def start_latchd(self, name, *options):
        """One whose leases and rechecks are short."""
        return self.latchd_with(name, ["--watchdog-timeout", f"{self.watchdog_ms}ms",
                                       "--recheck", f"{self.recheck_ms}ms", *options])

    def start_jvm(self, name):
        """One whose leases and places in a queue are short."""
        return Jvm(self.class_path, self.redis, self.folder, name, self.watchdog_ms, 1000)

    @staticmethod
    def say(text):
        print(f"# {text}", flush=True)


def run(world, todo):
    bad = 0
    print(f"1..{len(todo)}", flush=True)
    for number, function in enumerate(todo, 1):
        began = time.monotonic()
        try:
            function(world)
            result = "ok"
        except Exception:  # pylint: disable=broad-except
            result = "not ok"
            bad += 1
            evidence.tell(f"{function.__name__}:\n{traceback.format_exc()}")
        world.say(f"{time.monotonic() - began:.1f} s")
        print(f"{result} {number} - {function.__name__}", flush=True)
    return bad


def main():
    program, build, version, *names = sys.argv[1:]
    try:
        class_path = maven.build(pathlib.Path(build).resolve(), version)
        if shutil.which("redis-server") is None:
            raise maven.Missing("no redis-server")
    except maven.Missing as why:
        print(f"1..0 # SKIP {why}")
        return
    todo = [c for c in checks.ALL if not names or c.__name__ in names]
    with tempfile.TemporaryDirectory(prefix="latchd-interop-") as folder, \
         contextlib.ExitStack() as stack:
        bad = run(World(program, pathlib.Path(folder), class_path, version, stack), todo)
    sys.exit(1 if bad else 0)


main()
