#!/usr/bin/env python3
"""docs/invariants.md: invariants.py ROOT. Each label is one invariant's, and has a test, by its
name's end or in the table's last column; each label in a test's name stands in the document; what the
last column names is there."""
import collections
import pathlib
import re
import sys

import test_names

PAGE = "docs/invariants.md"
ROW = re.compile(r"^\| (H\d+) \| .* \| (.*?) ?\|$", re.M)
LABEL = re.compile(r"(?<![A-Z0-9])(H\d+)(?=_|$)")
PREFIX = re.compile(r"([A-Za-z]\d+_)+[a-z]")
WORD = re.compile(r"`([^`]+)`")


def main():
    root = pathlib.Path(sys.argv[1])
    found = ROW.findall((root / PAGE).read_text())
    rows = dict(found)
    tests = set().union(*test_names.files(root).values())
    labelled = {label for name in tests for label in LABEL.findall(name)}
    bad = [f"{label} is in a test's name, and not in {PAGE}" for label in labelled - set(rows)]
    bad += [f"{name}: a label ends a test's name" for name in tests if PREFIX.match(name)]
    count = collections.Counter(label for label, _ in found)
    bad += [f"{label} is the label of {n} invariants" for label, n in count.items() if n > 1]
    for label, shown in rows.items():
        words = WORD.findall(shown)
        bad += [f"{label}: there is no {word}" for word in words
                if word not in tests and not (root / word).exists()]
        if not words and label not in labelled:
            bad.append(f"{label}: no test shows it")
    if len(rows) < 20:
        bad.append(f"{PAGE}: the invariants are not found any more")
    print("\n".join(sorted(bad)))
    sys.exit(1 if bad else 0)


main()
