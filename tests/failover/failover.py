#!/usr/bin/env python3
"""Failover under load: failover.py LATCHD TOPOLOGY [CASE...].

The cases of cases_TOPOLOGY.py, each in a process of its own, all at once. What clients
saw is recorded and checked: support/history.py. Prints TAP. LATCHD_SEED in the
environment: the load's dice.
"""
import importlib
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is written beside the sources
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "integration"))
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
from children import die_with_parent  # noqa: E402
from stage import Failed, Stage  # noqa: E402
from stand import tap  # noqa: E402

AT_ONCE = 3
CASE_S = 120


def run_one(program, case):
    """In a process of its own: 0 if all was well."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="latchd-failover-") as folder:
        with Stage(program, pathlib.Path(folder)) as stage:
            try:
                case(stage)
            except Exception as why:  # pylint: disable=broad-except
                stage.explain()
                if isinstance(why, Failed):
                    sys.exit(str(why))
                raise


class Runs:
    """Processes of the cases, a few at a time, in order."""

    def __init__(self, command, names):
        self.command, self.waiting, self.running = command, list(names), {}
        self.more()

    def more(self):
        while self.waiting and len(self.running) < AT_ONCE:
            name = self.waiting.pop(0)
            self.running[name] = subprocess.Popen(  # pylint: disable=consider-using-with
                [*self.command, "--one", name], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                preexec_fn=die_with_parent)

    def finish(self, name):
        """As a case of tap()."""
        run = self.running[name]
        said, _ = run.communicate(timeout=CASE_S)
        del self.running[name]
        self.more()
        for line in said.splitlines():
            print("# " + line.removeprefix("# "))
        if run.returncode != 0:
            raise AssertionError(f"{name} failed")


def main():
    program, topology, *names = sys.argv[1:]
    module = importlib.import_module(f"cases_{topology}")
    if names[:1] == ["--one"]:
        run_one(program, getattr(module, names[1]))
        return
    if shutil.which("redis-server") is None:
        print("1..0 # SKIP no redis-server")
        return
    names = names or [case.__name__ for case in module.CASES]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    runs = Runs([sys.executable, __file__, program, topology], names)
    sys.exit(1 if tap([(name, lambda name=name: runs.finish(name)) for name in names])
             else 0)


main()
