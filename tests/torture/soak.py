#!/usr/bin/env python3
"""Soak: torture of every topology for hours, and what that leaves in one latchd.

    soak.py LATCHD --hours 2 [--report soak.html] [--topologies single,sentinel]

First a storm: 100,000 holds and 48,000 waiters. Then the topologies in turn, each for its part
of the hours, with all of their faults. One daemon of each turn is never killed: its memory, its
descriptors, its INFO, and the time of a lock and its release are sampled. In the end, how much
memory is left of the storm. The report is one file, with plots. Exit code 1: there were
violations, or memory or descriptors grew.

What grew: the least of the last third of a turn beside that of the middle third. A torture
gives everything back after each round, so the least is what stays.
"""
import argparse
import collections
import contextlib
import dataclasses
import html
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # nothing is written beside the sources
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
from children import until  # noqa: E402
from places import PLACES  # noqa: E402
from resp import Error, Wire, encode  # noqa: E402
from servers import Redis  # noqa: E402
from stage import Stage  # noqa: E402

WATCHED = "a"  # the daemon that lives as long as its turn
SAMPLE_S, PROBE_S, PATIENCE_S = 2.0, 0.02, 30
FIELDS = ("connected_clients", "locks", "holds", "waiters", "mem_clients_normal")
# More than so much, and than this part of it, is growth: answers are kept for minutes, and how
# many there are depends on the machine's speed.
GROWN, GROWN_PART = {"rss_kib": 2048, "fds": 4}, 0.15
JUDGED_S = 900  # a turn: in less time, what is kept for a while still becomes more
ALMOST = 0.9
STORM_HOLDS, WAITERS_PART, STORM_PART, KEEP_MS = 100_000, 0.48, 500, 3_600_000
STORM_LEFT_KIB = 8 * 1024  # what may stay of it: less is not given back, process.h
STORM_WAIT_S = 400  # answers are kept for 300
LOG_LEAST = 0.1  # of an axis
PROCESS = "/proc"


def rss_kib(pid):
    return next(int(line.split()[1]) for line in
                pathlib.Path(PROCESS, str(pid), "status").read_text().splitlines()
                if line.startswith("VmRSS"))


def fds(pid):
    return len(list(pathlib.Path(PROCESS, str(pid), "fd").iterdir()))


# A process of its own, as the torture's clients keep Python busy.

class Watch:
    """Of one daemon: locks and unlocks a name of its own, and samples."""

    def __init__(self, pid, socket):
        self.pid, self.socket, self.wire = pid, socket, None
        self.took_ms, self.refused = [], 0

    def probe(self):
        """A lock and its release; an error is no figure, but counted."""
        try:
            self.wire = self.wire or Wire(self.socket, PATIENCE_S)
            began = time.monotonic()
            if self.wire.ask("LOCK", "soak", "WAIT", 0) is not None:
                self.wire.ask("UNLOCK", "soak")
            self.took_ms.append((time.monotonic() - began) * 1000)
        except Error:
            self.refused += 1
        except OSError:
            self.refused += 1
            self.wire = None

    def sample(self):
        with Wire(self.socket, PATIENCE_S) as wire:
            said = {field: int(wire.info(field)) for field in FIELDS}
        took = sorted(self.took_ms) or [0]  # all were refused
        said.update(at=time.time(), rss_kib=rss_kib(self.pid), fds=fds(self.pid),
                    probes=len(self.took_ms), refused=self.refused, p50_ms=took[len(took) // 2],
                    worst_ms=took[-1])
        self.took_ms, self.refused = [], 0
        return said

    def run(self):
        """Until the daemon has ended, or who reads is gone."""
        while True:
            end = time.monotonic() + SAMPLE_S
            while time.monotonic() < end:
                self.probe()
                time.sleep(PROBE_S)
            try:
                print(json.dumps(self.sample()), flush=True)
            except (OSError, Error, StopIteration):
                if not pathlib.Path(self.socket).exists() or not is_there(self.pid):
                    return


def is_there(pid):
    try:
        rss_kib(pid)
        return True
    except (OSError, StopIteration):
        return False


# Turns.

@dataclasses.dataclass
class Turn:
    """Of one topology: its samples, its figures, and what was wrong."""

    name: str
    samples: list = dataclasses.field(default_factory=list)
    figures: dict = dataclasses.field(default_factory=dict)
    wrong: list = dataclasses.field(default_factory=list)

    def least(self, field):
        """In the middle and in the last third."""
        part = len(self.samples) // 3
        return [min(s[field] for s in samples)
                for samples in (self.samples[part:2 * part], self.samples[2 * part:])]

    def is_judged(self):
        return (bool(self.samples)
                and self.samples[-1]["at"] - self.samples[0]["at"] >= JUDGED_S * ALMOST)

    def judge(self):
        if not self.is_judged():
            print(f"# {self.name}: too short to tell growth")
            return
        for field, more in GROWN.items():
            before, after = self.least(field)
            if after > before + more + before * GROWN_PART:
                self.wrong.append(f"{field} grew from {before} to {after}")


class Soaked:
    """A torture.py with one topology, and a Watch of its daemon."""

    def __init__(self, options, topology, minutes):
        self.options, self.topology, self.minutes = options, topology, minutes
        self.turn = Turn(topology)

    def run(self):
        with tempfile.TemporaryDirectory(prefix="latchd-soak-") as name:
            folder = pathlib.Path(name)
            results = folder / "results.json"
            with subprocess.Popen(
                    [sys.executable, HERE / "torture.py", self.options.latchd, "--topology",
                     self.topology, "--minutes", str(self.minutes), "--seed",
                     str(self.options.seed), "--results", results, "--spare", WATCHED,
                     "--histories", self.options.histories],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as torture:
                self.follow(torture)
            if results.exists():
                self.turn.figures = json.loads(results.read_text())[self.topology]
        if torture.returncode != 0:
            bad = self.turn.figures.get("violations") or f"it ended with {torture.returncode}"
            self.turn.wrong.append(f"torture: {bad}")
        self.turn.judge()
        return self.turn

    def follow(self, torture):
        """Says what it says; when its daemon is up, that is watched."""
        watch = reader = None
        for line in torture.stdout:
            print(line, end="", flush=True)
            if line.startswith("# spared: ") and watch is None:
                _, _, pid, socket = line.split()
                watch = subprocess.Popen(  # pylint: disable=consider-using-with
                    [sys.executable, __file__, "--watch", pid, socket],
                    stdout=subprocess.PIPE, text=True)
                reader = threading.Thread(target=self.read, args=(watch,))
                reader.start()
        if watch is not None:
            watch.kill()
            watch.wait()
            reader.join()
            watch.stdout.close()

    def read(self, watch):
        for line in watch.stdout:
            self.turn.samples.append(json.loads(line))


# The storm.

def pipeline(wire, asks):
    """Sends them in parts, and awaits the answers."""
    for first in range(0, len(asks), STORM_PART):
        part = asks[first:first + STORM_PART]
        wire.socket.sendall(b"".join(encode(*words) for words in part))
        for _ in part:
            wire.reply()


class Storm:
    """Very many holds and waiters, which are over before the first turn; what is left of them
    is seen after the last one, as answers are kept for minutes. Resident are `kib`: before, at
    the height, and in the end. The waiters keep their places without a connection."""

    def __init__(self, options, stage):
        redis = stage.keep(Redis(stage.folder)).ready()
        daemon = stage.latchd(WATCHED, redis.url, "--max-keep", "1h",
                              watchdog_ms=600_000, timeout_ms=30_000).ready()
        self.pid = daemon.child.pid
        self.kib = [rss_kib(self.pid)]
        names = [f"storm-{i}" for i in range(options.storm)]
        places = [(name, "ID", f"{name:->32}") for name in names[:int(len(names) * WAITERS_PART)]]
        with daemon.wire() as wire:
            pipeline(wire, [("LOCK", name) for name in names])
            pipeline(wire, [("LOCK", *place, "WAIT", 0, "KEEP", KEEP_MS) for place in places])
            self.kib.append(rss_kib(self.pid))
            pipeline(wire, [("CANCEL", *place) for place in places])
            pipeline(wire, [("UNLOCK", name) for name in names])
        self.over = time.monotonic()
        self.what = f"{len(names):,} holds and {len(places):,} waiters"

    def end(self):
        """Says what is wrong."""
        limit = self.kib[0] + STORM_LEFT_KIB
        with contextlib.suppress(TimeoutError):
            until(lambda: rss_kib(self.pid) < limit, "it is given back",
                  max(0.0, self.over + STORM_WAIT_S - time.monotonic()), 1)
        self.kib.append(rss_kib(self.pid))
        left = self.kib[2] - self.kib[0]
        return [f"storm: {left} KiB are left"] if self.kib[2] > limit else []

    def told(self):
        return ("A storm of {}: {:,} KiB resident before it, {:,} at its height, {:,} when it is "
                "over".format(self.what, *self.kib))


# The report.

def path_of(points, box, scale, log):
    """The line of a plot: points (x, y) from 0 to `scale`; with `log` from LOG_LEAST."""
    left, top, width, height = box
    most = math.log10(max(scale[1], 1) / LOG_LEAST) if log else scale[1] or 1
    out = []
    for x, y in points:
        y = math.log10(max(y, LOG_LEAST) / LOG_LEAST) if log else y
        out.append(f"{left + width * x / scale[0]:.1f},{top + height * (1 - y / most):.1f}")
    return " ".join(out)


def plot(title, turns, fields, log=False):
    """Lines of all turns, one after the other. fields: name -> (what of a sample, colour)."""
    left, top, width, height = box = 60, 34, 800, 150
    samples = [s for turn in turns for s in turn.samples]
    if not samples:
        return f"<p>{title}: no samples</p>"
    start = samples[0]["at"]
    scale = (max(samples[-1]["at"] - start, 1),
             max(s[field] for s in samples for field, _ in fields.values()))
    out = [f'<svg viewBox="0 0 {left + width + 10} {top + height + 30}" width="100%">',
           f'<text x="{left}" y="12" font-weight="bold">{html.escape(title)}</text>',
           f'<rect x="{left}" y="{top}" width="{width}" height="{height}" class="box"/>']
    for i, (name, (_, colour)) in enumerate(fields.items()):
        out.append(f'<text x="{left + 120 * i}" y="28" fill="{colour}">{html.escape(name)}</text>')
    for part in (0, 0.5, 1):
        value = (LOG_LEAST * (max(scale[1], 1) / LOG_LEAST) ** part) if log else scale[1] * part
        out.append(f'<text x="{left - 4}" y="{top + height * (1 - part) + 4}" '
                   f'text-anchor="end">{value:,.{0 if value >= 10 or not log else 2}f}</text>')
    for turn in (t for t in turns if t.samples):
        x = left + width * (turn.samples[0]["at"] - start) / scale[0]
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + height}" class="box"/>'
                   f'<text x="{x + 2:.1f}" y="{top + height + 14}">{turn.name}</text>')
        for field, colour in fields.values():
            points = [(s["at"] - start, s[field]) for s in turn.samples
                      if s["probes"] or not log]
            out.append(f'<polyline points="{path_of(points, box, scale, log)}" fill="none" '
                       f'stroke="{colour}"/>')
    out.append(f'<text x="{left + width}" y="{top + height + 28}" text-anchor="end">'
               f'{scale[0] / 3600:.2f} hours</text></svg>')
    return "\n".join(out)


def row(*cells, kind="td"):
    return "<tr>" + "".join(f"<{kind}>{html.escape(str(c))}</{kind}>" for c in cells) + "</tr>"


def turn_row(turn):
    checked, samples = turn.figures.get("checked", {}), turn.samples
    spans = [f"{min(s[f] for s in samples)} to {max(s[f] for s in samples)}" if samples else "-"
             for f in GROWN]
    least = ["{} / {}".format(*turn.least(f)) if turn.is_judged() else "-" for f in GROWN]
    p50 = sorted(s["p50_ms"] for s in samples)
    return row(turn.name, f"{turn.figures.get('seconds', 0) / 60:.1f}", checked.get("requests", 0),
               sum(turn.figures.get("faults", {}).values()),
               sum(turn.figures.get("violations", {}).values()), spans[0], least[0], spans[1],
               least[1], f"{p50[len(p50) // 2]:.2f}" if p50 else "-",
               "; ".join(turn.wrong) or "good")


def report(options, turns, storm):
    """The whole page."""
    said = subprocess.run([options.latchd, "--version"], check=False, text=True,
                          stdout=subprocess.PIPE).stdout.strip()
    faults = collections.Counter()
    for turn in turns:
        faults.update(turn.figures.get("faults", {}))
    lines = [
        "<!DOCTYPE html><meta charset='utf-8'><title>latchd: soak</title><style>"
        "body{font:14px sans-serif;max-width:60em;margin:1em auto}text{font-size:11px}"
        "td,th{padding:2px 6px;border:1px solid #ccc;text-align:left}.box{fill:none;stroke:#bbb}"
        "polyline{stroke-width:1}</style>",
        f"<h1>latchd: soak</h1><p>{html.escape(said)}, seed {options.seed}, "
        f"{options.hours:g} hours, {time.strftime('%F %H:%M')}</p>",
        "<table>", row("topology", "minutes", "requests", "faults", "violations", "RSS, KiB",
                       "least of the middle / last third", "descriptors", "least", "median, ms",
                       "result", kind="th"), *map(turn_row, turns), "</table>"]
    if storm is not None and len(storm.kib) > 2:
        lines.append(f"<p>{storm.told()}.</p>")
    lines += [
        plot("Resident memory, KiB", turns, {"RSS": ("rss_kib", "#2a6fb0")}),
        plot("Descriptors and connections", turns, {"descriptors": ("fds", "#b0413e"),
                                                    "clients": ("connected_clients", "#3f8f5a")}),
        plot("Holds, waiters, names known", turns, {
            "holds": ("holds", "#2a6fb0"), "waiters": ("waiters", "#c07a2c"),
            "names": ("locks", "#6b6b6b")}),
        plot("A lock and its release, ms", turns, {
            "median": ("p50_ms", "#2a6fb0"), "worst": ("worst_ms", "#b0413e")}, log=True),
        "<p>Faults: " + ", ".join(f"{n} {kind}" for kind, n in sorted(faults.items())) + "</p>"]
    options.report.write_text("\n".join(lines) + "\n", encoding="utf-8")


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("latchd", nargs="?", help="the daemon's program")
    parser.add_argument("--hours", type=float, default=2, help="for all topologies together")
    parser.add_argument("--topologies", default=",".join(PLACES), help="with commas")
    parser.add_argument("--storm", type=int, default=STORM_HOLDS, metavar="HOLDS",
                        help="0: none")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--report", type=pathlib.Path, default=pathlib.Path("soak.html"))
    parser.add_argument("--histories", type=pathlib.Path, metavar="FOLDER",
                        default=pathlib.Path(tempfile.gettempdir()) / "latchd-histories")
    parser.add_argument("--watch", nargs=2, metavar=("PID", "SOCKET"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.watch and not options.latchd:
        parser.error("LATCHD is needed")
    options.seed = options.seed or int(time.time())
    return options


def soak(options, storm):
    """Says what is wrong."""
    wrong, turns = [], []
    topologies = options.topologies.split(",")
    for topology in topologies:
        turns.append(Soaked(options, topology, options.hours * 60 / len(topologies)).run())
        wrong += [f"{topology}: {what}" for what in turns[-1].wrong]
        report(options, turns, storm)
    if storm is not None:
        wrong += storm.end()
        print(f"# {storm.told()}")
        report(options, turns, storm)
    print("\n".join(wrong))
    print(f"{len(turns)} topologies, {sum(len(t.samples) for t in turns)} samples, "
          f"{len(wrong)} findings; {options.report}")
    return wrong


def main():
    options = arguments()
    if options.watch:
        Watch(int(options.watch[0]), options.watch[1]).run()
        return
    with tempfile.TemporaryDirectory(prefix="latchd-soak-") as folder:
        with Stage(options.latchd, pathlib.Path(folder)) as stage:
            wrong = soak(options, Storm(options, stage) if options.storm else None)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
