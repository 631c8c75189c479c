#!/usr/bin/env python3
"""mandoc has no warnings about the man pages, if it is there: man.py ROOT PAGE..., where the build
has written PAGE.
"""
import pathlib
import shutil
import subprocess
import sys

PAGES = ["daemon/man/latchd.8", "daemon/man/latchd-http.7", "daemon/man/latchd-promises.7",
         "latchctl/latchctl.1"]

if shutil.which("mandoc") is not None:
    sources = pathlib.Path(sys.argv[1]) / "src"
    sys.exit(subprocess.run(["mandoc", "-Tlint", "-Wwarning", *(sources / page for page in PAGES),
                             *sys.argv[2:]], check=False).returncode)
