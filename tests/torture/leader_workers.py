"""Clients of a torture that lead, and others that follow them."""
from load import PAUSE_MS, Gone, is_error, lock, unlock, work
from resp import Error

WAIT_MS = 1000  # of a LEADER
LOOK_BACK = 400  # requests, in which a candidate looks for another one
SMALL, LARGE = 12, 4096  # bytes of data


def data_of(client):
    """What it wants to be known: sometimes as much as there may be."""
    text = f"{client.who}/{client.dice.getrandbits(32):08x}/"
    return text.ljust(LARGE if client.dice.random() < 0.02 else len(text) + SMALL, "d")


def candidate_of(client, name):
    """The ID of one who waits at the same daemon, or None."""
    for ask in client.crowd.book.asks[:-LOOK_BACK:-1]:
        if (ask.verb == "LOCK" and ask.name == name and ask.answered is None
                and ask.closed is None and ask.request and ask.daemon == client.daemon()):
            return ask.request
    return None


def resign(client, name, request):
    """Mostly in favour of one who waits."""
    heir = candidate_of(client, name)
    if heir is not None and client.dice.random() < 0.8:
        value = yield from client.insist("UNLOCK", name, "ID", request, "TO", heir)
        if not isinstance(value, Error) or is_error(value, "NOTHELD"):
            client.names.discard(name)
            client.doubts.discard(name)
            return
        if "no such waiter" not in str(value):
            raise value
    yield from unlock(client, name, "ID", request)


def leader(client, names, hold_ms, *words):
    """Takes office with its data, works, and resigns."""
    resource = client.crowd.resource
    while not client.crowd.leaving:
        name, data = client.dice.choice(names), data_of(client)
        got = yield from lock(client, name, *words, "DATA", data, data=data)
        if got is not None:
            seen = resource.read(name)
            if (yield from work(client, name, hold_ms * 2 * client.dice.random(), "ID", got[1])):
                resource.write(client, name, got[0], seen)
                yield from resign(client, name, got[1])
        yield from client.sleep(10 * client.dice.random())


def follower(client, name):
    """Always asks for another leader than the last one."""
    seen = 0
    while not client.crowd.leaving:
        try:
            value = yield from client.ask("LEADER", name, "AFTER", seen, "WAIT", WAIT_MS,
                                          wait_ms=WAIT_MS, after=seen)
        except Gone:
            client.elsewhere()
            value = None
        if isinstance(value, list):
            seen = value[0]
        else:
            if value is not None and not is_error(value, "BACKEND", "GOAWAY"):
                raise value
            yield from client.sleep(PAUSE_MS)


def add_leaders(crowd, busy):
    crowd.add(4 if busy else 2, leader, ["office-0", "office-1"], 15)
    crowd.add(2, leader, ["office-2"], 1500, "GRACE", 0)
    crowd.add(2, leader, ["office-w"], 15, "WRITE")
    for name in ("office-0", "office-1", "office-2", "office-w"):
        crowd.add(2, follower, name)
