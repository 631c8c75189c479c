#!/usr/bin/env python3
"""Lock libraries for Redis, each in its own package, at latchd's port.

locks_run.py LATCHD BUILD_DIR [PART OF A NAME...]: prints TAP.
"""
import concurrent.futures
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
import kits  # noqa: E402
import locks_cases  # noqa: E402
from helpers_stage import Daemon  # noqa: E402
from locks_list import LIBRARIES, NOT_SERVED  # noqa: E402
from sentinels import Sentinels  # noqa: E402
from servers import Rack  # noqa: E402
from tap_report import Report  # noqa: E402

AT_ONCE = 4


def run_library(report, program, library, kit, parts):
    with tempfile.TemporaryDirectory(prefix="latchd-locks-") as folder, \
            locks_cases.Stage(program, folder, library, kit) as stage:
        for case in locks_cases.CASES:
            name = f"{library.title}: {case.__name__}".replace("_", " ")
            if all(part in name for part in parts):
                report.run(name, case, stage, case.__name__)


def try_library(report, program, build, library, parts):
    """The folder of its kit, if there is one."""
    try:
        kit = kits.make(library.kit, build)
    except kits.Missing as why:
        report.line(True, f"{library.title} # SKIP {why}")
        return None
    report.run(f"{library.title}: its programs start and end", run_library, report, program,
               library, kit, parts)
    return kit


def move_from_masters(report, program, library, kit):
    for turned in (False, True):
        with tempfile.TemporaryDirectory(prefix="latchd-locks-") as folder, \
                locks_cases.Masters(program, folder, library, kit, turned) as stage:
            for case in locks_cases.CASES_OF_MASTERS:
                who = "latchd and masters" if turned else "masters and latchd"
                name = f"{library.title}, {who}: {case.__name__}".replace("_", " ")
                report.run(name, case, stage, case.__name__)


def refuse_library(program, library, kit):
    with tempfile.TemporaryDirectory(prefix="latchd-locks-") as folder, \
            locks_cases.Stage(program, folder, library, kit, is_served=False) as stage:
        locks_cases.gets_an_error_at_once(stage)


def try_those_not_served(report, program, build):
    for library in NOT_SERVED:
        name = f"{library.title}: gets an error at once"
        try:
            kit = kits.make(library.kit, build)
        except kits.Missing as why:
            report.line(True, f"{name} # SKIP {why}")
            continue
        report.run(name, refuse_library, program, library, kit)


def fail_over(report, program, tried):
    """Each takes a lock, the master dies, and each still has it."""
    with tempfile.TemporaryDirectory(prefix="latchd-locks-") as folder, Rack(folder) as rack:
        rack.program = program
        sentinels = Sentinels(rack)
        daemon = rack.keep(Daemon(program, rack.folder, sentinels.url)).ready()
        held = []
        for library, kit in tried:
            agent = rack.keep(locks_cases.LockAgent(rack.folder, library.command(kit),
                                                    daemon.port)).ready()
            held.append((library, agent, f"failover-{len(held)}"))
        keys = [agent.acquire(name) for _, agent, name in held]
        sentinels.master.kill()
        sentinels.switched()
        locks_cases.until(daemon.grants, "latchd grants again")
        for (library, agent, name), key in zip(held, keys):
            report.run(f"{library.title}: keeps its lock through a failover".replace("_", " "),
                       locks_cases.still_has, daemon, library, agent, name, key)


def main():
    program, build, *parts = sys.argv[1:]
    build = pathlib.Path(build).resolve()
    report = Report()
    chosen = [c for c in LIBRARIES if not parts or parts[0] in c.title]
    # The children of a thread end with it, so each library has one that stays. What is built
    # for the last ones takes longest.
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
        made = {library: threads.submit(try_library, report, program, build, library, parts[1:])
                for library in reversed(chosen)}
    tried = [(library, made[library].result()) for library in chosen if made[library].result()]
    report.run("a failover with all of them", fail_over, report, program, tried)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
        for library, kit in tried:
            if library.masters and len(parts) < 2:
                threads.submit(report.run, f"{library.title}: moves from several masters",
                               move_from_masters, report, program, library, kit)
    if not parts:
        try_those_not_served(report, program, build)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
