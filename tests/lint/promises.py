#!/usr/bin/env python3
"""The tests of the promises: promises.py ROOT.

tests/promises.txt names tests for each promise of latchd-promises(7), by its title, and each test that is named exists.
"""
import pathlib
import re
import sys

import test_names

PAGE = "src/daemon/man/latchd-promises.7"
LIST = "tests/promises.txt"
TITLE = re.compile(r"^\.(?:It Em|Ss|Sh) (.+)$", re.M)
PROMISE = re.compile(r"^\.It Em (.+)$", re.M)


def is_there(root, path, name):
    """A test of that file, or a fuzzer; in a meson.build, a word."""
    file = root / path
    return file.is_file() and (
        name in test_names.names_in(file) or
        re.search(rf"'{name}'|^int {name}\(", file.read_text(), re.M) is not None)


def shown(text):
    """Title -> [(file, test)]."""
    tests = {}
    for line in text.splitlines():
        if line.startswith("  "):
            tests[title].append(tuple(line.split()))
        elif line and not line.startswith("#"):
            title = line
            tests[title] = []
    return tests


def main():
    root = pathlib.Path(sys.argv[1])
    text = (root / PAGE).read_text().replace(r"\&", "")
    tests = shown((root / LIST).read_text())
    bad = [f"{LIST}: {path} has no test {name}" for named in tests.values() for path, name in named
           if not is_there(root, path, name)]
    promises = PROMISE.findall(text.split(".Sh PROMISES")[1].split(".Sh ")[0])
    bad += [f"{LIST}: nothing shows {title!r}" for title in promises if not tests.get(title)]
    bad += [f"{LIST}: {PAGE} has no {title!r}" for title in tests if title not in TITLE.findall(text)]
    if len(promises) < 10:
        bad.append(f"{PAGE}: the promises are not found any more")
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
