#!/usr/bin/env python3
"""conf/latchd.conf is what latchd itself prints: conf_matches.py ROOT LATCHD."""
import difflib
import os
import pathlib
import subprocess
import sys


def main():
    conf = pathlib.Path(sys.argv[1]) / "conf" / "latchd.conf"
    printed = subprocess.run([sys.argv[2], "--print-config"], capture_output=True, text=True,
                             check=True, env={"PATH": os.environ.get("PATH", "")}).stdout
    diff = list(difflib.unified_diff(conf.read_text().splitlines(), printed.splitlines(),
                                     str(conf), "latchd --print-config", lineterm=""))
    print("\n".join(diff))
    subprocess.run([sys.argv[2], "--config", str(conf), "--check-config"], check=True)
    sys.exit(1 if diff else 0)


main()
