"""ATLEAST: nobody has a name before that time after its grant is over, as far as clients can tell.

A grant comes after its LOCK was first sent, and before the answer to it was read.
"""
import collections
import dataclasses

from history import MS

ROUNDING_MS = 2  # Redis counts whole ms


@dataclasses.dataclass
class Rest:
    name: str
    who: str
    token: int
    asked: int
    until: int

    def __str__(self):
        return f"{self.who}, token {self.token}"


def rests(record):
    """Of each name those that clients were told of, by their tokens."""
    first, found = {}, collections.defaultdict(dict)
    for ask in record.asks:
        if not ask.atleast_ms:
            continue
        asked = first.setdefault(ask.request, ask.sent)
        if isinstance(ask.value, int):
            found[ask.name].setdefault(ask.value, Rest(
                ask.name, ask.who, ask.value, asked,
                asked + (ask.atleast_ms - ROUNDING_MS) * MS))
    return found


def too_early(record, holds):
    """(rest, hold) where the hold was granted before the rest was over."""
    by_name = rests(record)
    for hold in holds:
        for token, rest in by_name.get(hold.name, {}).items():
            if token < hold.token and rest.asked < hold.answered < rest.until:
                yield rest, hold
