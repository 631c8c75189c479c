"""Clients of a torture that wait for each other at latches: a foreman sets one, counters count it
down, each ID perhaps several times and through several daemons, and others wait until it is open.

Each latch has a name of its own. What is counted is noted with the name and the ID, so that the
checker knows whether a latch was opened too early.
"""
from load import PAUSE_MS, is_error

PARTS, WAIT_MS, PATIENCE = 3, 1500, 3
KIND = "latch"


class Site:
    """Where a team works: the latch of the moment, and what is to be counted yet."""

    def __init__(self, name):
        self.name, self.serial, self.latch, self.todo = name, 0, None, []

    def begin(self):
        self.serial += 1
        latch = f"{self.name}-{self.serial}"
        return latch, [f"part-{part}-of-{latch}".ljust(16, "-") for part in range(PARTS)]


def ask(client, verb, latch, *words, part="", **note):
    return client.insist("LATCH", verb, latch, *words, noted=f"LATCH {verb}", kind=KIND,
                         request=f"{latch} {part}".strip(), limit=PARTS, **note)


def await_open(client, latch):
    return ask(client, "AWAIT", latch, "WAIT", WAIT_MS, wait_ms=WAIT_MS)


def count_part(client, latch, part):
    """Until Redis, and its replicas where that is asked for, have it."""
    while is_error((yield from ask(client, "COUNT", latch, "ID", part, part=part)), "NOREPLICAS"):
        yield from client.sleep(PAUSE_MS)


def foreman(client, _names, site):
    """Whoever does not know whether all was counted counts it again."""
    while not client.crowd.leaving:
        latch, parts = site.begin()
        yield from ask(client, "SET", latch, PARTS, "ID", f"setter-of-{latch}".ljust(16, "-"))
        site.latch, site.todo = latch, list(parts)
        value, tries = None, 0
        while value is None:
            value, tries = (yield from await_open(client, latch)), tries + 1
            if tries % PATIENCE == 0 or client.crowd.leaving:
                for part in parts:
                    yield from count_part(client, latch, part)
        yield from client.sleep(20 * client.dice.random())
    yield from ask(client, "DELETE", latch)


def counter(client, _names, site):
    while not client.crowd.leaving:
        if site.todo:
            latch, part = site.latch, site.todo.pop()
            yield from client.sleep(30 * client.dice.random())
            yield from count_part(client, latch, part)
            while client.dice.random() < 0.3:
                client.turn += 1
                yield from count_part(client, latch, part)
        yield from client.sleep(5 + 20 * client.dice.random())


def waiter(client, _names, site):
    while not client.crowd.leaving:
        if site.latch is not None:
            yield from await_open(client, site.latch)
        yield from client.sleep(10 + 20 * client.dice.random())


def add_latches(crowd, busy):
    for i in range(2 if busy else 1):
        site = Site(f"latch-{crowd.dice.getrandbits(32):08x}-{i}")
        crowd.add(1, foreman, [], site)
        crowd.add(2, counter, [], site)
        crowd.add(3, waiter, [], site)
