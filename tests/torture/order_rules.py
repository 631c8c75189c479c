"""The order of a daemon's queue: who waits with the lower rank is granted a plain lock first. The
rank is the time of arrival, less `priority-aging` for each step of PRIORITY: latchd-protocol(7).

Clients know the time of an arrival from below and from above: a place that was kept for KEEP
counts from the first LOCK of its request. Of who is granted the earliest arrival counts here, of
who is passed the latest one. Not passed are the first one while Redis is asked for it, and who
holds already, by its owner or ID.
"""
import bisect
import collections
import dataclasses

from history import LATE_MS, MS, STALLED
from local_rules import LOCAL
from place_rules import KEEP_MS

AGING_MS = 10_000  # priority-aging, by default
JOIN_MS = 400  # in which a LOCK is surely in the queue, on a machine that is not late
NEAR_MS = 500
IN_QUEUE = ("plain", LOCAL)  # the kinds of holds that the queue of a plain lock grants
# By name: who may enter its own hold; who joins queues one by one, with one request.
OWNERS, MANY = ("owner", "nester"), "many"
BOUNDED = "urgent"  # with QUEUE: beyond that many waiters a LOCK tries once, and has no place
NAMED_HEIRS = "office-"  # UNLOCK TO


@dataclasses.dataclass
class Wait:
    """One LOCK at one daemon, until its answer."""

    ask: object
    first: int  # when its request came to this daemon for the first time
    again: int  # the same, if its place was surely kept since then; or when this LOCK came
    end: int  # when it is surely in the queue no more
    alone: bool  # its request was asked for at this daemon only, and not granted before

    def granted(self):
        return self.ask.answered is not None and isinstance(self.ask.value, int)

    def rank(self, arrived):
        return arrived - self.ask.priority * AGING_MS * MS

    def __str__(self):
        return f"{self.ask.who} at {self.ask.daemon}, PRIORITY {self.ask.priority}"


def has_no_place(ask):
    """As far as one knows: it may have tried once."""
    return ask.who.startswith(BOUNDED) and str(ask.value).startswith(("LIMIT", "BACKEND"))


def waits_of(record, is_quiet):
    """(name, daemon) -> its waits, in the order in which they came."""
    found = collections.defaultdict(list)
    before = collections.defaultdict(list)  # (name, request) -> its waits so far
    mlocks = {}  # (daemon, request) -> when its MLOCK came first: each of its names has the place
    for ask in sorted(record.asks, key=lambda a: a.sent):
        if ask.verb == "MLOCK" and ask.request:
            mlocks.setdefault((ask.daemon, ask.request), ask.sent)
        if ask.verb != "LOCK" or ask.kind not in IN_QUEUE or ask.name.startswith(NAMED_HEIRS):
            continue
        over = ask.answered or ask.closed or record.ended
        end = over if ask.wait_ms is None else min(over, ask.sent + ask.wait_ms * MS)
        first = mlocks.get((ask.daemon, ask.request), ask.sent)
        wait = Wait(ask, first, ask.sent, end, True)
        earlier = before[ask.name, ask.request] if ask.request else []
        same = [w for w in earlier if w.ask.daemon == ask.daemon]
        if same:
            wait.first, last = same[0].first, same[-1]
            last.end = min(last.end, ask.sent)  # this LOCK goes on in its place
            if (last.ask.answered and ask.sent < last.ask.answered + (KEEP_MS - LATE_MS) * MS
                    and not has_no_place(last.ask) and is_quiet(last.again, ask.sent)):
                wait.again = last.again
        wait.alone = all(w.ask.daemon == ask.daemon and w.ask.answered and not w.granted()
                         for w in earlier)
        earlier.append(wait)
        found[ask.name, ask.daemon].append(wait)
    return found


def join_ns(record, start, end):
    """How long joining may have taken at the start, and an answer at the end: where the load was
    late just then, the others may have been as late; or the machine stood still."""
    late, stalls = 0, record.stalls
    first, last = bisect.bisect_left(stalls, (start, 0)), bisect.bisect_right(stalls, (end, 0))
    for at, ns in stalls[first:last]:
        if at - ns < start + NEAR_MS * MS or at > end - NEAR_MS * MS:
            late += ns
    near = start + NEAR_MS * MS
    still = (record.stood_still(start, near)
             + record.stood_still(max(near, end - NEAR_MS * MS), end))
    return JOIN_MS * MS + max(STALLED * late, still)


def passed(record, is_quiet):
    """(granted, passed, quiet) where the second had waited in front when the first was granted.
    is_quiet(start, end): nothing was done to servers then, nor just before."""
    for waits in waits_of(record, is_quiet).values():
        for got, other in compared(waits):
            ahead = got.rank(got.first) - other.rank(other.again)
            waited = got.ask.answered - other.again
            if ahead > 0 and min(ahead, waited) > join_ns(record, other.again,
                                                          got.ask.answered):
                yield got, other, is_quiet(min(other.again, got.ask.sent), got.ask.answered)


def compared(waits):
    """(granted, other): who waited when the first was granted."""
    active, joined = [], 0
    for got in sorted((w for w in waits if w.granted()), key=lambda w: w.ask.answered):
        while joined < len(waits) and waits[joined].ask.sent < got.ask.answered:
            active.append(waits[joined])
            joined += 1
        active = [w for w in active if w.end > got.ask.answered]
        if got.alone and not got.ask.who.startswith(OWNERS):
            for other in active:
                if (other.alone and not has_no_place(other.ask)
                        and not other.ask.who.startswith(MANY)):
                    yield got, other
