"""Clients of a torture that take permits of semaphores, one or several at a time.

Each changes nothing: what counts is how many are inside. Names are new in each round, as the
counter of a semaphore stays.
"""
import load
from checks import CALM
from history import PERMITS
from load import believe, lock, unlock, work

LEASE_MS = 900


def words_of(permits, limit):
    return "PERMITS", permits, "OF", limit


def take(client, name, limit, most, *words, **note):
    """Some permits of a semaphore of `limit`, `most` of them at the most: (token, ID) or None."""
    permits = client.dice.randint(1, most)
    return (yield from lock(client, name, *words_of(permits, limit), *words, kind=PERMITS,
                            permits=permits, limit=limit, **note))


def visitor(client, names, limit, most, hold_ms, think_ms, waits=(200, 1000, 4000)):
    """In for a moment, or for so long that the daemon renews, over faults too."""
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        got = yield from take(client, name, limit, most, wait_ms=client.dice.choice(waits))
        if got is not None and (yield from work(
                client, name, hold_ms * 2 * client.dice.random(), "ID", got[1])):
            yield from unlock(client, name, "ID", got[1])
        yield from client.sleep(think_ms * 2 * client.dice.random())


def caller(client, name, daemon):
    """One of two who want the only permit now and then, each from another daemon."""
    client.turn = daemon
    yield from visitor(client, [name], 1, 1, 200, 1000, waits=(4000,))


def lessee(client, names, limit, most):
    """A fixed lease; every other time it is left to end by itself."""
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        got = yield from take(client, name, limit, most, "LEASE", LEASE_MS, lease_ms=LEASE_MS)
        if got is not None and client.dice.random() < 0.5:
            yield from client.sleep(30)
            yield from unlock(client, name, "ID", got[1])
        else:
            yield from client.sleep(LEASE_MS)
            client.names.discard(name)
        client.doubts.discard(name)


def mover(client, names, limit, most, hold_ms=60):
    """Takes permits through one daemon, RENEWs them through another, and ends there."""
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        got = yield from take(client, name, limit, most)
        if got is not None:
            mine = ("ID", got[1])
            client.doubts.add(name)
            client.elsewhere()
            moved = yield from believe(client, name, *mine)
            # Whoever had them before may think that they are there, as long as it hears of us.
            client.hang_up(but=client.daemon() if moved else None)
            if moved and (yield from work(client, name, hold_ms, *mine)):
                yield from unlock(client, name, *mine)
        yield from client.sleep(10)


def hasty(client, names, limit, most):
    """Does not wait for long, holds without an ID, and gives back by the token."""
    while not client.crowd.leaving:
        name, permits = client.dice.choice(names), client.dice.randint(1, most)
        wait = client.dice.choice((0, 20, 100, 300))
        try:
            token = yield from client.ask(
                "LOCK", name, *words_of(permits, limit), "WAIT", wait, wait_ms=wait,
                kind=PERMITS, permits=permits, limit=limit)
            if isinstance(token, int):
                client.names.add(name)
                yield from client.sleep(5)
                yield from unlock(client, name, "TOKEN", token)
        except load.Gone:
            client.elsewhere()
        yield from client.sleep(20 * client.dice.random())


def add_permits(crowd, pools, busy, rude):
    """pools: name -> limit; of a calm one everybody is served."""
    for name, limit in pools.items():
        if name.startswith(CALM):
            crowd.add(1, caller, name, 0)
            crowd.add(1, caller, name, 1)
            continue
        most = min(limit, 3)
        crowd.add(8 if busy else 4, visitor, [name], limit, most, 6, 10 if busy else 40)
        crowd.add(1, visitor, [name], limit, 1, 2500, 300)
        crowd.add(1, lessee, [name], limit, most)
        crowd.add(1, mover, [name], limit, most)
        crowd.add(2, hasty, [name], limit, most)
        crowd.add(1, rude, [name], *words_of(most, limit))
