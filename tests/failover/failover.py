#!/usr/bin/env python3
"""Failover under load: failover.py LATCHD TOPOLOGY [long] [CASE...].

The cases of cases_TOPOLOGY.py, each in a process of its own, all at once; `long`: those
that take more than some seconds. What clients
saw is recorded and checked: support/history.py. Prints TAP. LATCHD_SEED in the
environment: the load's dice.
"""
import importlib
import pathlib
import shutil
import signal
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is written beside the sources
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
from runs import SKIPPED, Runs  # noqa: E402
from stage import Failed, Stage  # noqa: E402
from stand import Skip, tap  # noqa: E402

AT_ONCE = 6
CASE_S = 120


def run_one(program, case):
    """In a process of its own: 0 if all was well."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="latchd-failover-") as folder:
        with Stage(program, pathlib.Path(folder)) as stage:
            try:
                case(stage)
            except Skip as why:
                stage.say(why)
                sys.exit(SKIPPED)
            except Exception as why:  # pylint: disable=broad-except
                stage.explain()
                if isinstance(why, Failed):
                    sys.exit(str(why))
                raise


def main():
    program, topology, *names = sys.argv[1:]
    module = importlib.import_module(f"cases_{topology}")
    if names[:1] == ["--one"]:
        run_one(program, getattr(module, names[1]))
        return
    if shutil.which("redis-server") is None:
        print("1..0 # SKIP no redis-server")
        return
    if names in ([], ["long"]):
        names = [case.__name__ for case in (module.LONG if names else module.CASES)]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    runs = Runs([sys.executable, __file__, program, topology, "--one"], names, AT_ONCE,
                CASE_S)
    sys.exit(1 if tap(runs.cases()) else 0)


main()
