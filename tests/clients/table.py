#!/usr/bin/env python3
"""The table of docs/clients.md is the one that clients.py makes: table.py docs/clients.md

It stands between <!-- clients --> and <!-- /clients -->. With --write, puts it there.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import clients  # noqa: E402

SKIP = 77
PLACE = re.compile(r"(<!-- clients -->\n)(.*?)(<!-- /clients -->)", re.DOTALL)


def main():
    path = pathlib.Path(sys.argv[1])
    text = path.read_text()
    place = PLACE.search(text)
    if place is None:
        print(f"{path.name} has no place for a table of clients")
        return SKIP
    wanted = clients.table()
    if "--write" in sys.argv:
        path.write_text(text[:place.start(2)] + wanted + text[place.end(2):])
        return 0
    have, want = set(place[2].splitlines()), set(wanted.splitlines())
    for row in sorted(have - want):
        print("only in the table:", row)
    for row in sorted(want - have):
        print("only in the suite:", row)
    return 0 if place[2].strip() == wanted.strip() else 1


sys.exit(main())
