"""Clients of a torture: they lock, work, fence and release, with every kind of lock.

Built on load.py, whose scripts `hasty` (no ID, bare deadlines), `mover` (RENEW through
another daemon) and `lessee` (fixed leases) take part as well. What a lock protects is a
Resource; a worker reads it when it is granted, and changes it when its work is done.
"""
import collections
import time
import uuid

import latch_workers
import leader_workers
import load
import local_workers
import permit_workers
import rest_workers
from checks import CALM
from history import Ask
from load import PAUSE_MS, Connection, Gone, believe, is_error, lock, unlock, work
from record import Write
from resp import Error, encode

LEASE_MS, HOLD_MS, HOARD_MS = 900, 2500, 120_000
LATE_WRITER = 0.3  # of those who lost a hold, how many write nevertheless


class Resource:
    """Per name: a number that grows by one with each change, and the highest token that
    came with one. Nobody is refused: the checker sees who should have been. A late
    writer, who knows that its hold is gone, is refused by its token."""

    def __init__(self, book):
        self.book = book
        self.values = collections.Counter()
        self.fences = collections.Counter()
        self.last = collections.defaultdict(str)  # who wrote: client@daemon

    def read(self, name):
        return self.values[name]

    def write(self, client, name, token, seen, vouched=True, kind="plain"):
        daemon = client.daemon()
        self.book.writes.append(Write(
            client.who, daemon, name, token, time.monotonic_ns(), seen, self.values[name],
            self.fences[name], self.last[name], vouched, kind))
        if kind == "read" or (not vouched and token < self.fences[name]):
            return
        if vouched:  # a lost update is one: what it wrote is what it read, and one more
            self.values[name] = seen + 1
        self.fences[name] = max(token, self.fences[name])
        self.last[name] = f"{client.who}@{daemon}"


def request_id(client):
    return uuid.UUID(int=client.dice.getrandbits(128)).hex


def guarded(client, name, got, ms, kind, *words):
    """Works for so long with a hold, changes what it protects, and gives it back."""
    resource, mine = client.crowd.resource, (*words, "ID", got[1])
    seen = resource.read(name)
    if (yield from work(client, name, ms, *mine)):
        resource.write(client, name, got[0], seen, kind=kind)
        yield from unlock(client, name, *mine)
    elif client.dice.random() < LATE_WRITER:
        resource.write(client, name, got[0], seen, vouched=False, kind=kind)


def worker(client, names, hold_ms, think_ms, kind="plain", waits=(200, 1000, 4000)):
    """The form that is right with every library."""
    words = () if kind == "plain" else (kind.upper(),)
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        wait = client.dice.choice(waits)
        got = yield from lock(client, name, *words, wait_ms=wait, kind=kind)
        if got is not None:
            yield from guarded(client, name, got, hold_ms * 2 * client.dice.random(), kind)
        yield from client.sleep(think_ms * 2 * client.dice.random())


def urgent(client, names, hold_ms, think_ms):
    """One of those who pass each other, and do not wait behind too many."""
    while not client.crowd.leaving:
        name, dice = client.dice.choice(names), client.dice
        words = ("PRIORITY", dice.randrange(10), "QUEUE", dice.randrange(8))
        try:
            got = yield from lock(client, name, *words, wait_ms=1000, priority=words[1])
        except Error as why:
            if not is_error(why, "LIMIT"):
                raise
            got = None
        if got is not None:
            yield from guarded(client, name, got, hold_ms * 2 * dice.random(), "plain")
        yield from client.sleep(think_ms * 2 * dice.random())


def ranked(client, names, hold_ms):
    """One of many who wait for long, some of them with a PRIORITY."""
    while not client.crowd.leaving:
        name, priority = client.dice.choice(names), client.dice.choice((0, 0, 0, 1, 9))
        got = yield from lock(client, name, "PRIORITY", priority, priority=priority,
                              wait_ms=client.dice.choice((1000, 4000)))
        if got is not None:
            yield from guarded(client, name, got, hold_ms * 2 * client.dice.random(), "plain")
        yield from client.sleep(hold_ms)


def caller(client, name, daemon):
    """One of two who want it now and then, each from another daemon."""
    client.turn = daemon
    yield from worker(client, [name], 200, 1000, waits=(4000,))


def hoarder(client, names):
    """A lease that outlives the round, without an ID: what it is not told of has to be
    taken back, or it shows."""
    while not client.crowd.leaving:
        name, wait = client.dice.choice(names), client.dice.choice((0, 100, 500))
        try:
            token = yield from client.ask("LOCK", name, "LEASE", HOARD_MS, "WAIT", wait,
                                          lease_ms=HOARD_MS, wait_ms=wait)
            if isinstance(token, int):
                client.names.add(name)
                yield from client.sleep(5)
                yield from unlock(client, name, "TOKEN", token)
        except Gone:
            client.elsewhere()
        yield from client.sleep(20 * client.dice.random())


def holder(client, name, hold_ms):
    """For so long that the daemon renews it, over faults too."""
    while not client.crowd.leaving:
        got = yield from lock(client, name)
        if got is not None:
            yield from guarded(client, name, got, hold_ms, "plain")


def owner(client, names):
    """A named owner with one entry, for which it asks twice now and then."""
    words = ("OWNER", client.who)
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        got = yield from lock(client, name, *words)
        if got is not None and client.dice.random() < 0.3:
            client.turn += 1
            yield from again(client, name, got, words)
        elif got is not None:
            yield from guarded(client, name, got, 10, "plain", *words)
        yield from client.sleep(20)


def nester(client, names):
    """A named owner that enters twice, leaves once, works on, and leaves."""
    words = ("OWNER", client.who)
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        got = yield from lock(client, name, *words)
        inner = None if got is None else (yield from lock(client, name, *words))
        if inner is not None and inner[0] != got[0]:
            got = inner  # the first was lost meanwhile
        elif inner is not None:
            yield from client.insist("UNLOCK", name, *words, "ID", inner[1], noted="LEAVE",
                                     request=inner[1])
        if got is not None:
            yield from guarded(client, name, got, 20, "plain", *words)
        yield from client.sleep(30)


def drop(client, name, *words, **note):
    """Sends a LOCK, or what there is of it, and hangs up."""
    daemon = client.daemon()
    client.hang_up()
    link = client.links[daemon] = Connection(client.crowd, client, daemon)
    ask = Ask(client.who, daemon, "LOCK", name, time.monotonic_ns(), **note)
    client.crowd.book.asks.append(ask)
    data = encode("LOCK", name, *words)
    try:
        link.socket.send(data[:client.dice.randrange(1, len(data) + 1)])
    except OSError:
        pass  # it is about to end
    link.end(time.monotonic_ns())
    ask.closed = time.monotonic_ns()


def resender(client, names):
    """Asks again before it is answered and after, with one ID, here and elsewhere."""
    while not client.crowd.leaving:
        name, request = client.dice.choice(names), request_id(client)
        named = {"request": request, "wait_ms": 1000}
        words = ("WAIT", 1000, "ID", request)
        try:
            for _ in range(client.dice.randrange(3)):
                drop(client, name, *words, **named)
                client.turn += 1
        except Gone:
            client.elsewhere()
        value = None
        while not isinstance(value, int) and not client.crowd.leaving:
            value = yield from client.insist("LOCK", name, *words, **named)
            if is_error(value, "NOTHELD"):
                break
            if value is not None and not isinstance(value, int):
                yield from client.sleep(PAUSE_MS)
        if isinstance(value, int):
            client.turn += 1
            yield from again(client, name, (value, request))
            if client.dice.random() < 0.3:  # it may not end anybody else's
                yield from client.insist("UNLOCK", name, "ID", request, request=request)
        else:
            yield from client.insist("CANCEL", name, "ID", request)
        yield from client.sleep(20)


def again(client, name, got, words=()):
    """It has the token: asks for it once more, and works."""
    token, request = got
    client.names.add(name)
    client.doubts.discard(name)
    client.doubts.add(name)  # until it is answered there
    try:
        value = yield from client.ask("LOCK", name, *words, "WAIT", 1000, "ID", request,
                                      request=request, wait_ms=1000)
    except Gone:
        value = None
    if value == token:
        client.doubts.discard(name)
    # Whoever had it before may think that it is there, as long as it hears of us.
    client.hang_up(but=client.daemon() if value == token else None)
    if value == token or (yield from believe(client, name, *words, "ID", request)):
        yield from guarded(client, name, got, 5, "plain", *words)
    else:  # the place that it may have been given is not wanted any more
        yield from client.insist("CANCEL", name, "ID", request)
    client.doubts.discard(name)


def many(client, names):
    """Some names at once, with MLOCK. Each token is noted as a LOCK's."""
    asks = client.crowd.book.asks
    while not client.crowd.leaving:
        chosen, request = client.dice.sample(names, 2), request_id(client)
        value = yield from client.insist("MLOCK", "2", *chosen, "WAIT", 1500, "ID", request,
                                         request=request)
        asked = asks_of(asks, client, "MLOCK")
        if not isinstance(value, list):
            for name in chosen:
                yield from client.insist("CANCEL", name, "ID", request)
            yield from client.sleep(PAUSE_MS)
            continue
        seen = {}
        for name, token in zip(chosen, value):
            asks.append(Ask(client.who, asked.daemon, "LOCK", name, asked.sent,
                            request=request, answered=asked.answered, value=token))
            client.crowd.grants.append((asked.answered, name))
            client.names.add(name)
            client.doubts.discard(name)
            seen[name] = client.crowd.resource.read(name)
        yield from client.sleep(5)
        for name, token in zip(chosen, value):
            if (yield from believe(client, name, "ID", request)):
                client.crowd.resource.write(client, name, token, seen[name])
                yield from unlock(client, name, "ID", request)
        yield from client.sleep(30)


def asks_of(asks, client, verb):
    """The newest request of a client."""
    return next(a for a in reversed(asks) if a.who == client.who and a.verb == verb)


def rude(client, names, *words):
    """Hangs up while it waits, in the middle of a word, and right after it was granted:
    without an ID, what it was granted and never read is taken back."""
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        try:
            drop(client, name, *words, "WAIT", 500, "GRACE", 0, wait_ms=500)
        except Gone:
            client.elsewhere()
        yield from client.sleep(60 * client.dice.random())


class Crowd(load.Crowd):
    """Clients of every kind, and what they share."""

    def __init__(self, book, daemons, seed):
        super().__init__(book, daemons, seed)
        self.resource = Resource(book)


def add_local(crowd, shared, busy):
    """LOCAL clients, among themselves and beside the others."""
    crowd.add(8 if busy else 3, local_workers.neighbour, ["local-0"])
    crowd.add(4 if busy else 2, local_workers.neighbour, [*shared, "local-1"])
    crowd.add(2 if busy else 1, worker, ["local-0", "local-1"], 4, 30)
    crowd.add(2, local_workers.emigrant, ["local-1", "local-2"])
    crowd.add(2, local_workers.stayer, ["local-3", "local-4"], HOLD_MS)
    crowd.add(2, local_workers.neighbour, ["local-3"], 300)
    crowd.add(1, rude, ["local-0"], "LOCAL")


def crowded(book, daemons, seed, pools=None, busy=True, hoards=()):
    """pools: semaphores, name -> limit; None: there are only plain locks. busy: as much as
    there can be, and not a little of each. hoards: names for hoarders, of which none may be
    served in the end."""
    crowd = Crowd(book, daemons, seed)
    if hoards:
        crowd.add(3, hoarder, hoards)
        crowd.names.difference_update(hoards)
    plain = [f"plain-{i}" for i in range(8)]
    few = ["hot-0", "hot-1"]
    crowd.add(16 if busy else 6, worker, plain, 4, 8 if busy else 30)
    crowd.add(6 if busy else 3, worker, few, 4, 8 if busy else 20)
    crowd.add(5 if busy else 2, urgent, [*few, plain[0]], 4, 10 if busy else 30)
    crowd.add(14 if busy else 6, ranked, ["ranked"], 40)
    crowd.add(3, resender, plain)
    for i in range(5):
        crowd.add(1, caller, f"{CALM}{i}", 0)
        crowd.add(1, caller, f"{CALM}{i}", 1)
    crowd.add(2, load.mover, few)
    crowd.add(2, load.hasty, plain)
    crowd.add(2, rude, plain)
    add_local(crowd, [*few, plain[0]], busy)
    crowd.add(2, load.lessee, ["leased-0", "leased-1"], LEASE_MS)
    crowd.add(2, worker, ["leased-0", "leased-1"], 4, 20)
    for i in range(3):
        crowd.add(2, holder, f"kept-{i}", HOLD_MS)
    if pools is not None:
        permit_workers.add_permits(crowd, pools, busy, rude)
        leader_workers.add_leaders(crowd, busy)
        latch_workers.add_latches(crowd, busy)
        rest_workers.add_rests(crowd, busy, worker)
        crowd.add(3, owner, few)
        crowd.add(1, nester, few)
        crowd.add(4, worker, ["rw"], 8, 10 if busy else 40, "read")
        crowd.add(2, worker, ["rw"], 8, 30, "write")
        crowd.add(14, worker, ["fair"], 60, 60, "fair")
        crowd.add(2, many, ["many-0", "many-1", "many-2"])
        crowd.add(2, worker, ["many-0", "many-1"], 4, 30)
    return crowd
