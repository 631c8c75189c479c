#!/usr/bin/env python3
"""Sizes: a file has at most 1,500 lines, a function 120. A file holds one object, whatever its size.

An exception has its reason in REASONS: "path" or "path:function" -> reason.
"""
import pathlib
import re
import sys

FILE_MAX, FUNCTION_MAX = 1500, 120

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


def check(where, key, size, most):
    if size <= most:
        return 0
    reason = REASONS.get(key)
    print(f"{where}: {size} lines (at most {most}){': ' + reason if reason else ''}")
    return 1 if reason is None else 0


def main():
    root = pathlib.Path(sys.argv[1])
    bad = 0
    for folder in ("src", "include", "tests"):
        for path in sorted((root / folder).glob("**/*.[ch]")):
            lines = path.read_text().splitlines()
            name = path.relative_to(root).as_posix()
            bad += check(name, name, len(lines), FILE_MAX)
            for function, line, size in functions(lines):
                bad += check(f"{name}:{line}: {function}()", f"{name}:{function}", size,
                             FUNCTION_MAX)
    sys.exit(1 if bad else 0)


main()
