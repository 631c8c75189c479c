"""What is done to the servers of a torture: one fault after the other, by dice that a seed
throws, each noted in the record. A fault ends before the next one begins, but not before
all has recovered from it."""
import contextlib
import random
import signal
import time

from checks import SWITCHES
from children import until
from places import TINY
from record import Fault
from resp import Error
from sentinels import REDIS_FROM
from servers import READY_S

SHORT_S, LONG_S = (0.05, 0.8), (1.0, 3.5)  # how long a fault lasts; some outlast a lease
LONG_PART = 0.25
# Between two faults, so that some hit a recovery; and now and then for so long that there
# is no excuse for anything.
PAUSE_S, CALM_S, CALM_PART = (0.1, 0.9), (3.5, 6.0), 0.25
DELAY_MS = (2, 60)
LAG_S = (0.2, 1.0)
CLOCK_S = (1, 20)  # how far a clock jumps
FAILOVER_ORDER_S = 20
LAST_WORDS = 300  # that are told of a server which ended


class Nemesis:
    """Of one place."""

    def __init__(self, stage, place, seed, kinds=None, spare=None):
        """spare: the label of a daemon that lives on."""
        self.stage, self.place, self.spare = stage, place, spare
        self.dice = random.Random(f"{seed} nemesis")
        self.kinds = [k for k in place.kinds if self.possible(k)]
        if kinds:
            self.kinds = [k for k in self.kinds if k in kinds]
        self.order, self.long_part = [], LONG_PART
        self.pools = {}  # the semaphores of the round, name -> limit

    def possible(self, kind):
        if not kind.startswith(("clock", "power")):
            return True
        return any(getattr(server, "machine", None) for server in self.place.servers())

    def until(self, end):
        """Faults until then, in s of time.monotonic()."""
        while time.monotonic() < end:
            if self.kinds:
                self.one()
            calm = self.dice.random() < CALM_PART
            time.sleep(self.dice.uniform(*(CALM_S if calm else PAUSE_S)))

    def each(self):
        """Every kind once, and none for long."""
        self.long_part = 0
        for _ in self.kinds:
            self.one()
            time.sleep(PAUSE_S[0])

    def one(self):
        """Each kind once, in some order, before any comes again."""
        if not self.order:
            self.order = self.dice.sample(self.kinds, len(self.kinds))
        getattr(self, self.order.pop())()

    @contextlib.contextmanager
    def fault(self, kind, target):
        """Noted from here on, until it is undone and the servers are whole."""
        fault, leading = Fault(kind, target, time.monotonic_ns()), self.place.leading()
        self.stage.book.faults.append(fault)
        self.stage.say(f"{kind} {target}")
        try:
            yield
            self.revive()
            self.place.settled()
        finally:
            fault.end = time.monotonic_ns()
            if self.place.leading() is not leading and kind not in SWITCHES:
                self.note_failover(fault)

    def note_failover(self, fault):
        """Sentinels take a master for dead that is cut off, or too slow for them."""
        self.stage.say(f"failover {fault.target}")
        self.stage.book.faults.append(
            Fault("failover", fault.target, fault.start, fault.end))

    def revive(self):
        """A server that stays down is a fault like another; it comes back without a file
        that it refuses, as one may after a full disk."""
        for server in self.place.downs():
            start = time.monotonic_ns()
            self.stage.say(f"down {server.folder.name}: {server.said()[-LAST_WORDS:].strip()}")
            self.last()
            kind = "down"
            if server.revive():
                kind = "lost file" if len(self.place.servers()) == 1 else "lost file of one"
                self.stage.say(f"{kind} {server.folder.name}")
            self.stage.book.faults.append(
                Fault(kind, server.folder.name, start, time.monotonic_ns()))

    def last(self):
        """It lasts for a while."""
        time.sleep(self.dice.uniform(*(
            LONG_S if self.dice.random() < self.long_part else SHORT_S)))

    def daemon(self):
        return self.dice.choice(list(self.stage.daemons.values()))

    def mortal(self):
        return self.dice.choice([d for d in self.stage.daemons.values() if d.label != self.spare])

    def server(self):
        return self.dice.choice(self.place.servers())

    def back(self, daemon):
        """After launch()."""
        if self.place.network is not None:
            self.place.network.order("name", daemon.child.pid, daemon.label)
        daemon.ready()

    # Faults of latchd.

    def kill_latchd(self):
        daemon = self.mortal()
        with self.fault("kill latchd", daemon.label):
            daemon.kill()
            self.last()
            daemon.launch()
            self.back(daemon)

    def stop_latchd(self):
        daemon = self.daemon()
        with self.fault("stop latchd", daemon.label):
            daemon.pause()
            self.last()
            daemon.resume()

    def restart_latchd(self):
        daemon = self.mortal()
        with self.fault("restart latchd", daemon.label):
            daemon.child.send_signal(signal.SIGTERM)
            daemon.child.wait(READY_S)
            if daemon.child.returncode != 0:
                raise RuntimeError(f"{daemon.label} ended with {daemon.child.returncode}")
            daemon.launch()
            self.back(daemon)

    # Faults of what is between.

    def between(self, kind, how, way="both"):
        """Between one daemon, or all, and one server."""
        network = self.place.network
        target = self.dice.choice(self.place.targets())
        who = self.dice.choice([*self.stage.daemons, "*"])
        with self.fault(kind, f"{who}-{target}"):
            network.between(who, target, how, way)
            self.last()
            network.between("*", target, "pass")

    def partition(self):
        self.between("partition", "hold", self.dice.choice(("in", "out", "both")))

    def cut(self):
        self.between("cut", "cut")

    def delay(self):
        self.between("delay", self.dice.randint(*DELAY_MS))

    def half(self):
        self.between("half a frame", "half", self.dice.choice(("in", "out", "both")))

    def cut_off(self):
        daemon = self.dice.choice(list(self.stage.daemons))
        acked = bool(self.place.options)
        with self.fault("partition with the " + ("acknowledging " if acked else "")
                        + "master", daemon):
            self.place.side_of(daemon, "hold")
            self.place.switched()
            self.place.side_of(daemon, "pass")

    # Faults of Redis.

    def kill_redis(self):
        server = self.server()
        with self.fault("kill redis", server.folder.name):
            server.kill()
            self.last()
            server.restart()

    def power(self):
        """It syncs what it acknowledges, and of the rest the disk has a random part."""
        server = self.server()
        with self.fault("power cut", server.folder.name):
            server.ask("CONFIG", "SET", "appendfsync", "always")
            server.ask("SET", "synced", "", "PX", "1")  # with all that is not yet
            self.last()
            server.cut_power(self.dice.random())
            self.last()
            server.restart()

    def stop_redis(self):
        server = self.server()
        with self.fault("stop redis", server.folder.name):
            server.pause()
            self.last()
            server.resume()

    def disk_full(self):
        """It refuses writes, or ends, as it is told to."""
        server = self.server()
        with self.fault("disk full", server.folder.name):
            server.fill_disk()
            self.last()
            server.empty_disk()
            until(server.writes, "the append-only file is written again", READY_S)

    def flushall(self):
        with self.fault("flushall", "all"):
            self.place.flush()

    def evict(self):
        server = self.server()
        with self.fault("evict", server.folder.name):
            server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-random", "maxmemory",
                       TINY)
            self.last()
            server.ask("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction")
            self.mend_semaphores()

    def mend_semaphores(self):
        """As an operator does it: permits that were out may be gone, and the counter there."""
        for name, limit in self.pools.items():
            with self.daemon().wire() as wire:
                until(lambda w=wire, n=name, of=limit: not isinstance(
                    w.ask("SEMAPHORE", "LIMIT", n, of), Error), "the limit is set", READY_S)

    def clock(self):
        """It jumps ahead, and some time later back."""
        server = self.server()
        with self.fault("clock", server.folder.name):
            server.machine.change(ahead_s=self.dice.randint(*CLOCK_S))
            self.last()
            server.machine.change(ahead_s=0)

    def clock_back(self):
        """It is set back, which only makes leases longer, and forward again."""
        server = self.server()
        with self.fault("clock", server.folder.name):
            server.machine.change(ahead_s=-self.dice.randint(*CLOCK_S))
            self.last()
            server.machine.change(ahead_s=0)

    # Failovers.

    def kill_master(self):
        place = self.place
        master = self.master()
        with self.fault("kill master", master.folder.name):
            master.kill()
            place.switched()
            self.last()
            master.restart()

    def stop_master(self):
        master = self.master()
        with self.fault("stop master", master.folder.name):
            master.pause()
            self.place.switched()
            self.last()
            master.resume()

    def lag(self):
        """The replicas hear nothing any more, and then their master is killed."""
        place, master = self.place, self.master()
        with self.fault("lag", master.folder.name):
            place.network.between(REDIS_FROM, master.port, "hold")
            time.sleep(self.dice.uniform(*LAG_S))
            master.kill()
            place.switched()
            place.network.between("*", master.port, "pass")
            master.restart()

    def failover(self):
        """By order: nothing is lost."""
        place = self.place
        master = self.master()
        with self.fault("failover", master.folder.name):
            place.cluster.replica_of[master].ask("CLUSTER", "FAILOVER")
            place.switched()

    def part_master(self):
        """The other nodes do not hear it, nor it them; its clients may."""
        place, master = self.place, self.master()
        with self.fault("partition of a master", master.folder.name):
            place.apart(master, self.dice.random() < 0.5)
            place.switched()
            self.last()
            place.together()

    def master(self):
        """The one whose turn it is; Clustered notes it."""
        if hasattr(self.place, "cluster"):
            self.place.victim = self.dice.choice(self.place.cluster.masters)
            return self.place.victim
        return self.place.sentinels.master
