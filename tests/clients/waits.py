"""Waiting for long, by libraries whose time-outs and retries are as they come.

All stand in queues before one daemon, side by side. Each asks for a lock that is held for
long, with an ID of its own, and the queue is looked at all the time: everybody has one
place in it from arrival to grant, in the order of arrival. Each is granted once, the
tokens are in that order, and nothing is left behind.
"""
import subprocess
import threading
import time
import uuid

from wire import Wire

ARRIVE_S = 120
LOOK_S = 0.05
HELD_S = 12
LONG_S = 30
END_S = 90
ENDLESS = 60_000
PREFIX = "latchd:id:"


def owners(wire, name):
    """Who waits, and over which connection."""
    maps = [dict(zip(m[::2], m[1::2])) for m in wire.ask("WAITERS", name)]
    return [m["owner"] for m in maps], [m["client"] for m in maps]


class Waiter:
    """One client in a queue."""

    def __init__(self, client, command, patience):
        self.client, self.patience = client, patience
        self.request = f"{uuid.uuid4()}"
        self.command, self.said, self.child = command, "", None
        self.token, self.asked = None, 0
        self.began = self.waited_s = 0

    def start(self, address, name):
        host, port = address
        self.began = time.monotonic()
        self.child = subprocess.Popen(
            [str(w) for w in (*self.command, host, port, "-", "-", "-", "-", name, "wait",
                              self.request, self.patience)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True)

    def end(self, limit):
        try:
            self.said = self.child.communicate(timeout=max(limit, 1))[0]
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.said = "still waits: " + self.child.communicate()[0]
            return
        self.waited_s = time.monotonic() - self.began
        words = [line.split() for line in self.said.splitlines()]
        for line in words:
            if line[:1] == ["token"]:
                self.token, self.asked = int(line[1]), int(line[2])
        if self.child.returncode != 0 or ["left", "0"] not in words:
            self.token = None


class Queue:
    """Clients that want one name."""

    def __init__(self, address, name, waiters, held_s=HELD_S, cut=False):
        self.address, self.name, self.waiters = address, name, waiters
        self.held_s, self.cut = held_s, cut
        self.bad = {}       # request -> what went wrong
        self.general = []   # what went wrong with all of them
        self.order = []     # requests as they came
        self.thread = threading.Thread(target=self.work)

    def work(self):
        try:
            with Wire(self.address) as wire:
                self.run(wire)
        except Exception as error:  # pylint: disable=broad-except
            self.general.append(f"{type(error).__name__}: {error}")
        finally:
            for waiter in self.waiters:
                if waiter.child is not None and waiter.child.poll() is None:
                    waiter.child.kill()
                    waiter.child.communicate()

    def run(self, wire):
        first = wire.ask("LOCK", self.name, "LEASE", 600_000)
        self.arrive(wire)
        began = time.monotonic()
        while (passed := time.monotonic() - began) < self.held_s:
            if self.cut and passed > self.held_s / 2:
                self.cut = False
                self.cut_all(wire)
            self.look(wire)
            time.sleep(LOOK_S)
        if wire.ask("UNLOCK", self.name, "TOKEN", first) != 0:
            self.general.append("it was not held until the end")
        self.leave(wire)
        self.judge(first)

    def arrive(self, wire):
        """All come at once, in whatever order; that order counts from then on."""
        end = time.monotonic() + ARRIVE_S
        for waiter in self.waiters:
            waiter.start(self.address, self.name)
        while time.monotonic() < end and self.missing():
            self.look(wire)
            time.sleep(LOOK_S)
        for waiter in self.missing():
            waiter.child.kill()
            waiter.end(1)
            self.bad[waiter.request] = f"it did not come: {waiter.said}"

    def missing(self):
        return [w for w in self.waiters if w.request not in self.order]

    def look(self, wire):
        """The queue is what it was, and those who just came are behind it."""
        got = [owner[len(PREFIX):] for owner in owners(wire, self.name)[0]]
        if got[:len(self.order)] != self.order:
            self.general.append(f"queue: {got}, not {self.order}")
        self.order += [request for request in got if request not in self.order]

    def look_at_rest(self, wire):
        """Those who had their turn are gone, the others stand as they did."""
        got = [owner[len(PREFIX):] for owner in owners(wire, self.name)[0]]
        if got != self.order[len(self.order) - len(got):]:
            self.general.append(f"rest of the queue: {got}, of {self.order}")

    def cut_all(self, wire):
        """Closes everybody's connection."""
        for client in owners(wire, self.name)[1]:
            if client is not None:
                wire.ask("CLIENT", "KILL", "ID", client)

    def leave(self, wire):
        end = time.monotonic() + END_S
        here = self.here()
        while time.monotonic() < end and any(w.child.poll() is None for w in here):
            self.look_at_rest(wire)
            time.sleep(LOOK_S)
        for waiter in here:
            waiter.end(end - time.monotonic())

    def here(self):
        """Those who came, in their order."""
        return sorted((w for w in self.waiters if w.request in self.order),
                      key=lambda w: self.order.index(w.request))

    def judge(self, first):
        before = first
        for waiter in self.here():
            if waiter.token is None:
                self.bad[waiter.request] = waiter.said or "it said nothing"
            elif waiter.token <= before:
                self.bad[waiter.request] = "its token is out of order"
            before = waiter.token or before

    def problem(self, waiter):
        return self.bad.get(waiter.request)


def leftovers(stand, address, granted):
    """What there should not be at the end."""
    bad = []
    with Wire(address) as wire, Wire(stand.folder / "redis.sock") as redis:
        if int(wire.info("grants")) != granted:
            bad.append(f"{wire.info('grants')} grants for {granted} requests")
        if wire.ask("LOCKS") != ["0", []] and wire.ask("LOCKS")[1] != []:
            bad.append(f"held or waited for: {wire.ask('LOCKS')}")
        keys = [key for key in redis.ask("KEYS", "*") if not key.startswith("latchd:")]
        if keys:
            bad.append(f"left in Redis: {keys}")
    return bad
