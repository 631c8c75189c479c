"""A request that was granted and given back through one daemon may have left a place at another
one: the place stays for KEEP, and only Redis says that the request is over. Where Redis has lost
that, the place is granted the lock, for nobody and until KEEP is over: latchd-promises(7), LIMITS.
"""
import bisect
import collections
import dataclasses

from history import LATE_MS, MS

KEEP_MS = 2000  # of a LOCK that does not say it


@dataclasses.dataclass
class Place:
    """It is there from when its client `left`, or its request `ended`, until `end`."""

    who: str
    name: str
    left: int
    ended: int
    end: int


def left_places(record):
    """(place, daemon), without the end."""
    asked = collections.defaultdict(dict)  # (name, request) -> daemon -> when it was left
    ended = {}  # (name, request) -> who, when
    for ask in sorted((a for a in record.asks if a.request), key=lambda a: a.sent):
        key, answered = (ask.name, ask.request), isinstance(ask.value, int)
        if ask.verb == "LOCK" and not answered:
            asked[key][ask.daemon] = ask.answered or ask.closed or record.ended
        elif ask.verb in ("LOCK", "UNLOCK", "LEAVE") and answered:
            asked[key].pop(ask.daemon, None)  # it knows that the request holds, or is over
        if ask.verb in ("UNLOCK", "LEAVE"):
            ended.setdefault(key, (ask.who, ask.sent))
    for key, (who, at) in ended.items():
        for daemon, left in asked[key].items():
            yield Place(who, key[0], left, at, 0), daemon


class Places:
    def __init__(self, record, forgets):
        """forgets: the kinds of faults that may lose what Redis knows of an end."""
        self.faults = sorted(record.faults, key=lambda f: f.start)
        self.losses = [f for f in self.faults if f.kind in forgets]
        self.of = collections.defaultdict(list)  # (who, name) -> places, in order
        for place, daemon in left_places(record):
            place.end = self.end_of(place, daemon)
            self.of[place.who, place.name].append(place)
        for places in self.of.values():
            places.sort(key=lambda p: p.ended)

    def end_of(self, place, daemon):
        """KEEP counts from when the daemon notices; a daemon that ends keeps nothing."""
        end = place.left + KEEP_MS * MS
        for fault in self.faults:
            if fault.target != daemon or not place.left <= (fault.end or place.left):
                continue
            if fault.kind == "stop latchd" and fault.start <= end:
                end = max(end, (fault.end or end) + KEEP_MS * MS)
            elif fault.kind in ("kill latchd", "restart latchd") and fault.start < end:
                return max(fault.start, place.left)
        return end

    def granted_again(self, who, name, at):
        """What may have had such a place of that owner granted, and held until then."""
        places = self.of.get((who, name), ())
        i = bisect.bisect_right(places, at, key=lambda p: p.ended)
        for place in reversed(places[:i]):
            held_until = place.end + (KEEP_MS + LATE_MS) * MS
            for fault in self.losses:
                if (at <= held_until and fault.start <= min(at, place.end)
                        and place.ended <= (fault.end or at)):
                    return f"a place at another daemon, {fault.kind}"
        return None
