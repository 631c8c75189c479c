#!/usr/bin/env python3
"""The unit files: units.py ROOT verify|security.

verify: systemd finds nothing to complain about. security: exposure below 1.2 of 10.
Exit code 77 (skipped) where systemd-analyze is not there or cannot run.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
EXPOSURE_MAX = 1.2


def run(*command):
    done = subprocess.run(["systemd-analyze", *command], capture_output=True, text=True,
                          check=False)
    print(done.stdout + done.stderr)
    return done


def verify(service, socket):
    done = run("verify", "--man=no", service, socket)
    return 1 if done.returncode != 0 or done.stderr.strip() else 0


def security(service, _):
    done = run("security", "--offline=true", "--no-pager", service)
    found = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    if found is None:
        return SKIP
    return 0 if float(found.group(1)) < EXPOSURE_MAX else 1


def main():
    root, what = pathlib.Path(sys.argv[1]) / "systemd", sys.argv[2]
    if shutil.which("systemd-analyze") is None:
        print("systemd-analyze is not installed")
        sys.exit(SKIP)
    with tempfile.TemporaryDirectory() as scratch:
        service = pathlib.Path(scratch) / "latchd.service"
        socket = pathlib.Path(scratch) / "latchd.socket"
        text = (root / "latchd.service.in").read_text()
        # A program that is there: whether ours is installed is not the question.
        text = text.replace("@sbindir@/latchd", shutil.which("true"))
        service.write_text(text.replace("@confdir@", "/etc/latchd"))
        socket.write_text((root / "latchd.socket").read_text())
        sys.exit({"verify": verify, "security": security}[what](service, socket))


main()
