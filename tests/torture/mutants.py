#!/usr/bin/env python3
"""Proves that planted faults are caught: mutants.py [NAME...].

A copy of the sources is built once for each mutation of mutations.py, with only that one
in it, and is run through the simulators, and if they find nothing, through a torture. A fault
in a script is for the torture alone, which shows what that finds, unless it says otherwise.
--all: everything runs. First
comes a build without any, in which nothing may be found. Prints a table; exit code 1 if one
survives. With --check nothing is built: do they still fit the sources?
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # nothing is written beside the sources
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# pylint: disable=wrong-import-position
from mutations import MUTATIONS, Mutation, problems  # noqa: E402

PROGRAMS = sorted(path.stem.removeprefix("test_")
                  for path in (ROOT / "tests/sim").glob("*/test_*.c")
                  if path.parent.name != "redis")
SCENARIOS = sorted(path.relative_to(ROOT) for path in (ROOT / "tests/scenarios/sim").glob("*.scn"))
TARGETS = ["src/latchd", "tests/sim/sim", "tests/sim/sim_quorum", "tests/support/machine.so",
           "tests/scenarios/scenario_sim", *(f"tests/sim/test_{name}" for name in PROGRAMS)]
SCHEDULES, QUORUM_SCHEDULES = 20_000, 2000
MINUTES, SEED = 0.25, 11
LIMIT_S = 600
NONE = Mutation("(none)", "nothing is planted", [])


class Copy:
    """Of the sources, and its build."""

    def __init__(self, folder):
        self.source, self.build = folder / "source", folder / "build"
        self.before = {}  # path -> its text, of what a mutation changes

    def make(self):
        """Whatever is there is brought up to date, so that little is built again."""
        self.source.mkdir(parents=True, exist_ok=True)
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                               check=True, capture_output=True, text=True).stdout
        for name in names.splitlines():
            old, new = ROOT / name, self.source / name
            if old.is_file() and not (new.exists() and
                                      new.read_bytes() == old.read_bytes()):
                new.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(old, new)
        if not self.build.exists():
            self.run(["meson", "setup", self.build, self.source])

    def run(self, command):
        """(whether it was well, what it said)."""
        try:
            done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                  text=True, errors="replace", timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return False, "it hangs"
        return done.returncode == 0, done.stdout

    def plant(self, mutation):
        for file, old, new in mutation.edits:
            path = self.source / "src" / file
            self.before.setdefault(path, path.read_text())
            path.write_text(path.read_text().replace(old, new))
        well, said = self.run(["ninja", "-C", self.build, *TARGETS])
        if not well:
            sys.exit(f"{mutation.name} cannot be built:\n{said[-3000:]}")

    def pull_out(self):
        for path, text in self.before.items():
            path.write_text(text)
        self.before.clear()


def catchers(copy, mutation, options):
    """(name, command) of what is to find it."""
    build = copy.build
    in_script = mutation.edits and all(file.endswith(".lua") for file, *_ in mutation.edits)
    if options.all or not in_script or mutation.simulated:
        yield "simulator", [build / "tests/sim/sim", "--schedules", SCHEDULES]
        yield "quorum simulator", [build / "tests/sim/sim_quorum", "--schedules",
                                   QUORUM_SCHEDULES]
        for name in PROGRAMS:
            yield "scenarios", [build / f"tests/sim/test_{name}"]
        for path in SCENARIOS:
            yield "scenarios", [build / "tests/scenarios/scenario_sim", copy.source / path]
    yield "torture", [sys.executable, copy.source / "tests/torture/torture.py",
                      build / "src/latchd", "--minutes", max(options.minutes, mutation.minutes),
                      "--seed", SEED,
                      "--topology", mutation.topology, "--faults", mutation.faults,
                      "--histories", build / "histories"]


def reason(said):
    """The line that tells what was found."""
    lines = [line.strip() for line in said.splitlines()]
    for line in lines:
        kind = line.split(":")[0]
        if kind in ("two holders", "token", "lost update", "fenced write", "fair order", "order",
                    "request", "entries", "deadline", "left behind", "lost", "slept"):
            return line
    for i, line in enumerate(lines):
        if line.startswith("# replay:"):
            return lines[i - 1].removeprefix("# ")
    errors = [line for line in lines if "Error" in line or ":F:" in line
              or line.startswith("not ok")]
    return errors[-1] if errors else lines[-1] if lines else ""


def hunt(copy, mutation, options):
    """Prints a line per catcher that was run; whether it was caught."""
    began = time.monotonic()
    copy.plant(mutation)
    caught = False
    try:
        for name, command in catchers(copy, mutation, options):
            well, said = copy.run(command)
            if not well:
                caught = True
                print(f"{mutation.name:22} caught by the {name:17}"
                      f"{reason(said)[:100]}", flush=True)
                if not options.all:
                    break
            elif options.all:
                print(f"{mutation.name:22}    not by the {name}", flush=True)
    finally:
        copy.pull_out()
    if not caught:
        print(f"{mutation.name:22} not caught: {mutation.what}", flush=True)
    if options.verbose:
        print(f"    {time.monotonic() - began:.0f} s", flush=True)
    return caught


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--all", action="store_true", help="all catchers, not only the first")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of each torture")
    parser.add_argument("--verbose", action="store_true", help="how long each took")
    parser.add_argument("--folder", type=pathlib.Path, help="for the copy and its build",
                        default=pathlib.Path(tempfile.gettempdir()) / "latchd-mutants")
    options = parser.parse_args()
    bad = list(problems(ROOT / "src"))
    print("".join(f"{line}\n" for line in bad), end="")
    if options.check or bad:
        sys.exit(1 if bad else 0)
    copy = Copy(options.folder)
    copy.make()
    survivors = 0
    if (not options.names or NONE.name in options.names) and hunt(copy, NONE, options):
        sys.exit("something is found where nothing is planted")
    chosen = [m for m in MUTATIONS if not options.names or m.name in options.names]
    for mutation in chosen:
        survivors += not hunt(copy, mutation, options)
    print(f"{len(chosen) - survivors} of {len(chosen)} caught")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
