"""The history of a torture: what clients saw (a Book of history.py), what was done to the
servers, what was written under the locks, and what was left in the end.

In a file it is one line an event, in JSON: its kind and its fields. Times are ns of
CLOCK_MONOTONIC. The first line says how it was made; a file is checked without the
servers it tells of.
"""
import dataclasses
import json

from history import Ask, Book, Closed, Told
from resp import Error


@dataclasses.dataclass(slots=True)
class Fault:
    """What the nemesis did, from when it began until it was undone."""

    kind: str
    target: str  # the daemon's label or the server's name
    start: int
    end: int | None = None


@dataclasses.dataclass(slots=True)
class Write:
    """A client that changed what its lock protects, or (kind read) looked at it twice:
    it read `seen`, and when it wrote, `found` was there. `fence`: the highest token that
    the resource had seen before, and whose it was. `vouched`: it took its hold for valid
    when it wrote."""

    who: str
    daemon: str
    name: str
    token: int
    at: int
    seen: int
    found: int
    fence: int
    before: str
    vouched: bool
    kind: str = "plain"


@dataclasses.dataclass(slots=True)
class Left:
    """After all was given back, and for `waited_ms`: a lock that is there still; or a key
    that has no end."""

    name: str
    what: str
    waited_ms: int
    limit_ms: int


@dataclasses.dataclass
class Settings:
    """How a run was made."""

    topology: str
    seed: int
    watchdog_ms: int
    redis_timeout_ms: int
    quarantine_ms: int
    clock_was_set: bool = False  # before: tokens may be ahead of it


class Record(Book):
    """The whole of it."""

    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.faults, self.writes, self.left = [], [], []

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            def line(kind, fields):
                file.write(json.dumps([kind, fields]) + "\n")
            line("settings", dataclasses.asdict(self.settings))
            for ask in self.asks:
                line("ask", {**dataclasses.asdict(ask), "value": plain(ask.value)})
            for kind, events in (("told", self.told), ("closed", self.closed),
                                 ("fault", self.faults), ("write", self.writes),
                                 ("left", self.left)):
                for event in events:
                    line(kind, dataclasses.asdict(event))
            for stall in self.stalls:
                line("stall", stall)
            for pause in self.pauses:
                line("pause", pause)
            for mark in self.marks.items():
                line("mark", mark)
            line("ended", self.ended)

    @classmethod
    def load(cls, path):
        with open(path, encoding="utf-8") as file:
            _, settings = json.loads(file.readline())
            book = cls(Settings(**settings))
            for line in file:
                book.add(*json.loads(line))
        return book

    def add(self, kind, fields):
        kinds = {"ask": (Ask, self.asks), "told": (Told, self.told),
                 "closed": (Closed, self.closed), "fault": (Fault, self.faults),
                 "write": (Write, self.writes), "left": (Left, self.left)}
        if kind in kinds:
            make, events = kinds[kind]
            if isinstance(fields.get("value"), str):
                fields["value"] = Error(fields["value"])
            events.append(make(**fields))
        elif kind == "stall":
            self.stalls.append(tuple(fields))
        elif kind == "pause":
            self.pauses.append(tuple(fields))
        elif kind == "mark":
            self.marks[fields[0]] = fields[1]
        elif kind == "ended":
            self.ended = fields
        else:
            raise ValueError(f"what is {kind}?")


def plain(value):
    """An answer as it is in the file: errors are the only texts."""
    return str(value) if isinstance(value, Error) else value
