#!/usr/bin/env python3
"""Sizes: files above 400 lines are listed; far larger ones and functions above 60 fail.
Tests, which are lists of cases, have some more room.

Whoever needs more says why in REASONS: "path" or "path:function" -> reason.
"""
import pathlib
import re
import sys

FILE_AIM, FILE_MAX, TESTS_MAX = 400, 450, 500
FUNCTION_MAX = 60

REASONS = {
    "tests/integration/cmd/it_badinput.c:each_bad_command_is_an_error_and_the_connection_goes_on":
        "a table",
}

NAME = re.compile(r"(?:START_TEST\()?\b(?!START_TEST)(\w+)\s*[(),]")


def functions(lines):
    """Name, first line and length of each; the brace style makes them easy to see."""
    start = None
    for i, line in enumerate(lines):
        if line == "{":
            start = i
        elif line == "}" and start is not None:
            head = start
            while head > 0 and lines[head - 1].strip() and lines[head - 1] != "}":
                head -= 1
            name = NAME.search(" ".join(lines[head:start]))
            yield (name.group(1) if name else "?"), head + 1, i - start - 1
            start = None


def check(where, key, size, aim, most):
    if size <= aim:
        return 0
    reason = REASONS.get(key)
    print(f"{where}: {size} lines (aim {aim}){': ' + reason if reason else ''}")
    return 1 if size > most and reason is None else 0


def main():
    root = pathlib.Path(sys.argv[1])
    bad = 0
    for folder in ("src", "include", "tests"):
        for path in sorted((root / folder).glob("**/*.[ch]")):
            lines = path.read_text().splitlines()
            name = path.relative_to(root).as_posix()
            most = TESTS_MAX if folder == "tests" else FILE_MAX
            bad += check(name, name, len(lines), FILE_AIM, most)
            for function, line, size in functions(lines):
                bad += check(f"{name}:{line}: {function}()", f"{name}:{function}", size,
                             FUNCTION_MAX, FUNCTION_MAX)
    sys.exit(1 if bad else 0)


main()
