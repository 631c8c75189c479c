"""What a case has: a folder, servers, a crowd of clients, the book, and the verdict."""
import os
import time

import load
from history import MS, Book, Rules, verdict
from resp import Error
from servers import Latchd, Rack

REDIS_TIMEOUT_MS = 1000
WATCHDOG_MS = 3000
FAIR_WAIT_MS = 1000


class Failed(Exception):
    """The history is not as it has to be."""


class Stage(Rack):
    """As long as a case runs."""

    def __init__(self, program, folder):
        super().__init__(folder)
        self.program = program
        self.book = Book()
        self.crowd = None
        self.daemons = {}
        self.seed = int(os.environ.get("LATCHD_SEED", 0)) or int(time.time() * 1000)

    def latchd(self, name, redis, *options, watchdog_ms=WATCHDOG_MS,
               timeout_ms=REDIS_TIMEOUT_MS, **how):
        daemon = self.keep(Latchd(
            self.program, self.folder, name, redis, "--redis-timeout",
            f"{timeout_ms}ms", "--watchdog-timeout", f"{watchdog_ms}ms",
            "--fair-wait-timeout", f"{FAIR_WAIT_MS}ms", *options, **how))
        self.daemons[name] = daemon
        return daemon

    def clients(self):
        """A crowd for the daemons that there are; to be filled, and started."""
        sockets = {name: daemon.ready().socket for name, daemon in self.daemons.items()}
        self.crowd = load.Crowd(self.book, sockets, self.seed)
        return self.crowd

    def mark(self, what):
        """Notes that this happens now; says when."""
        self.book.marks[what] = now = time.monotonic_ns()
        self.say(f"{what} at {now // MS % 1_000_000} ms")
        return now

    @staticmethod
    def say(text):
        print(f"# {text}", flush=True)

    def explain(self):
        """After a failure: what there is to know."""
        for name, daemon in self.daemons.items():
            print(f"{name}:\n{daemon.said()}")
            for lock in self.book.names():
                try:
                    with daemon.wire() as wire:
                        print(name, wire.ask("LOCKINFO", lock))
                except (OSError, Error) as why:
                    print(name, lock, why)
        print(f"seed {self.seed}", flush=True)

    def check(self, **rules):
        """Ends the crowd, and fails unless all was well."""
        self.mark("end")
        self.crowd.finish()
        self.mark("finished")
        rules.setdefault("redis_timeout_ms", REDIS_TIMEOUT_MS)
        wrong, said = verdict(self.book, Rules(**rules))
        stall = max((late for _, late in self.book.stalls), default=0) / MS
        still = max((end - start for start, end in self.book.pauses), default=0) / MS
        for line in [*said, f"the load was {stall:.0f} ms late at worst, "
                     f"and the machine stood still for {still:.0f} ms"]:
            self.say(line)
        if wrong:
            raise Failed("\n".join([*wrong[:200], f"{len(wrong)} findings"]))


def crowded(stage, names=4, all_kinds=True):
    """The usual crowd: some of every kind, on few names."""
    crowd = stage.clients()
    plain = [f"plain-{i}" for i in range(names)]
    crowd.add(8, load.quick, plain)
    crowd.add(3, load.mover, plain)
    crowd.add(3, load.hasty, plain)
    crowd.add(2, load.lessee, ["leased-0", "leased-1"])
    crowd.add(2, load.quick, ["leased-0", "leased-1"])
    for i in range(3):
        crowd.add(1, load.keeper, f"kept-{i}")
        crowd.add(1, load.quick, [f"kept-{i}"])
    if all_kinds:
        crowd.add(3, load.quick, ["rw"], 8, 25, "read")
        crowd.add(2, load.quick, ["rw"], 8, 25, "write")
        crowd.add(3, load.quick, ["fair"], 8, 25, "fair")
    crowd.start()
    return crowd
