"""Clients of a torture that take permits of semaphores, one or several at a time.

Each changes nothing: what counts is how many are inside. Names are new in each round, as the
counter of a semaphore stays.
"""
import functools

import load
from checks import CALM
from history import PERMITS
from load import PAUSE_MS, lock, unlock, work
from resp import Error

LEASE_MS, HOLD_MS = 900, 60
BEYOND = "the semaphore has fewer permits than that"


def words_of(permits, limit):
    return "PERMITS", permits, "OF", limit


def take(client, name, *words, limit, most, **note):
    """As load.lock(): some permits of a semaphore of `limit`, `most` of them at the most."""
    permits = client.dice.randint(1, most)
    while not client.crowd.leaving:
        try:
            return (yield from lock(client, name, *words_of(permits, limit), *words, kind=PERMITS,
                                    permits=permits, limit=limit, **note))
        except Error as why:
            if BEYOND not in str(why):
                raise
            # Redis evicted what was out: until Nemesis.mend_semaphores() has been there.
            yield from client.sleep(PAUSE_MS)
    return None


def visitor(client, names, limit, most, hold_ms, think_ms, waits=(200, 1000, 4000)):
    """In for a moment, or for so long that the daemon renews, over faults too."""
    while not client.crowd.leaving:
        name = client.dice.choice(names)
        got = yield from take(client, name, limit=limit, most=most,
                              wait_ms=client.dice.choice(waits))
        if got is not None and (yield from work(
                client, name, hold_ms * 2 * client.dice.random(), "ID", got[1])):
            yield from unlock(client, name, "ID", got[1])
        yield from client.sleep(think_ms * 2 * client.dice.random())


def caller(client, name, daemon):
    """One of two who want the only permit now and then, each from another daemon."""
    client.turn = daemon
    yield from visitor(client, [name], 1, 1, 200, 1000, waits=(4000,))


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
        take_some = functools.partial(take, limit=limit, most=most)
        crowd.add(1, load.lessee, [name], LEASE_MS, take_some)
        crowd.add(1, load.mover, [name], HOLD_MS, take_some)
        for permits in (1, most):
            note = {"kind": PERMITS, "permits": permits, "limit": limit}
            crowd.add(1, load.hasty, [name], words_of(permits, limit), note)
        crowd.add(1, rude, [name], *words_of(most, limit))
