"""Clients of a torture that lock with LOCAL: names that a daemon grants from its memory.

Such a hold has no ID, only a token. While it is young, other daemons know nothing of it.
"""
import load
from load import Gone, believe, is_error, work
from local_rules import LOCAL

WAITS_MS = (0, 50, 300, 2000)
MOMENT_MS = 4
SETTLED_MS = (15, 80)  # about a window, and for longer
SETTLED_PART, AGAIN_PART, MOVED_PART, LATE_WRITER = 0.15, 0.1, 0.5, 0.3


def take(client, name, *words):
    """The token, or None: it is asked for once."""
    wait = client.dice.choice(WAITS_MS)
    try:
        token = yield from client.ask("LOCK", name, "LOCAL", "WAIT", wait, *words,
                                      wait_ms=wait, kind=LOCAL)
    except Gone:
        client.elsewhere()
        return None
    if isinstance(token, int):
        client.names.add(name)
        client.doubts.discard(name)
        return token
    if token is not None:
        if not is_error(token, "BACKEND", "GOAWAY", "NOREPLICAS"):
            raise token
        yield from client.sleep(load.PAUSE_MS)
    return None


def guarded(client, name, token, ms, again=False):
    """Works for so long with a hold, changes what it protects, and gives it back."""
    resource, mine = client.crowd.resource, ("TOKEN", token)
    seen = resource.read(name)
    if not (yield from work(client, name, ms, *mine)):
        if client.dice.random() < LATE_WRITER:
            resource.write(client, name, token, seen, vouched=False, kind=LOCAL)
        return
    resource.write(client, name, token, seen, kind=LOCAL)
    if again:
        yield from release_twice(client, name, *mine)
    else:
        yield from load.unlock(client, name, *mine)


def release_twice(client, name, *mine):
    """The UNLOCK, and once more over the same connection."""
    client.names.discard(name)
    try:
        if (yield from client.ask("UNLOCK", name, *mine)) == 0:
            yield from client.ask("UNLOCK", name, *mine, noted="AGAIN")
    except Gone:
        client.elsewhere()
    client.doubts.discard(name)


def neighbour(client, names, think_ms=4):
    """Most of the time for a moment; now and then until the hold is settled."""
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        token = yield from take(client, name)
        if token is not None:
            ms = (client.dice.uniform(*SETTLED_MS) if client.dice.random() < SETTLED_PART
                  else MOMENT_MS * client.dice.random())
            yield from guarded(client, name, token, ms,
                               again=client.dice.random() < AGAIN_PART)
        yield from client.sleep(think_ms * 2 * client.dice.random())


def stayer(client, names, hold_ms):
    """For so long that the daemon renews it, over faults too."""
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        token = yield from take(client, name)
        if token is not None:
            yield from guarded(client, name, token, hold_ms)
        yield from client.sleep(50 * client.dice.random())


def emigrant(client, names):
    """Takes it through one daemon and RENEWs it through another, young or not."""
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        token = yield from take(client, name, "GRACE", 500)
        if token is not None:
            yield from client.sleep(client.dice.uniform(0, SETTLED_MS[1]))
            client.doubts.add(name)
            if client.dice.random() < MOVED_PART:
                client.elsewhere()
            moved = yield from believe(client, name, "TOKEN", token)
            # Whoever had it before may think that it is there, as long as it hears of us.
            client.hang_up(but=client.daemon() if moved else None)
            if moved:
                yield from guarded(client, name, token, MOMENT_MS)
            client.doubts.discard(name)
            client.names.discard(name)
        yield from client.sleep(10)
