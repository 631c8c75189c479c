#!/usr/bin/env python3
"""Judges what others can judge: the independent checker refuses what is planted, and has
torture's own verdict on what it judges as well; Clojure reads what is for Jepsen.

`proof.py LATCHD FOLDER`. FOLDER: of histories from `torture.py --public`; if it has none, a short
torture of a single Redis makes one. Prints TAP; skipped without Go and its module.
"""
import os
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing is written beside the sources
HERE = pathlib.Path(__file__).resolve().parent
TORTURE = HERE.parent / "torture"
sys.path += [str(HERE.parent / "support"), str(TORTURE)]

# pylint: disable=wrong-import-position
from public import REFUSED  # noqa: E402
from stand import tap  # noqa: E402

PATIENCE_S = 240
JARS = [pathlib.Path("/usr/share/java") / f"{name}.jar"
        for name in ("clojure", "spec.alpha", "core.specs.alpha")]


def run(*words, **env):
    try:
        done = subprocess.run(list(map(str, words)), cwd=HERE, text=True, check=False,
                              timeout=PATIENCE_S, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, env={**os.environ, **env})
    except subprocess.TimeoutExpired:
        return False, f"{words[0]}: nothing within {PATIENCE_S} s"
    return done.returncode == 0, done.stdout


def planted_histories_are_refused():
    good, said = run("go", "test", "-count=1", "-run", "TestPlanted", ".")
    assert good, said


def agreement(history):
    def both_checkers_agree():
        refused = history.name.split(".")[0].endswith(REFUSED)
        good, said = run("go", "test", "-count=1", "-v", "-run", "TestHistory", ".",
                         LATCHD_HISTORY=str(history))
        print("".join(f"# {line}\n" for line in said.splitlines()), end="")
        word = "FAIL" if refused else "PASS"
        assert good != refused and f"--- {word}" in said, f"torture's own verdict: {word}"
    return both_checkers_agree


def clojure_reads(histories):
    def clojure_reads_what_is_for_jepsen():
        good, said = run("java", "-cp", ":".join(map(str, JARS)), "clojure.main", "jepsen.clj",
                         *histories)
        assert good, said
    return clojure_reads_what_is_for_jepsen


def main():
    latchd, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if shutil.which("go") is None or not run("go", "mod", "download")[0]:
        print("1..0 # SKIP Go and its module porcupine cannot be had")
        return
    if shutil.which("redis-server") is None:
        print("1..0 # SKIP redis-server is not installed")
        return
    if not list(folder.glob("*.jsonl")):
        run(sys.executable, TORTURE / "torture.py", latchd, "--topology", "single", "--short",
            "--public", folder)
    histories = sorted(folder.glob("*.jsonl"))
    cases = [("planted_histories_are_refused", planted_histories_are_refused)]
    cases += [(f"both_checkers_agree_on_{path.name.split('.')[0]}", agreement(path))
              for path in histories or [folder / "none.jsonl"]]
    if shutil.which("java") and all(jar.exists() for jar in JARS):
        case = clojure_reads(sorted(folder.glob("*.edn")))
        cases.append((case.__name__, case))
    sys.exit(1 if tap(cases) else 0)


main()
