#!/usr/bin/env python3
"""Torture: clients lock, work, write and release through latchds, while a nemesis kills,
stops, cuts off and deceives the servers; what they saw is recorded and checked.

    torture.py LATCHD --minutes 30 --topology sentinel --seed 7
    torture.py LATCHD --minutes 10                        (of every topology, in turn)
    torture.py LATCHD --topology single --faults half,kill_redis
    torture.py --check history.jsonl                      (a history, once more)
    torture.py LATCHD --short                             (TAP, for the suite `torture`)

A run is made of rounds on the same servers. After each all is given back, and looked at:
checks.py says for what. The seed throws the dice of clients and nemesis; what the machine
does in between is not repeated. Figures go to the file --results, and histories of rounds
with violations (all of them with --keep) to the folder --histories. Exit code 1: there were
violations.
"""
import argparse
import collections
import json
import pathlib
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # nothing is written beside the sources
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
import public  # noqa: E402
from checks import CALM, ORPHANS, Checker, Verdict  # noqa: E402
from leftovers import leftovers  # noqa: E402
from nemesis import Nemesis  # noqa: E402
from places import PLACES  # noqa: E402
from record import Record, Settings  # noqa: E402
from runs import Runs  # noqa: E402
from stage import REDIS_TIMEOUT_MS, Stage  # noqa: E402
from stand import need, tap  # noqa: E402
from workers import crowded  # noqa: E402

DAEMONS = "ab"
BUILT_MACHINE = "tests/support/machine.so"  # in a build directory
ROUND_S, FINISH_S = 30, 90
POOLS = {f"{CALM}pool": 1, "pool-two": 2, "pool-five": 5}  # semaphores, and their permits
TOLD = 20  # violations that are printed
SHORT_AT_ONCE, SHORT_LIMIT_S, SHORT_SEED = 5, 150, 1
SHORT_FAULTS = {
    "single": "kill_redis,half,stop_latchd,disk_full",
    "quorum": "kill_redis,kill_latchd,half",
    "sentinel": "kill_master,cut",
    "acked": "kill_master,delay",
    "cluster": "kill_master,restart_latchd",
}


class Torture:
    """Of one topology."""

    def __init__(self, options, topology, folder):
        self.options, self.topology = options, topology
        self.total = Verdict()
        self.rounds = 0
        self.clock_was_set = False
        self.stage = Stage(options.latchd, folder)

    def run(self, seconds):
        with self.stage:
            place = PLACES[self.topology](self.stage, self.options.machine)
            for name in DAEMONS:
                self.stage.latchd(name, place.url, *place.options,
                                  watchdog_ms=place.watchdog_ms).ready()
            if place.network is not None:
                place.network.introduce(list(self.stage.daemons.values()))
            faults = self.options.faults and self.options.faults.split(",")
            nemesis = Nemesis(self.stage, place, self.options.seed, faults, self.options.spare)
            if self.options.spare:
                spared = self.stage.daemons[self.options.spare]
                self.stage.say(f"spared: {spared.child.pid} {spared.socket}")
            end = time.monotonic() + seconds
            while time.monotonic() < end or self.rounds == 0:
                self.round(place, nemesis, min(end, time.monotonic() + ROUND_S))
        return self.total

    def round(self, place, nemesis, end):
        settings = Settings(self.topology, self.options.seed, place.watchdog_ms,
                            REDIS_TIMEOUT_MS, place.watchdog_ms, self.clock_was_set)
        self.stage.book = record = Record(settings)
        sockets = {name: d.ready().socket for name, d in self.stage.daemons.items()}
        self.rounds += 1
        hoards = [f"hoard-{self.rounds}-{i}" for i in range(2)] if place.hoards else []
        pools = None if place.plain_only else {
            f"{pool}-{self.rounds}": limit for pool, limit in POOLS.items()}
        nemesis.pools = pools or {}
        crowd = crowded(record, sockets, f"{self.options.seed} {self.rounds}",
                        pools=pools, busy=not self.options.short, hoards=hoards)
        crowd.start()
        try:
            crowd.granted(50)
            if self.options.short:
                nemesis.each()
            else:
                nemesis.until(end)
            crowd.all_granted(time.monotonic_ns())
            crowd.finish(FINISH_S)
            if not any(f.kind in ORPHANS for f in record.faults):
                crowd.names.update(hoards)
            record.left = leftovers(self.stage, place, crowd.names, pools or {})
        except Exception:
            record.ended = record.ended or time.monotonic_ns()
            self.stage.explain()
            self.keep(record)
            raise
        began = time.monotonic()
        verdict = Checker(record).run()
        still = max((end - start for start, end in record.pauses), default=0) / 1_000_000
        self.stage.say(f"round {self.rounds}: {len(record.asks)} requests, "
                       f"{len(record.faults)} faults, {len(verdict.violations)} violations, "
                       f"checked in {time.monotonic() - began:.1f} s; the machine stood still "
                       f"{len(record.pauses)} times, for {still:.0f} ms at worst")
        if verdict.violations or self.options.keep:
            self.keep(record)
        if self.options.public:
            public.save(record, self.options.public,
                        f"{self.topology}-{self.options.seed}-{self.rounds}",
                        [kind for kind, _ in verdict.violations])
        self.total.add(verdict)
        self.clock_was_set |= any(fault.kind == "clock" for fault in record.faults)

    def keep(self, record):
        self.options.histories.mkdir(parents=True, exist_ok=True)
        path = self.options.histories / (
            f"{self.topology}-{self.options.seed}-{self.rounds}.jsonl")
        record.save(path)
        self.stage.say(f"history: {path}")


def tell(verdict):
    """For people."""
    for kind, text in verdict.violations[:TOLD]:
        print(f"{kind}: {text}")
    for what, counter in (("", verdict.counts), ("allowed: ", verdict.allowed)):
        for name, count in sorted(counter.items()):
            print(f"# {what}{name}: {count}")
    print(f"# {len(verdict.violations)} violations", flush=True)


def figures(verdict, options, seconds):
    """For the file."""
    return {
        "seed": options.seed, "seconds": round(seconds, 1),
        "checked": {n: c for n, c in verdict.counts.items() if not n.startswith("fault: ")},
        "faults": {n.removeprefix("fault: "): c for n, c in verdict.counts.items()
                   if n.startswith("fault: ")},
        "allowed": dict(verdict.allowed),
        "violations": dict(collections.Counter(kind for kind, _ in verdict.violations)),
    }


def torment(options, topologies):
    """The long run."""
    results, bad = {}, 0
    for topology in topologies:
        print(f"# --- {topology}, seed {options.seed}", flush=True)
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="latchd-torture-") as folder:
            verdict = Torture(options, topology, pathlib.Path(folder)).run(options.seconds)
        tell(verdict)
        bad += len(verdict.violations)
        results[topology] = figures(verdict, options, time.monotonic() - began)
        if options.results:
            options.results.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n")
    return bad


def short():
    """As TAP: every topology for some seconds, in processes of their own."""
    need("redis-server")
    runs = Runs([sys.executable, __file__, *sys.argv[1:], "--topology"], SHORT_FAULTS,
                SHORT_AT_ONCE, SHORT_LIMIT_S)
    return tap(runs.cases())


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("latchd", nargs="?", help="the daemon's program")
    parser.add_argument("--topology", default="all", choices=[*PLACES, "all"])
    parser.add_argument("--minutes", type=float, default=1, help="per topology")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--faults", help="only these kinds, with commas: "
                        + ", ".join(sorted({k for p in PLACES.values() for k in p.kinds})))
    parser.add_argument("--spare", choices=DAEMONS, help="a daemon that is neither killed nor "
                        "started again: soak.py looks at its memory")
    parser.add_argument("--machine", metavar="LIBRARY", help="machine.c, built: to set "
                        "the clock of Redis and cut its power; as a rule found beside LATCHD")
    parser.add_argument("--results", type=pathlib.Path, help="figures, as JSON")
    parser.add_argument("--histories", type=pathlib.Path, metavar="FOLDER",
                        default=pathlib.Path(tempfile.gettempdir()) / "latchd-histories")
    parser.add_argument("--public", type=pathlib.Path, metavar="FOLDER",
                        help="histories of all rounds, as EDN (Jepsen) and JSON (porcupine)")
    parser.add_argument("--keep", action="store_true", help="histories of all rounds")
    parser.add_argument("--short", action="store_true", help="TAP, some faults each")
    parser.add_argument("--check", type=pathlib.Path, nargs="+", metavar="HISTORY")
    options = parser.parse_args()
    if not options.check and not options.latchd:
        parser.error("LATCHD or --check is needed")
    options.seconds = options.minutes * 60
    if options.machine is None and options.latchd:
        built = pathlib.Path(options.latchd).resolve().parent.parent / BUILT_MACHINE
        options.machine = built if built.exists() else None
    return options


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if options.check:
        bad = 0
        for path in options.check:
            verdict = Checker(Record.load(path)).run()
            tell(verdict)
            bad += len(verdict.violations)
        sys.exit(1 if bad else 0)
    if options.short:
        if options.topology == "all":
            sys.exit(1 if short() else 0)
        options.seconds = 0
        options.seed = options.seed or SHORT_SEED
        options.faults = SHORT_FAULTS[options.topology]
    options.seed = options.seed or int(time.time() * 1000)
    if options.machine is None:
        print("# no --machine: clocks and power are left alone")
    topologies = list(PLACES) if options.topology == "all" else [options.topology]
    sys.exit(1 if torment(options, topologies) else 0)


main()
