#!/usr/bin/env python3
"""latchd and Redisson on one Redis, a Redis Cluster, and several masters:
interop.py LATCHD BUILD_DIR REDISSON_VERSION [CHECK...]

Builds RedissonPeer in BUILD_DIR, starts JVMs, and where they meet redis-servers and three
latchds, and runs the checks of checks.py, or those named. TAP on standard output; all is
skipped where there is no JDK, Maven, redis-server, or Redisson to be had.
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
import backings  # noqa: E402
import checks  # noqa: E402
import evidence  # noqa: E402
import maven  # noqa: E402
from doom import Doom  # noqa: E402
from peers import Call, Jvm, Latchd, Redisson  # noqa: E402

BACKINGS = {b.topology: b for b in (backings.Redis, backings.Cluster, backings.Masters)}
SHARDED_SINCE = (4, 0)
PATIENCE_S = 120  # of those that run together


class Stage:
    """What all have in common, and what is stopped in the end."""

    def __init__(self, program, folder, class_path, version, stack):
        self.program, self.folder, self.class_path = program, folder, class_path
        self.version = tuple(map(int, version.split(".")))
        self.full = os.environ.get("LATCHD_INTEROP") == "long"
        self.keep = stack.enter_context
        self.jvm = self.doom = None

    def start_jvms(self, dooming):
        """`dooming`: how many checks want one to die."""
        self.jvm = self.keep(Jvm(self.class_path, self.folder, "jvm"))
        if dooming:
            doomed = self.keep(Jvm(self.class_path, self.folder, "doomed-jvm"))
            self.doom = Doom(doomed, dooming)


class World:
    """Who meets where, and how much is to be done."""

    watchdog_ms = 2000
    recheck_ms = 200

    def __init__(self, stage, redis):
        self.stage, self.redis = stage, redis
        self.version, self.doom = stage.version, stage.doom
        # Before it had a setting, each client of a Cluster chose by chance how to listen and
        # publish, and then did not hear the others: the old one is to do it in plain.
        self.sharded = stage.version >= SHARDED_SINCE
        self.rounds = self.count(60, 1_000)
        self.contend_s = self.count(60, 1_800, 1)
        # So rare a recheck that it hides no lost wake-up.
        rare = ["--recheck", "60s"]
        self.latchd = stage.keep(self.latchd_with("first", rare))
        self.second = stage.keep(self.latchd_with("second", rare))
        self.quick = stage.keep(self.start_latchd("quick"))
        self.jvm = self.redisson(stage.jvm, "main", 30_000, 300_000)
        self.short = self.hasty(stage.jvm, "short")
        self.doomed = stage.doom and self.hasty(stage.doom.jvm, "doomed")

    def count(self, short, long, part=None):
        """How many of something, in a run that is short, and in one that is long."""
        return long if self.stage.full else int(short * (part or self.redis.part))

    def latchd_with(self, name, options):
        return Latchd(self.stage.program, self.redis, self.stage.folder,
                      f"{self.redis.topology}-{name}", *self.redis.options, *options)

    def start_latchd(self, name, *options):
        """One whose leases and rechecks are short."""
        return self.latchd_with(name, ["--watchdog-timeout", f"{self.watchdog_ms}ms",
                                       "--recheck", f"{self.recheck_ms}ms", *options])

    def hasty(self, jvm, name):
        """A Redisson whose leases and places in a queue are short."""
        return self.redisson(jvm, name, self.watchdog_ms, 1000)

    def redisson(self, jvm, name, watchdog_ms, fair_wait_ms):
        where = (self.redis.topology, self.redis.ports)
        if self.redis.topology == "cluster" and not self.sharded:
            where = ("plain-cluster", self.redis.ports)
        return Redisson(jvm, f"{self.redis.topology}-{name}", where, watchdog_ms,
                        fair_wait_ms)

    @staticmethod
    def say(text):
        print(f"# {text}", flush=True)


def passes(world, check):
    began = time.monotonic()
    try:
        check(world)
        return True
    except Exception:  # pylint: disable=broad-except
        evidence.tell(f"{check.__name__}:\n{traceback.format_exc()}")
        return False
    finally:
        if getattr(check, "kills", False):
            world.doom.leave()
        world.say(f"{world.redis.topology}, {check.__name__}: "
                  f"{time.monotonic() - began:.1f} s")


class Results:
    """As TAP."""

    def __init__(self, count):
        self.said = self.bad = 0
        print(f"1..{count}", flush=True)

    def say(self, place, check, good):
        self.said += 1
        self.bad += not good
        name = check.__name__ if place == "single" else f"{place}_{check.__name__}"
        print(f"{'ok' if good else 'not ok'} {self.said} - {name}", flush=True)


def run(stage, alone, together):
    """How many failed."""
    places = dict.fromkeys(place for place, _ in [*alone, *together])
    stage.start_jvms(sum(hasattr(check, "kills") for _, check in together))
    redis = {place: BACKINGS[place](stage) for place in places}
    worlds = {place: World(stage, redis[place]) for place in places}
    results = Results(len(alone) + len(together))
    for place, check in alone:
        results.say(place, check, passes(worlds[place], check))
    calls = [(place, check, Call(passes, worlds[place], check)) for place, check in together]
    for place, check, call in calls:
        results.say(place, check, call.done(PATIENCE_S).value)
    return results.bad


def main():
    program, build, version, *names = sys.argv[1:]
    try:
        class_path = maven.build(pathlib.Path(build).resolve(), version)
        if shutil.which("redis-server") is None:
            raise maven.Missing("no redis-server")
    except maven.Missing as why:
        print(f"1..0 # SKIP {why}")
        return
    chosen = [[(place, check) for place, check in some
               if not names or check.__name__ in names or place in names]
              for some in (checks.BY_THEMSELVES, checks.TOGETHER)]
    with tempfile.TemporaryDirectory(prefix="latchd-interop-") as folder, \
         contextlib.ExitStack() as stack:
        stage = Stage(program, pathlib.Path(folder), class_path, version, stack)
        bad = run(stage, *chosen)
    sys.exit(1 if bad else 0)


main()
