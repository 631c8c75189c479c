#!/usr/bin/env python3
"""tests/REDISSON.md: redisson.py ROOT. Every test that its second column names is in the
file that is named before it, and no row has nothing to say."""
import pathlib
import re
import sys

import test_names

ROW = re.compile(r"^\| (.+?) \| (.*?) ?\|$", re.M)
WORD = re.compile(r"`([^`]+)`")
HEADINGS = {"latchd", "---"}


def check_row(files, theirs, ours):
    """What is wrong with a row, one text each."""
    here = None
    if not ours:
        yield f"{theirs}: nothing"
    for word in WORD.findall(ours):
        if word.endswith((".c", ".py", ".scn")):
            here = word
            if word not in files:
                yield f"{theirs}: there is no {word}"
        elif re.fullmatch(r"\w{6,}", word) and word not in files.get(here, ()):
            yield f"{theirs}: no {word} in {here}"


def main():
    root = pathlib.Path(sys.argv[1])
    files = {}
    for path, names in test_names.files(root).items():
        files.setdefault(path.name, set()).update(names)  # stages share names of files
    rows = [row for row in ROW.findall((root / "tests/REDISSON.md").read_text())
            if row[1] not in HEADINGS]
    wrong = [text for row in rows for text in check_row(files, *row)]
    print("\n".join(wrong))
    sys.exit(1 if wrong or len(rows) < 100 else 0)


main()
