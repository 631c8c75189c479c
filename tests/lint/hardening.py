#!/usr/bin/env python3
"""How a program was built: hardening.py PROGRAM [fortified].

Position-independent, relocations read-only and bound at the start, guards on the stack,
no memory that is both writable and executable, no path of its own to libraries, on x86-64
marks where a branch may go to (the note that would switch their check on also needs a C
library that was built so); and, where it was asked for, functions of the C library that know
the size of what they write to.
Exit code 77 (skipped) without readelf.
"""
import pathlib
import re
import shutil
import subprocess
import sys

SKIP = 77
ENDBR64 = b"\xf3\x0f\x1e\xfa"
FUNCTIONS = 20  # so many at least can be branched to


def readelf(*words):
    return subprocess.run(["readelf", "--wide", *words], capture_output=True, text=True,
                          check=True).stdout


def main():
    program, *features = sys.argv[1:]
    if shutil.which("readelf") is None:
        print("readelf is not installed")
        sys.exit(SKIP)
    header = readelf("--file-header", program)
    segments = readelf("--segments", program)
    dynamic = readelf("--dynamic", program)
    symbols = readelf("--dyn-syms", program)
    flags = {what: re.findall(rf"^\s*({what})\s.*?0x\w+ 0x\w+ ([RWE ]{{3}}) 0x", segments, re.M)
             for what in ("GNU_STACK", "GNU_RELRO", "LOAD")}
    wanted = {
        "position-independent": "DYN (" in header and "INTERP" in segments,
        "read-only relocations": flags["GNU_RELRO"],
        "bound at the start": re.search(r"FLAGS.*\bBIND_NOW\b|FLAGS_1.*\bNOW\b", dynamic),
        "no code on the stack": flags["GNU_STACK"] and "E" not in flags["GNU_STACK"][0][1],
        "nothing both writable and executable":
            flags["LOAD"] and not any("WE" in f for _, f in flags["LOAD"]),
        "no relocations in code": "TEXTREL" not in dynamic,
        "no path to libraries": not re.search(r"\((RPATH|RUNPATH)\)", dynamic),
        "guards on the stack": "__stack_chk_fail" in symbols,
    }
    if "X86-64" in header:
        code = pathlib.Path(program).read_bytes()
        wanted["marked for branches"] = code.count(ENDBR64) >= FUNCTIONS
    if "fortified" in features:
        wanted["functions that check"] = re.search(r"__\w+_chk\b(?<!__stack_chk)", symbols)
    missing = [what for what, there in wanted.items() if not there]
    for what in missing:
        print(f"{program}: not {what}" if not what.startswith("no") else f"{program}: {what}?")
    sys.exit(1 if missing else 0)


main()
