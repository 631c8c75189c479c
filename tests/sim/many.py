#!/usr/bin/env python3
"""Random schedules of all of the simulator's worlds, side by side, and what they found.

    tests/sim/many.py BUILD-DIRECTORY [--schedules N] [--seed S] [--jobs J] [--slice K]
                      [--worlds main,quorum] [--out FILE]

N schedules of each world, from seed S on (default: 1,000,000, from the clock), in slices of
K, J at a time at idle priority. The summary is written again after each slice: schedules
and seconds, and each failure with the line that replays it. Exits with 1 if there are any.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

WORLDS = {"main": "sim", "quorum": "sim_quorum"}
FAILURE = re.compile(r"^# seed (\d+): (.*)$", re.MULTILINE)
EVENTS = re.compile(r"(\d+) events")
OUTPUT_KEPT = 400
# What a schedule freed is there for the next one: a twelfth of the time goes without.
KEEPS_MEMORY = ":".join(f"glibc.malloc.{name}={1 << 30}"
                        for name in ("mmap_threshold", "trim_threshold"))


class World:
    """What was found in one of them."""

    def __init__(self, name, program):
        self.name = name
        self.program = program
        self.schedules = 0
        self.events = 0
        self.seconds = 0.0
        self.failures = []


def run_slice(world, seed, count):
    """Gives (seconds, output, exit code); a crash tells its seed on stderr."""
    started = time.monotonic()
    done = subprocess.run(
        [world.program, "--schedules", str(count), "--seed", str(seed), "--keep-going"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, "GLIBC_TUNABLES": KEEPS_MEMORY},
        preexec_fn=lambda: os.nice(19),
    )
    return time.monotonic() - started, done.stdout, done.returncode


def note(world, seed, count, result):
    seconds, output, code = result
    found = FAILURE.findall(output)
    world.schedules += count
    world.seconds += seconds
    world.events += sum(int(n) for n in EVENTS.findall(output))
    for failed, text in found:
        world.failures.append((int(failed), text))
    if code != 0 and not found:
        world.failures.append((seed, f"exit {code}: {output[-OUTPUT_KEPT:]}"))


def summary(worlds, first):
    lines = [f"seeds from {first}"]
    for world in worlds:
        lines.append(
            f"{world.name}: {world.schedules} schedules, {world.events} events, "
            f"{world.seconds:.0f} s of one processor, {len(world.failures)} failures"
        )
        for seed, text in sorted(world.failures):
            lines.append(f"  {world.program} --schedules 1 --seed {seed} --verbose: {text}")
    return "\n".join(lines) + "\n"


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--schedules", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()) * 1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--slice", type=int, default=10_000)
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("simulated.txt"))
    return parser.parse_args()


def main():
    args = read_arguments()
    programs = args.build / "tests" / "sim"
    worlds = [World(name, programs / WORLDS[name]) for name in args.worlds.split(",")]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        waiting = {}
        for at in range(0, args.schedules, args.slice):
            for world in worlds:
                seed, count = args.seed + at, min(args.slice, args.schedules - at)
                waiting[pool.submit(run_slice, world, seed, count)] = (world, seed, count)
        for future in concurrent.futures.as_completed(waiting):
            note(*waiting[future], future.result())
            args.out.write_text(summary(worlds, args.seed), encoding="utf-8")
    print(summary(worlds, args.seed), end="")
    return 1 if any(world.failures for world in worlds) else 0


if __name__ == "__main__":
    sys.exit(main())
