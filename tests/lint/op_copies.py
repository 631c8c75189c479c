#!/usr/bin/env python3
"""op.c copies all that an op or a result points to: op_copies.py ROOT."""
import pathlib
import re
import sys

MEMBER = re.compile(r"^\s+(?:struct span|const [\w ]+ \*)\s*(\w+);", re.M)
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.M | re.S)


def main():
    engine = pathlib.Path(sys.argv[1]) / "src/engine"
    text = (engine / "op.c").read_text()
    copied = re.findall(r"\w+", text[:text.index("/* clang-format on */")])
    found = [(match[1], member) for match in STRUCT.finditer((engine / "op.h").read_text())
             for member in MEMBER.findall(match[2])]
    # Each name as often as the structs that have such a member.
    bad = [f"src/engine/op.h: {struct}.{member} is not copied" for struct, member in found
           if copied.count(member) < sum(other == member for _, other in found
                                         if member not in ("name", "text"))]
    if len(found) < 20:
        bad.append("the members are not found any more")
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
