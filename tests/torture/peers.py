#!/usr/bin/env python3
"""Other lock services and libraries under torture's faults, and judged as latchd is.

    peers.py BUILD_DIR                          (all cells of the table, one after the other)
    peers.py BUILD_DIR --peer 'latchd;etcd' --fault partition --seconds 60 --seed 7

An agent is a process with the library in it, which takes locks as it is told
(tests/clients/locks/README.md; `acquired` may have a token behind it, and `KEY lost` is said when
the library tells its program of a loss). Three of them serve three clients each, on two names, with
leases or sessions of 3 s. One kind of fault at a time is done to them by torture's nemesis. What an
agent stands still with, its clients do as well, and no hold is believed in meanwhile.

A cell: double grants / tokens that went back / waiters without an answer 10 s after their wait was
over, and no fault on / the longest time in s in which a name that somebody wanted was held by
nobody. BUILD_DIR has latchd, and gets what the registries have.
Nothing is asserted of a cell; exit code 1: one could not be had, or broke.
"""
import argparse
import collections
import dataclasses
import json
import os
import pathlib
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import types

sys.dont_write_bytecode = True  # nothing is written beside the sources
HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "support"), str(HERE.parent / "clients")]

# pylint: disable=wrong-import-position
import kits  # noqa: E402
import locks_list  # noqa: E402
from children import Child, until  # noqa: E402
from ensembles import START_S, EtcdCluster, Keepers  # noqa: E402
from history import MS, Ask, Closed, Told, overlaps, tolerated  # noqa: E402
from nemesis import Nemesis  # noqa: E402
from places import LOOK_S, Acked, Quorum, Replicated, Single  # noqa: E402
from record import Record, Settings  # noqa: E402
from resp import Error  # noqa: E402
from sentinels import NAME as MASTER  # noqa: E402
from stage import Stage  # noqa: E402

AGENTS, CLIENTS, NAMES = ("x", "y", "z"), 3, ("hot-0", "hot-1")
LEASE_MS, WAIT_MS = 3000, 5000
# Some work outlasts a lease, and so do most faults. Who has a fixed lease works for a part of it.
WORK_S, LONG_WORK_S, LONG_PART, LEASED_WORK_S = (0.005, 0.06), (2, 7), 0.25, 1
SHORT_FAULT_S, LONG_FAULT_S, LONG_FAULT_PART = (0.3, 1.5), (3.5, 5.5), 0.7
HUNG_MS, SETTLE_S, AGAIN_S, TOLD = 10_000, 3, 0.1, 5
AGENT_FOLDER = HERE / "agents"
ETCD_CLIENT = "go.etcd.io/etcd/client/v3@v3.6.4"


def peers_go(folder):
    """The agent of the lock libraries, with etcd's."""
    kits.tool("go")
    kits.copy(folder, "go", locks_list.LOCKS)
    shutil.copy(AGENT_FOLDER / "go/etcd.go", folder)
    how = {"GOTOOLCHAIN": "local"}
    kits.get(["go", "get", ETCD_CLIENT], folder, "etcd's client", **how)
    kits.get(["go", "mod", "tidy"], folder, "what it needs", **how)
    kits.compile_(["go", "build", "-o", folder / "agent", "."], folder, **how)


kits.KITS.update({"peers-go": peers_go,
                  "peers-java": lambda folder: kits.java(folder, AGENT_FOLDER)})
kits.SOURCES.update({"peers-go": [locks_list.LOCKS / "go", AGENT_FOLDER / "go"],
                     "peers-java": [AGENT_FOLDER / "java"]})


class Agent(Child):
    """A process with a library, which may be killed and stand still."""

    def __init__(self, label, folder, command, **how):
        self.label, self.up = label, threading.Event()
        self.answers, self.workers, self.stops = {}, [], []
        super().__init__(command, folder / f"agent-{label}.log", stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True, bufsize=1, **how)

    def launch(self):
        super().launch()
        threading.Thread(target=self.read, args=(self.child,), daemon=True).start()

    def read(self, child):
        for line in child.stdout:
            key, what, *more = line.split(maxsplit=2)
            if what == "lost":
                for worker in self.workers:
                    worker.told(key)
            elif key in self.answers:
                self.answers[key].put((what, *more))
        self.up.clear()
        for worker in self.workers:
            worker.closed()
        for answer in list(self.answers.values()):
            answer.put(None)

    def ask(self, key, *words):
        """The words of the answer; None: it ended first."""
        self.answers[key] = answer = queue.SimpleQueue()
        try:
            self.up.wait()
            self.child.stdin.write(" ".join(map(str, (words[0], key, *words[1:]))) + "\n")
            return answer.get()
        except (OSError, ValueError):
            return None
        finally:
            self.answers.pop(key, None)

    def ready(self):
        """The network knows it: it may connect."""
        self.up.set()
        return self

    def pause(self):
        self.stops.append([time.monotonic_ns(), None])
        super().pause()

    def resume(self):
        self.stops[-1][1] = time.monotonic_ns()
        super().resume()

    def stop(self):
        self.kill()
        self.output.close()


class Worker(threading.Thread):
    """A client: it takes a name, works, and gives it back."""

    def __init__(self, cell, agent, number):
        super().__init__(daemon=True)
        self.cell, self.agent, self.who = cell, agent, f"{agent.label}{number}"
        self.dice = random.Random(f"{cell.seed} {self.who}")
        self.key, self.name, self.asking, self.early = "", "", None, None
        self.holding = self.gone = False  # it has the name; its process, and what that had, ended
        agent.workers.append(self)

    def told(self, key):
        self.early = key  # if it is the present one's, it may be lost before it is answered
        if self.holding and key == self.key:
            self.holding = False
            self.cell.book.told.append(
                Told(self.who, self.agent.label, self.name, time.monotonic_ns()))

    def closed(self):
        self.holding, self.gone = False, True
        self.cell.book.closed.append(Closed(self.who, self.agent.label, time.monotonic_ns()))

    def ask(self, verb, word, *words, **more):
        book, label = self.cell.book, self.agent.label
        ask = self.asking = Ask(self.who, label, verb, self.name, time.monotonic_ns(), **more)
        book.asks.append(ask)
        answer = self.agent.ask(self.key, word, *words)
        now = time.monotonic_ns()
        if answer is None:
            ask.closed = now
        else:
            ask.answered, ask.value = now, self.cell.value(*answer)
            self.holding = verb == "LOCK" and isinstance(ask.value, int)
            if self.holding and self.early == self.key:
                self.holding, ask.value = False, Error("ERR lost before it was answered")
        self.asking = None
        return ask.value

    def run(self):
        for turn in range(1_000_000):
            self.agent.up.wait()
            if self.cell.over:
                return
            self.gone = False
            self.key, self.name = f"{self.who}-{turn}", self.dice.choice(NAMES)
            value = self.ask("LOCK", "acquire", self.name, LEASE_MS, WAIT_MS, wait_ms=WAIT_MS,
                             lease_ms=None if self.cell.peer.renews else LEASE_MS)
            if isinstance(value, int):
                self.work()
                if not self.gone:
                    self.ask("UNLOCK", "release")
            elif value is not None:
                if self.early == self.key:
                    self.agent.ask(self.key, "release")
                time.sleep(AGAIN_S)

    def work(self):
        """Its time stands still while its process does."""
        left = self.dice.uniform(*(
            LONG_WORK_S if self.dice.random() < LONG_PART else WORK_S))
        if not self.cell.peer.renews:
            left = min(left, LEASED_WORK_S)
        while self.holding and (left > 0 or self.agent.paused):
            step = min(max(left, 0), 0.01) or 0.01
            time.sleep(step)
            left -= 0 if self.agent.paused else step


class Peril(Nemesis):
    """Torture's, with what its faults are here."""

    def last(self):
        time.sleep(self.dice.uniform(*(
            LONG_FAULT_S if self.dice.random() < LONG_FAULT_PART else SHORT_FAULT_S)))

    def possible(self, kind):
        return True

    def master(self):
        if hasattr(self.place, "chosen"):
            return self.place.chosen()
        return super().master()

    def unplug(self):
        """One machine, with all that it runs, reaches no server, or hears none."""
        who, way = self.dice.choice(list(self.stage.daemons)), self.dice.choice(("out", "both"))
        with self.fault("partition", who):
            for target in self.place.targets():
                self.place.network.between(who, target, "hold", way)
            self.last()
            for target in self.place.targets():
                self.place.network.between("*", target, "pass")


# Fault -> kinds of the nemesis; those of clients are done to agents.
CLIENT_FAULTS = {"client killed": ["kill_latchd"], "client stopped": ["stop_latchd"]}
SERVER_FAULTS = {"server killed": ["kill_redis"], "server stopped": ["stop_redis"],
                 "partition": ["unplug"], "clock": ["clock", "clock_back"],
                 "failover": ["kill_master", "stop_master", "lag"]}
FAULTS = [*CLIENT_FAULTS, *SERVER_FAULTS]
OF_LATCHD = {"server killed": ["kill_latchd"], "server stopped": ["stop_latchd"]}


@dataclasses.dataclass
class Peer:
    """`command`: (place, kits' folder, latchds) -> words of an agent. failover: the place for it,
    if it is another. renews: without a fixed lease."""

    command: object
    place: type
    failover: type | None = None
    renews: bool = True
    tokens: bool = True
    faults: list = dataclasses.field(default_factory=lambda: FAULTS)

    def at(self, fault):
        return self.failover if fault == "failover" and self.failover else self.place


def addresses(place):
    """HOST PORT[,PORT...] [MASTER] of a place."""
    if hasattr(place, "sentinels"):
        there = place.sentinels
        return ["127.0.0.1", ",".join(str(there.public(s.port)) for s in there.sentinels), MASTER]
    return ["127.0.0.1", ",".join(map(str, place.network.ports.values()))]


def with_go(library):
    return lambda place, folder, _: [kits.make("peers-go", folder) / "agent", library,
                                     *addresses(place)]


def with_java(library):
    def command(place, folder, _):
        kit = kits.make("peers-java", folder)
        return ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
                f"{kit}:{classpath(folder)}", "Agent", library, LEASE_MS, *addresses(place)]
    return command


def classpath(folder):
    return (kits.make("peers-java", folder) / "classpath").read_text().strip()


def with_redis_py(place, _, __):
    return [sys.executable, AGENT_FOLDER / "agent.py", "redis-py", *addresses(place)]


def with_latchd(_, __, daemons):
    return [sys.executable, AGENT_FOLDER / "agent.py", "latchd",
            *(f"unix://{d.socket}" for d in daemons)]


PEERS = {
    "latchd": Peer(with_latchd, Single, Replicated),
    "latchd, min-replicas": Peer(with_latchd, Acked, faults=["failover"]),
    "Redisson RLock": Peer(with_java("plain"), Single, Replicated, tokens=False),
    "Redisson fair": Peer(with_java("fair"), Single, Replicated, tokens=False),
    "Redisson RFencedLock": Peer(with_java("fenced"), Single, Replicated),
    "redis-py Lock": Peer(with_redis_py, Single, Replicated, renews=False, tokens=False),
    "redsync": Peer(with_go("redsync"), Quorum, renews=False, tokens=False,
                    faults=[f for f in FAULTS if f != "failover"]),
    "etcd": Peer(with_go("etcd"), EtcdCluster, faults=[f for f in FAULTS if f != "clock"]),
    "Curator": Peer(with_java("curator"), Keepers),
}


class Cell:
    """A peer and a fault."""

    def __init__(self, options, peer, fault, folder):
        self.options, self.peer, self.fault = options, PEERS[peer], fault
        self.seed, self.over, self.serial = f"{options.seed} {peer} {fault}", False, 0
        self.serial_lock = threading.Lock()
        self.book = Record(Settings(peer, options.seed, LEASE_MS, 0, 0))
        self.stage = Stage(str(options.build / "src/latchd"), folder)

    def value(self, what, more=""):
        """As a LOCK or UNLOCK of latchd is answered. A grant without a token gets a number."""
        if what == "acquired":
            with self.serial_lock:
                self.serial += 1
                return int(more) if self.peer.tokens else self.serial
        return {"released": 1, "refused": None}[what] if what != "error" else Error(f"ERR {more}")

    def run(self):
        with self.stage:
            self.stage.book = self.book
            kind = self.peer.at(self.fault)
            if kind is Keepers:
                kind.classpath = classpath(self.options.kits)
            place = kind(self.stage, self.options.machine)
            daemons = {}
            if self.peer.command is with_latchd:
                for name in AGENTS:
                    self.stage.latchd(name, place.url, *place.options, watchdog_ms=LEASE_MS).ready()
                daemons = dict(self.stage.daemons)
                place.network.introduce(list(daemons.values()))
            agents = {name: self.agent(place, name, daemons) for name in AGENTS}
            workers = [Worker(self, agent, i) for agent in agents.values() for i in range(CLIENTS)]
            for worker in workers:
                worker.start()
            for agent in agents.values():
                agent.ready()
            until(lambda: len(self.book.grants()) >= len(workers), "clients are served",
                  START_S, LOOK_S)
            began = time.monotonic_ns()
            self.nemesis(place, agents, daemons).until(time.monotonic() + self.options.seconds)
            time.sleep(SETTLE_S)
            self.over, over = True, time.monotonic_ns()
            for worker in workers:
                worker.join(max(0, over / 1e9 + (WAIT_MS + HUNG_MS) / 1000 - time.monotonic()))
            self.book.ended = time.monotonic_ns()
            hung = sum(w.asking is not None and w.asking.verb == "LOCK" for w in workers)
        return self.judge(began, over, agents, hung)

    def agent(self, place, name, daemons):
        """latchd's uses the one of its machine, or else another one."""
        order = sorted(daemons, key=lambda label: label != name)
        redis = kits.make("redis-py", self.options.kits)
        agent = self.stage.keep(Agent(
            name, self.stage.folder,
            self.peer.command(place, self.options.kits, [daemons[label] for label in order]),
            env={**os.environ, "PYTHONPATH": str(redis)}))
        if not daemons:
            place.network.order("name", agent.child.pid, name)
        return agent

    def nemesis(self, place, agents, daemons):
        kinds = {**CLIENT_FAULTS, **SERVER_FAULTS}[self.fault]
        targets = agents
        if daemons and self.fault in SERVER_FAULTS:
            kinds, targets = kinds + OF_LATCHD.get(self.fault, []), daemons
        nemesis = Peril(types.SimpleNamespace(book=self.book, say=self.stage.say, daemons=targets),
                        place, self.seed)
        nemesis.kinds = [k for k in kinds if k != "lag" or isinstance(place, Replicated)]
        return nemesis

    def judge(self, began, over, agents, hung):
        holds = self.book.holds()
        for hold in holds:
            hold.spans = awake(hold.spans, agents[hold.daemon].stops)
        double = overlaps(holds)
        back = backwards(holds) if self.peer.tokens else []
        for overlap in double[:TOLD]:
            self.stage.say(f"double grant: {overlap}")
        for old, new in back[:TOLD]:
            self.stage.say(f"token: {new.name}: {new} came after {old}")
        limit = (WAIT_MS + HUNG_MS) * MS
        late = sum(a.verb == "LOCK" and a.answered is not None
                   and a.answered > max(a.sent, began) + limit for a in self.book.asks)
        return {
            "grants": len(holds), "faults": len(self.book.faults), "double": len(double),
            "back": len(back) if self.peer.tokens else None, "hung": hung, "late": late,
            "unserved_s": max(longest_gap(holds, name, began, over) for name in NAMES),
            "errors": dict(collections.Counter(str(a.value)[:60] for a in self.book.asks
                                               if isinstance(a.value, Error)).most_common(3))}


def awake(spans, stops):
    """Without the times in which the process stood still, nor those in which it was about to read
    that it has lost the name."""
    spans = [dataclasses.replace(s, end=s.end - tolerated(s), after="") for s in spans]
    for start, end in stops:
        spans = [part for s in spans for part in (
            dataclasses.replace(s, end=min(s.end, start)),
            dataclasses.replace(s, start=max(s.start, end)))]
    return [s for s in spans if s.start < s.end]


def backwards(holds):
    """(old, new) for each grant whose token is not above one that had been read before it was
    asked for. An answer that was under way while its lease ran out is late, but its token did
    not go back."""
    pairs = ((new, [old for old in holds if old.name == new.name and old.answered < new.asked
                    and old.token >= new.token]) for new in holds)
    return [(olds[0], new) for new, olds in pairs if olds]


def longest_gap(holds, name, start, end):
    """In s, in which nobody held it."""
    gap, free = 0, start
    for first, last in sorted((s.start, s.end) for h in holds if h.name == name for s in h.spans):
        gap, free = max(gap, min(first, end) - free), max(free, last)
    return round(max(gap, end - free) / 1e9, 1)


def show(found):
    back = "-" if found["back"] is None else found["back"]
    return f"{found['double']} / {back} / {found['hung']} / {found['unserved_s']}"


def table(results):
    print("\n| | " + " | ".join(FAULTS) + " |\n| --- |" + " --- |" * len(FAULTS))
    for peer, row in results.items():
        print(f"| {peer} | " + " | ".join(
            show(row[fault]) if fault in row else "" for fault in FAULTS) + " |")


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--peer", default=";".join(PEERS), help="with semicolons: %(default)s")
    parser.add_argument("--fault", default=";".join(FAULTS), help="with semicolons: %(default)s")
    parser.add_argument("--seconds", type=float, default=25, help="of faults, per cell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=pathlib.Path, help="figures, as JSON")
    parser.add_argument("--histories", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.kits = options.build / "tests/clients"  # where the clients' tests have theirs
    options.machine = options.build / "tests/support/machine.so"
    return options


def run(options, peer, fault):
    """What was found, and the history is kept; None: the cell could not be set up, or broke."""
    print(f"# --- {peer}, {fault}", flush=True)
    with tempfile.TemporaryDirectory(prefix="latchd-peers-") as folder:
        cell = Cell(options, peer, fault, pathlib.Path(folder))
        try:
            found = cell.run()
        except (kits.Missing, OSError, RuntimeError) as why:  # a TimeoutError is an OSError
            print(f"# no result: {type(why).__name__} {why}", flush=True)
            return None
    print(f"# {show(found)}, {found['grants']} grants, {found['faults']} faults, {found['late']} "
          f"late answers, errors: {found['errors']}", flush=True)
    if options.histories:
        options.histories.mkdir(parents=True, exist_ok=True)
        cell.book.save(options.histories / f"{peer}-{fault}.jsonl".replace(" ", "-"))
    return found


def main():
    options, results, missed = arguments(), {}, 0
    for peer in options.peer.split(";"):
        for fault in options.fault.split(";"):
            if fault not in PEERS[peer].faults:
                continue
            found = run(options, peer, fault)
            missed += found is None
            if found is not None:
                results.setdefault(peer, {})[fault] = found
        if options.results:
            options.results.write_text(json.dumps(results, indent=2) + "\n")
    table(results)
    sys.exit(1 if missed else 0)


main()
