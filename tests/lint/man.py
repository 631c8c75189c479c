#!/usr/bin/env python3
"""The man pages: man.py ROOT LATCHD PAGE..., where the build has written PAGE.

latchd.conf(5) has the keys that latchd has, in its order, with the same defaults and the
same mark for what can be changed while it runs; and mandoc has no warnings, if it is there.
"""
import pathlib
import re
import shutil
import subprocess
import sys

PAGES = ["daemon/man/latchd.8", "daemon/man/latchd.conf.5", "daemon/man/latchd-promises.7",
         "latchctl/latchctl.1"]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def keys_of_program(latchd):
    keys = re.findall(r"^  --(\S+) +(.+)$", output(latchd, "--help").split("defaults:")[1],
                      re.M)
    printed = output(latchd, "--print-config")
    live = set(re.findall(r"\[live\]\n#?(\S+)", printed))
    return [(key, "none" if value == "(none)" else value, key in live)
            for key, value in keys]


def keys_of_page(page):
    found = re.findall(r"^\.It Ic (\S+) Pq default Cm (.+?)( , live)?$", page.read_text(),
                       re.M)
    return [(key, value, bool(live)) for key, value, live in found]


def main():
    folder, latchd = pathlib.Path(sys.argv[1]) / "src", sys.argv[2]
    program, page = keys_of_program(latchd), keys_of_page(folder / PAGES[1])
    for ours, theirs in zip(program, page):
        if ours != theirs:
            print(f"latchd has {ours}, latchd.conf.5 has {theirs}")
    if program != page or not program:
        print(f"latchd has {len(program)} keys, latchd.conf.5 has {len(page)}")
        sys.exit(1)
    if shutil.which("mandoc") is not None:
        sys.exit(subprocess.run(["mandoc", "-Tlint", "-Wwarning",
                                 *(folder / p for p in PAGES), *sys.argv[3:]], check=False).returncode)


main()
