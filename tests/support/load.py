"""Clients that lock, work and unlock, as many as there are scripts, in one thread.

A client is a generator: it yields what it waits for, and is sent what came. Each has its
own connections, over RESP3 with CLIENT TRACKING, and is told of its losses. All that is
heard goes into a Book. What clients do is below, from `quick` on.
"""
import heapq
import itertools
import random
import selectors
import socket
import threading
import time
import uuid

from history import MS, Ask, Closed, Told
from children import until
from pulse import Pulse
from resp import NOTHING, Error, Parser, Push, encode

PATIENCE_MS = 15_000  # with a request that has no deadline of its own
STALL_MS = 10  # of the load's own loop; more is noted
PAUSE_MS = 20  # before an address that refused is tried again


class Gone(Exception):
    """The connection ended, or there is none to be had."""


class Connection:
    """Of one client to one daemon."""

    def __init__(self, crowd, client, daemon):
        self.crowd, self.client, self.daemon = crowd, client, daemon
        self.parser = Parser()
        self.waits = None  # what the client waits for here: an Ask, or None
        self.greetings = 2
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self.socket.connect(str(crowd.daemons[daemon]))
            self.socket.sendall(encode("HELLO", 3) + encode("CLIENT", "TRACKING", "ON"))
        except OSError as why:
            self.socket.close()
            raise Gone from why
        self.socket.setblocking(False)
        crowd.selector.register(self.socket, selectors.EVENT_READ, self)

    def read(self):
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        # Not when the turn began: what somebody did in it may have been answered since.
        now = time.monotonic_ns()
        if not data:
            self.end(now)
            return
        self.parser.feed(data)
        while (value := self.parser.next()) is not NOTHING:
            self.hear(value, now)

    def hear(self, value, now):
        if isinstance(value, Push):
            if value[0] == "invalidate":
                for name in value[1] or ():
                    self.crowd.book.told.append(
                        Told(self.client.who, self.daemon, name, now))
                    self.client.doubts.add(name)
        elif self.greetings > 0:
            self.greetings -= 1
        else:
            ask, self.waits = self.waits, None
            ask.answered, ask.value = now, value
            self.crowd.failed += isinstance(value, Error)
            if ask.verb == "LOCK" and isinstance(value, int):
                self.crowd.grants.append((now, ask.name))
            self.client.resume(value)

    def end(self, now):
        self.crowd.selector.unregister(self.socket)
        self.socket.close()
        self.client.links.pop(self.daemon, None)
        self.crowd.book.closed.append(Closed(self.client.who, self.daemon, now))
        self.client.doubts.update(self.client.names)
        ask, self.waits = self.waits, None
        if ask is not None:
            ask.closed = now
            self.client.resume(Gone())


class Client:
    """Runs a script. Whoever asks knows a name by what is in `names` that it holds."""

    def __init__(self, crowd, who, script, dice):
        self.crowd, self.who, self.dice = crowd, who, dice
        self.links = {}
        self.doubts = set()  # names that it was told about, or whose connection ended
        self.names = set()
        self.turn = dice.randrange(1 << 16)  # whose turn it is to be asked
        self.serial = 0
        self.script = script(self)
        self.done = False

    def resume(self, value):
        self.serial += 1
        try:
            if isinstance(value, Exception) and not isinstance(value, Error):
                wanted = self.script.throw(value)
            else:
                wanted = self.script.send(value)
        except StopIteration:
            self.done = True
            return
        self.crowd.wake(self, wanted)

    # What scripts may yield from.

    def sleep(self, ms):
        yield time.monotonic_ns() + int(ms * MS)

    def daemon(self):
        """The one to ask: the same one until it fails."""
        names = list(self.crowd.daemons)
        return names[self.turn % len(names)]

    def elsewhere(self):
        self.turn += 1
        return self.daemon()

    def ask(self, verb, name, *words, daemon=None, noted=None, **note):
        """The answer; Gone if there is none. In the book it has the verb `noted`."""
        daemon = daemon or self.daemon()
        if daemon not in self.links:
            self.links[daemon] = Connection(self.crowd, self, daemon)
        link = self.links[daemon]
        ask = Ask(self.who, daemon, noted or verb, name, time.monotonic_ns(), **note)
        self.crowd.book.asks.append(ask)
        link.waits = ask
        patience = PATIENCE_MS + (note.get("wait_ms") or 0)
        try:
            link.socket.sendall(encode(verb, name, *words))
        except OSError:
            pass  # reading will find out
        value = yield ask.sent + patience * MS
        if value is None and ask.answered is None:  # the time is over
            link.waits, ask.closed = None, time.monotonic_ns()
            link.end(ask.closed)
            raise Gone
        return value

    def insist(self, verb, name, *words, **note):
        """Asks until there is an answer that says something, here or elsewhere. For
        requests that may be sent twice."""
        while True:
            try:
                value = yield from self.ask(verb, name, *words, **note)
                if not is_error(value, "BACKEND", "GOAWAY"):
                    return value
            except Gone:
                self.turn += 1
            note.pop("daemon", None)
            yield from self.sleep(PAUSE_MS)

    def hang_up(self, but=None):
        """Ends the connections, but to this daemon."""
        for link in list(self.links.values()):
            if link.daemon != but:
                link.end(time.monotonic_ns())


def is_error(value, *words):
    return isinstance(value, Error) and str(value).split(" ")[0] in words


class Crowd(threading.Thread):
    """All clients. daemons: name -> unix socket."""

    def __init__(self, book, daemons, seed):
        super().__init__(daemon=True)
        self.book, self.daemons = book, daemons
        self.dice = random.Random(seed)
        self.selector = selectors.DefaultSelector()
        self.clients, self.timers, self.order = [], [], itertools.count()
        self.grants = []  # (when, name)
        self.failed = 0  # errors so far
        self.names = set()
        self.leaving = False
        self.failure = None

    def add(self, count, script, names, *args):
        """So many clients that do this, with these names, or with this one."""
        self.names.update([names] if isinstance(names, str) else names)
        for _ in range(count):
            who = f"{script.__name__}{len(self.clients)}"
            dice = random.Random(self.dice.random())
            self.clients.append(Client(self, who, lambda c: script(c, names, *args), dice))

    def wake(self, client, when):
        heapq.heappush(self.timers, (when, next(self.order), client, client.serial))

    def run(self):
        with Pulse() as pulse:
            try:
                for client in self.clients:
                    client.resume(None)
                while self.turn():
                    pass
            except Exception as why:  # pylint: disable=broad-except
                self.failure = why
            self.book.ended = time.monotonic_ns()
        self.book.pauses = pulse.pauses

    def turn(self):
        """False: all are done."""
        now = time.monotonic_ns()
        if self.timers and now - self.timers[0][0] > STALL_MS * MS:
            self.book.stalls.append((now, now - self.timers[0][0]))
        while self.timers and self.timers[0][0] <= now:
            _, _, client, serial = heapq.heappop(self.timers)
            if client.serial == serial:
                client.resume(None)
        if all(client.done for client in self.clients):
            return False
        ready = self.selector.select(
            max(0, self.timers[0][0] - time.monotonic_ns()) / 1e9)
        for key, _ in ready:
            if key.fileobj.fileno() >= 0:
                key.data.read()
        return True

    def finish(self, within_s=30):
        """No new locks; ends when all are given back."""
        self.leaving = True
        self.join(within_s)
        if self.failure is not None:
            raise self.failure
        if self.is_alive():
            raise TimeoutError("still at it: " + ", ".join(
                c.who for c in self.clients if not c.done))

    def granted(self, count, since=None, name=None, within_s=30):
        """Waits for so many grants since then, or since now; of the name, or of any."""
        since = since or time.monotonic_ns()
        until(lambda: self.count(since, name) >= count,
              f"{count} grants of {name or 'any name'}", within_s)

    def count(self, since, name):
        if self.failure is not None:
            raise self.failure
        recent = itertools.takewhile(lambda g: g[0] > since, reversed(self.grants))
        return sum(1 for _, granted in recent if name in (None, granted))

    def errors(self, count, within_s=30):
        """Waits until so many requests more were answered by an error."""
        count += self.failed
        until(lambda: self.failed >= count, f"{count} errors", within_s)

    def all_granted(self, since, names=None, within_s=30):
        """Waits until each name was granted after `since`."""
        for name in names or self.names:
            self.granted(1, since, name, within_s)


# --- what clients do -----------------------------------------------------------------------


def lock(client, name, *words, wait_ms=2000, kind="plain", **note):
    """Asks until it is granted, or the crowd leaves: (token, ID) or None. What became of
    a request that was not answered is asked with the same ID, elsewhere if need be."""
    request = uuid.UUID(int=client.dice.getrandbits(128)).hex
    while not client.crowd.leaving:
        value = yield from client.insist(
            "LOCK", name, *words, "WAIT", wait_ms, "ID", request, wait_ms=wait_ms,
            kind=kind, request=request, **note)
        if isinstance(value, int):
            client.names.add(name)
            client.doubts.discard(name)  # of an earlier hold
            return value, request
        if is_error(value, "NOTHELD"):
            request = uuid.UUID(int=client.dice.getrandbits(128)).hex
        elif value is not None:
            if not is_error(value, "NOREPLICAS"):
                raise value
            yield from client.sleep(PAUSE_MS)
    yield from client.insist("CANCEL", name, "ID", request)
    return None


def believe(client, name, *words, daemon=None, **note):
    """RENEWs what it was told about until it knows: whether it is still there."""
    while name in client.doubts:
        client.doubts.discard(name)
        value = yield from client.insist("RENEW", name, *words, daemon=daemon, **note)
        if isinstance(value, int):
            continue
        if not is_error(value, "NOTHELD"):
            client.doubts.add(name)
            yield from client.sleep(PAUSE_MS)
            continue
        client.names.discard(name)
        return False
    return True


def work(client, name, ms, *words):
    """Holds for so long, or until it is lost: whether it is still there."""
    end = time.monotonic_ns() + ms * MS
    while time.monotonic_ns() < end and not client.crowd.leaving:
        yield from client.sleep(min(ms, 5 + 20 * client.dice.random()))
        if name in client.doubts and not (yield from believe(client, name, *words)):
            return False
    return True


def unlock(client, name, *words, daemon=None):
    """By its ID, if the last of the words is one."""
    client.names.discard(name)
    request = words[-1] if "ID" in words else None
    value = yield from client.insist("UNLOCK", name, *words, daemon=daemon, request=request)
    if isinstance(value, Error) and not is_error(value, "NOTHELD"):
        raise value
    client.doubts.discard(name)


def quick(client, names, hold_ms=8, think_ms=25, kind="plain"):
    """Watchdogged, for a moment each."""
    words = () if kind == "plain" else (kind.upper(),)
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        got = yield from lock(client, name, *words, kind=kind)
        if got is not None:
            mine = ("ID", got[1])
            if (yield from work(client, name, hold_ms * 2 * client.dice.random(), *mine)):
                yield from unlock(client, name, *mine)
        yield from client.sleep(think_ms * 2 * client.dice.random())


def keeper(client, name, hold_ms=2500):
    """Watchdogged, for so long that the daemon has to renew it, over faults too."""
    while not client.crowd.leaving:
        got = yield from lock(client, name)
        if got is not None and (yield from work(client, name, hold_ms, "ID", got[1])):
            yield from unlock(client, name, "ID", got[1])


def mover(client, names, hold_ms=60, take=lock):
    """Takes a lock through one daemon, RENEWs it through another, and ends it there. `take` is
    lock(), or a like of it for another kind."""
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        got = yield from take(client, name)
        if got is not None:
            mine = ("ID", got[1])
            client.doubts.add(name)
            client.elsewhere()
            moved = yield from believe(client, name, *mine)
            # Whoever had it before may think that it is there, as long as it hears of us.
            client.hang_up(but=client.daemon() if moved else None)
            if moved and (yield from work(client, name, hold_ms, *mine)):
                yield from unlock(client, name, *mine)
        yield from client.sleep(10)


def lessee(client, names, lease_ms=900, take=lock):
    """A fixed lease; every other time it is left to end by itself. `take` as for mover()."""
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        got = yield from take(client, name, "LEASE", lease_ms, lease_ms=lease_ms)
        if got is not None and client.dice.random() < 0.5:
            yield from client.sleep(30)
            yield from unlock(client, name, "ID", got[1])
        else:
            yield from client.sleep(lease_ms)
            client.names.discard(name)
        client.doubts.discard(name)


def hasty(client, names, words=(), note=None):
    """Does not wait for long, holds without an ID, and unlocks with the token. `words` of a LOCK
    and what the book notes of it are for kinds other than plain."""
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        wait = client.dice.choice((0, 20, 100, 300))
        try:
            token = yield from client.ask("LOCK", name, *words, "WAIT", wait, wait_ms=wait,
                                          **(note or {}))
            if isinstance(token, int):
                client.names.add(name)
                yield from client.sleep(5)
                yield from unlock(client, name, "TOKEN", token)
        except Gone:
            client.elsewhere()
        yield from client.sleep(20 * client.dice.random() + 5)
