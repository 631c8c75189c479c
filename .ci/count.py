#!/usr/bin/env python3
"""Prints how many test cases of a JUnit report passed and failed; skipped ones count as
neither."""
import sys
import xml.etree.ElementTree as tree

passed = failed = 0
for case in tree.parse(sys.argv[1]).iter("testcase"):
    if case.find("failure") is not None or case.find("error") is not None:
        failed += 1
    elif case.find("skipped") is None:
        passed += 1
print(passed, failed)
