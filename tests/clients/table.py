#!/usr/bin/env python3
"""The tables of docs/clients.md are those that clients.py and locks_list.py make:
table.py docs/clients.md

They stand between <!-- clients --> and <!-- /clients -->, and so <!-- locks -->. With --write,
puts them there.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import clients  # noqa: E402
import locks_list  # noqa: E402

TABLES = {"clients": clients.table, "locks": locks_list.table}


def place_of(name, text):
    """Where it stands."""
    found = re.search(f"<!-- {name} -->\n(.*?)<!-- /{name} -->", text, re.DOTALL)
    if found is None:
        sys.exit(f"there is no place for the table of {name}")
    return found


def differs(name, have, want):
    have, want = have.splitlines(), want.splitlines()
    for row in have:
        if row not in want:
            print(f"only in the table of {name}:", row)
    for row in want:
        if row not in have:
            print(f"only in the suite, of {name}:", row)
    return have != want


def main():
    path = pathlib.Path(sys.argv[1])
    text, bad = path.read_text(), 0
    for name, make in TABLES.items():
        place = place_of(name, text)
        if "--write" in sys.argv:
            text = text[:place.start(1)] + make() + text[place.end(1):]
        else:
            bad += differs(name, place[1], make())
    if "--write" in sys.argv:
        path.write_text(text)
    return 1 if bad else 0


sys.exit(main())
