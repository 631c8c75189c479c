#!/usr/bin/env python3
"""The independent checker refuses what is planted, and agrees with torture's own on a short
torture of a single Redis. `proof.py LATCHD`. Prints TAP; skipped without Go and its module.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is written beside the sources
HERE = pathlib.Path(__file__).resolve().parent
TORTURE = HERE.parent / "torture" / "torture.py"
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
from stand import tap  # noqa: E402

PATIENCE_S = 120


def run(*words, **env):
    done = subprocess.run(words, cwd=HERE, text=True, check=False, timeout=PATIENCE_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **env})
    return done.returncode == 0, done.stdout


def planted_histories_are_refused():
    good, said = run("go", "test", "-count=1", "-run", "TestPlanted", ".")
    assert good, said


def both_checkers_agree_on_a_short_torture():
    with tempfile.TemporaryDirectory(prefix="latchd-proof-") as folder:
        good, said = run(sys.executable, str(TORTURE), sys.argv[1], "--topology", "single",
                         "--short", "--public", folder)
        assert good, said
        histories = list(pathlib.Path(folder).glob("*.porcupine.jsonl"))
        assert histories, said
        for history in histories:
            good, said = run("go", "test", "-count=1", "-v", "-run", "TestHistory", ".",
                             LATCHD_HISTORY=str(history))
            assert good and "--- PASS" in said, said


def main():
    if shutil.which("go") is None or not run("go", "mod", "download")[0]:
        print("1..0 # SKIP Go and its module porcupine cannot be had")
        return
    if shutil.which("redis-server") is None:
        print("1..0 # SKIP redis-server is not installed")
        return
    sys.exit(1 if tap([(case.__name__, case) for case in (
        planted_histories_are_refused, both_checkers_agree_on_a_short_torture)]) else 0)


main()
