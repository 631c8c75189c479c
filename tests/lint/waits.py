#!/usr/bin/env python3
"""Tests wait for states: waits.py ROOT. The sleeps that there are, and the bounds on real time
from above, are counted for each file of tests; LIST in waits.txt allows them.

A wait for a state is AWAIT() in C and until() in Python. What CONTRIBUTING allows otherwise is a
line here: a count may fall, and the list with it; neither rises.
"""
import pathlib
import re
import sys

LIST = "tests/lint/waits.txt"
# What sleeps, and what bounds real time from above.
WAIT = {".c": re.compile(r"\b(?:test_sleep_ms|expect_elapsed|nanosleep|usleep|sleep)\("),
        ".scn": re.compile(r"\b(?:elapsed|now) -> .*<"),
        ".py": re.compile(r"\btime\.sleep\(|monotonic\(\) - \w+(?:\.\w+)? <[ =]")}
# The helpers themselves, and what measures rather than tests.
OUTSIDE = ("tests/support/daemon.c", "tests/support/children.py", "tests/bench/", "tests/lint/",
           "tests/torture/", "tests/interop/", "tests/clients/")


def count(root):
    for path in sorted((root / "tests").rglob("*")):
        name = str(path.relative_to(root))
        if path.suffix in WAIT and not name.startswith(OUTSIDE):
            found = len(WAIT[path.suffix].findall(path.read_text()))
            if found:
                yield name, found


def main():
    root = pathlib.Path(sys.argv[1])
    found = dict(count(root))
    allowed = {name: int(number) for number, name in
               (line.split() for line in (root / LIST).read_text().splitlines())}
    bad = [f"{name}: {number} sleeps and bounds on time, {allowed.get(name, 0)} are allowed: "
           "CONTRIBUTING has the rule" for name, number in found.items()
           if number > allowed.get(name, 0)]
    for name, number in allowed.items():
        if found.get(name, 0) < number:
            print(f"# {LIST}: {found.get(name, 0)} {name} is enough")
    print("\n".join(bad))
    print(f"# {sum(found.values())} in {len(found)} files")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
