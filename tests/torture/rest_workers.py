"""Clients of a torture that do a job at most once in a time, with ATLEAST, and others that want
the same names.
"""
import uuid

from load import unlock, work

ATLEAST_MS = (300, 1000, 3000)
JOB_MS, PAUSE_MS = 20, 60


def nightly(client, names):
    """Gives up at once if the job has run; releases it here or elsewhere, or not at all."""
    while not client.crowd.leaving:
        name, atleast = client.dice.choice(names), client.dice.choice(ATLEAST_MS)
        request = uuid.UUID(int=client.dice.getrandbits(128)).hex
        token = yield from client.insist(
            "LOCK", name, "WAIT", 0, "ATLEAST", atleast, "GRACE", 0, "ID", request,
            wait_ms=0, request=request, atleast_ms=atleast)
        if isinstance(token, int):
            client.names.add(name)
            client.doubts.discard(name)
            if (yield from work(client, name, JOB_MS * client.dice.random(), "ID", request)):
                client.turn += client.dice.random() < 0.5
                yield from unlock(client, name, "ID", request)
        yield from client.sleep(PAUSE_MS * client.dice.random())


def add_rests(crowd, busy, worker):
    names = ["nightly-0", "nightly-1", "nightly-2"]
    crowd.add(6 if busy else 3, nightly, names)
    crowd.add(2 if busy else 1, worker, names, 4, 60)
