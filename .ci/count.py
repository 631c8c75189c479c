#!/usr/bin/env python3
"""Prints how many test cases of a run of `meson test` passed and failed; skipped ones count
as neither. What the failed tests printed goes to standard error: each case that failed with
the comments before it, and the last lines.

usage: count.py DIRECTORY-OF-LOGS LOGBASE"""
import glob
import json
import sys
import xml.etree.ElementTree as tree

LAST_LINES = 60
COMMENTS = 40  # of one case


def failed_cases(said):
    """The lines of the cases that failed, and the comments that stand before each."""
    lines, comments = [], []
    for line in said.splitlines():
        if line.startswith("#"):
            comments.append(line)
            continue
        if line.startswith("not ok"):
            lines += comments[-COMMENTS:] + [line]
        comments = []
    return lines


directory, base = sys.argv[1:]
passed = failed = 0
reports = glob.glob(f"{directory}/{base}*.junit.xml")
if not reports:
    sys.exit(f"--- {base}: no test was run")
for report in reports:
    for case in tree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is None:
            passed += 1

for log in glob.glob(f"{directory}/{base}*.json"):
    with open(log, encoding="utf-8", errors="replace") as lines:
        for test in map(json.loads, lines):
            if test["result"] in ("OK", "SKIP", "EXPECTEDFAIL"):
                continue
            failed = max(failed, 1)  # one that timed out may have no case that failed
            print(f"--- {base}: {test['name']}: {test['result']}, "
                  f"{test['duration']:.1f} s", file=sys.stderr)
            said = test.get("stdout", "") + test.get("stderr", "")
            last = said.splitlines()[-LAST_LINES:]
            print("\n".join(failed_cases("\n".join(said.splitlines()[:-LAST_LINES])) + last),
                  file=sys.stderr)
print(passed, failed)
