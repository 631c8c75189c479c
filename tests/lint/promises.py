#!/usr/bin/env python3
"""The page of promises: promises.py ROOT.

Each promise of latchd-promises(7) names a test, and each test that is named exists.
"""
import pathlib
import re
import sys

import test_names

PAGE = "src/daemon/man/latchd-promises.7"
TEST = re.compile(r"^\.Pa (\S+) : Cm (\S+)$", re.M)
PROMISE = re.compile(r"^\.It Em (.+)$", re.M)


def is_there(root, path, name):
    """A test of that file, or a fuzzer; in a meson.build, a word."""
    file = root / path
    return file.is_file() and (
        name in test_names.names_in(file) or
        re.search(rf"'{name}'|^int {name}\(", file.read_text(), re.M) is not None)


def main():
    root = pathlib.Path(sys.argv[1])
    text = (root / PAGE).read_text()
    bad = [f"{path}: no test {name}" for path, name in TEST.findall(text)
           if not is_there(root, path, name)]
    promises = text.split(".Sh PROMISES")[1].split(".Sh ")[0]
    titles = PROMISE.findall(promises)
    for title, part in zip(titles, PROMISE.split(promises)[2::2]):
        if not TEST.search(part):
            bad.append(f"{PAGE}: nothing shows {title!r}")
    if len(titles) < 10:
        bad.append(f"{PAGE}: the promises are not found any more")
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
