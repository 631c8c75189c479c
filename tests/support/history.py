"""What clients asked, were answered and were told; and what is wrong with it.

A Book is the record of a run, in ns of CLOCK_MONOTONIC: of each request when it was sent
and when its answer was read. All that is read in one turn of the load's loop has one
time, and sending is noted before it is done. So two times compare as the events did,
wherever one of them brought about the other.

A hold is valid, as its client sees it, from the moment that the token was read to the
first of: UNLOCK is sent; a push says that the hold is uncertain or lost; the connection
is found closed; its lease, counted from the sending of the request that began it, is
over. If a RENEW that was sent after a doubt succeeds, the hold is taken to have been there
all the time: nobody else may have had the name meanwhile.
"""
import bisect
import dataclasses
import itertools

MS = 1_000_000
PERMITS = "permits"  # the kind of a hold of a semaphore
SHARED = "read", PERMITS  # kinds of which several may hold a name at once

# What clients may count on: latchd-protocol(7) has the tick, lease_valid_until() the margin.
TICK_MS = 10  # one scheduling tick
LEASE_MARGIN_PART, LEASE_MARGIN_MS = 0.01, 50

# How late processes may be on two busy cores. Not what latchd is allowed: what the test
# cannot tell from the machine's doing. An answer may have had to wait for Redis, latchd
# and the load, each STALLED times as late as the load was when it was last looked at.
LATE_MS = 400
ANSWER_LATE_MS, STALLED = 600, 3
# The same, between a daemon's word that a lease may be over and another's grant: the
# margin above is spent before.
TOLD_LATE_MS = 150
STILL = "the machine stood still"


@dataclasses.dataclass(slots=True)
class Ask:
    """A request about a lock, and its answer: an int, None, or an Error."""

    who: str
    daemon: str
    verb: str
    name: str
    sent: int
    kind: str = "plain"
    wait_ms: int | None = None  # None: for ever
    lease_ms: int | None = None  # None: the watchdog's
    request: str | None = None  # its ID
    answered: int | None = None
    value: object = None
    closed: int | None = None  # the connection ended first
    permits: int = 0  # of a semaphore that has so many in all
    limit: int = 0
    data: str | None = None  # LOCK: its DATA
    after: int | None = None  # LEADER
    atleast_ms: int = 0  # its ATLEAST
    priority: int = 0  # its PRIORITY


@dataclasses.dataclass(slots=True)
class Told:
    """A push: this hold is uncertain, certain again, or lost."""

    who: str
    daemon: str
    name: str
    at: int


@dataclasses.dataclass(slots=True)
class Closed:
    """Of a connection, as its client noticed."""

    who: str
    daemon: str
    at: int


@dataclasses.dataclass(slots=True)
class Span:
    """When a hold was believed in. `after`: what ended it; `resumed`: it is a doubt that
    turned out to be needless."""

    start: int
    end: int
    after: str
    resumed: bool = False


@dataclasses.dataclass(slots=True)
class Hold:
    """A grant, and what its client made of it."""

    who: str
    daemon: str  # that it is attached to
    name: str
    kind: str
    token: int
    asked: int  # for the first time
    answered: int
    request: str | None
    lease_end: int | None  # None: renewed by the daemon
    confirmed: int  # when the last word for it was read
    permits: int = 0
    limit: int = 0
    since: int | None = None  # believed in since; None: in doubt, or over
    doubted: int | None = None
    # [start, end]: a RENEW through another daemon had no answer, so that nobody knows which
    # daemon renews the lease
    moves: list = dataclasses.field(default_factory=list)
    spans: list = dataclasses.field(default_factory=list)

    def doubt(self, at, why):
        if self.since is not None:
            self.spans.append(Span(self.since, at, why))
            self.since, self.doubted = None, at

    def is_moving(self):
        return bool(self.moves) and self.moves[-1][1] is None

    def moved(self, at):
        if self.is_moving():
            self.moves[-1][1] = at

    def renewed(self, ask):
        self.moved(ask.answered)
        self.confirmed = ask.answered
        self.daemon = ask.daemon
        self.lease_end = lease_end(ask)
        if self.doubted is not None and ask.sent > self.doubted:
            self.spans.append(Span(self.doubted, ask.answered, "resumed", True))
            self.since, self.doubted = ask.answered, None

    def over(self, at, why):
        self.moved(at)
        self.doubt(at, why)
        self.doubted = None
        if self.lease_end is not None:
            for span in self.spans:
                if span.end > self.lease_end:
                    span.end, span.after = self.lease_end, "lease"
        self.spans = [span for span in self.spans if span.start < span.end]

    def __str__(self):
        return f"{self.who} at {self.daemon}, token {self.token}"


def lease_end(ask):
    """Until when an answered request vouches for a fixed lease. A LOCK may have waited:
    it has at least half of its lease left when it is answered."""
    if ask.lease_ms is None:
        return None
    end = ask.sent + ask.lease_ms * MS
    if ask.verb == "LOCK":
        end = max(end, ask.answered + (ask.lease_ms // 2 - LATE_MS) * MS)
    return end - int((ask.lease_ms * LEASE_MARGIN_PART + LEASE_MARGIN_MS) * MS)


class Book:
    """The record of a run."""

    def __init__(self):
        self.asks, self.told, self.closed = [], [], []
        self.marks = {}  # what the case did, or saw, and when
        self.stalls = []  # (when, for how many ns) the load itself was late
        self.pauses = []  # (start, end): the whole machine stood still, see pulse.py
        self.ended = None

    def stood_still(self, start, end):
        """For how many ns the machine did."""
        return sum(max(0, min(end, last) - max(start, first)) for first, last in self.pauses)

    def lateness(self, start, end):
        """How late, in ns, the load and the machine made what happened then."""
        late = sum(late for at, late in self.stalls if start <= at <= end)
        return max(STALLED * late, self.stood_still(start, end))

    def grants(self, name=None):
        """Answered LOCKs that gave a token, in order of the answers."""
        found = [a for a in self.asks if a.verb == "LOCK" and isinstance(a.value, int)
                 and (name is None or a.name == name)]
        return sorted(found, key=lambda a: a.answered)

    def names(self):
        return sorted({a.name for a in self.asks})

    def holds(self):
        """All of them, with their spans."""
        events = [(a.sent, 0, a) for a in self.asks]
        events += [(a.answered, 1, a) for a in self.asks if a.answered is not None]
        events += [(t.at, 1, t) for t in self.told]
        events += [(c.at, 2, c) for c in self.closed]
        live, done = {}, []
        first = {}  # ID -> when it was first asked for
        for ask in self.asks:
            if ask.request is not None:
                first.setdefault(ask.request, ask.sent)
        for at, phase, event in sorted(events, key=lambda e: e[:2]):
            if isinstance(event, Ask):
                follow(event, phase, live, done)
                continue
            for hold in live.values():
                if hold.who == event.who and (event.name == hold.name if phase == 1
                                              else event.daemon == hold.daemon):
                    hold.doubt(at, "told" if phase == 1 else "closed")
        for hold in live.values():
            hold.over(self.ended, "end")
        found = done + list(live.values())
        for hold in found:
            hold.asked = first.get(hold.request, hold.asked)
        return found

    def story(self, name, start, end):
        """What happened to a name then, a line each."""
        lines = []
        for ask in self.asks:
            if ask.name == name:
                what = f"{ask.who} at {ask.daemon}: {ask.verb} {(ask.request or '')[:6]}"
                lines.append((ask.sent, what))
                if ask.answered or ask.closed:
                    lines.append((ask.answered or ask.closed,
                                  f"{what} -> {ask.value if ask.answered else 'closed'}"))
        lines += [(t.at, f"{t.who} at {t.daemon}: told") for t in self.told
                  if t.name == name]
        lines += [(at, f"-- {what}") for what, at in self.marks.items()]
        return [f"    {(at - start) / MS:9.1f} {what}" for at, what in sorted(lines)
                if start <= at <= end]


def follow(ask, phase, live, done):
    """What a request, or (phase 1) its answer, is to the hold that it is about."""
    key = (ask.who, ask.name)
    hold = live.get(key)
    if phase == 0:
        if ask.verb == "UNLOCK" and hold is not None:
            hold.over(ask.sent, "unlock")
            done.append(live.pop(key))
    elif ask.verb == "LOCK" and isinstance(ask.value, int):
        if hold is not None and hold.token == ask.value:
            hold.renewed(ask)
            return
        if hold is not None:
            hold.over(ask.answered, "superseded")
            done.append(hold)
        live[key] = Hold(ask.who, ask.daemon, ask.name, ask.kind, ask.value, ask.sent,
                         ask.answered, ask.request, lease_end(ask), ask.answered,
                         ask.permits, ask.limit, since=ask.answered)
    elif ask.verb == "RENEW" and hold is not None:
        if isinstance(ask.value, int):
            hold.renewed(ask)
        elif str(ask.value).startswith("NOTHELD"):
            hold.over(ask.answered, "told")
            done.append(live.pop(key))
        elif ask.daemon != hold.daemon and not hold.is_moving():
            hold.moves.append([ask.sent, None])


# --- two holders ---------------------------------------------------------------------------


@dataclasses.dataclass
class Overlap:
    """Two who believed in the same name at once. `old` was granted first."""

    name: str
    old: Hold
    new: Hold
    start: int
    end: int
    excuse: str | None = None

    def __str__(self):
        return (f"{self.name}: {self.old} and {self.new} for "
                f"{(self.end - self.start) / MS:.1f} ms")


@dataclasses.dataclass
class Excuse:
    """What the docs of a topology allow. Grants and renewals that were heard of from
    `start` to `end` may have been lost: then somebody else's grant, through another
    daemon, may overlap them. With `cut_off`, a daemon that was on the wrong side of a
    partition from `start` to `end`, all that its clients believed in then may be.
    Never two of one daemon."""

    start: int
    end: int
    why: str
    cut_off: str | None = None

    def covers(self, old, new, at):
        daemons = old.daemon, new.daemon
        if daemons[0] == daemons[1]:
            return False
        if self.cut_off is not None:
            return self.cut_off in daemons and self.start <= at <= self.end
        return self.start <= old.confirmed <= self.end


def excuse_of(excuses, old, new, at):
    return next((e.why for e in excuses if e.covers(old, new, at)), None)


def may_share(one, other):
    return one is other or (one.kind == other.kind and one.kind in SHARED)


def tolerated(span):
    return TOLD_LATE_MS * MS if span.after == "told" else 0


def overlaps(holds, excuses=()):
    """Every pair of holds of a name that were valid at once."""
    found = {}
    by_name = lambda pair: pair[0].name  # noqa: E731
    spans = sorted(((h, s) for h in holds for s in h.spans),
                   key=lambda pair: (pair[0].name, pair[1].start))
    for name, group in itertools.groupby(spans, by_name):
        valid = []
        for hold, span in group:
            valid = [(h, s) for h, s in valid if s.end - tolerated(s) > span.start]
            for other, theirs in valid:
                if may_share(hold, other):
                    continue
                pair = sorted((other, hold), key=lambda h: h.answered)
                found.setdefault(tuple(map(id, pair)), Overlap(
                    name, *pair, span.start, min(span.end, theirs.end)))
            valid.append((hold, span))
    for overlap in found.values():
        overlap.excuse = excuse_of(excuses, overlap.old, overlap.new, overlap.start)
    return list(found.values())


@dataclasses.dataclass
class Crush:
    """More permits were believed in at once than the semaphore has."""

    name: str
    holds: list
    start: int

    def __str__(self):
        inside = ", ".join(f"{h} has {h.permits}" for h in self.holds)
        return f"{self.name}, of {self.holds[-1].limit}: {inside}"


def crushes(holds):
    """Every time at which too many permits of a semaphore were valid at once."""
    found = []
    spans = sorted(((h, s) for h in holds if h.kind == PERMITS for s in h.spans),
                   key=lambda pair: (pair[0].name, pair[1].start))
    for name, group in itertools.groupby(spans, lambda pair: pair[0].name):
        valid = []
        for hold, span in group:
            valid = [(h, s) for h, s in valid
                     if h is not hold and s.end - tolerated(s) > span.start]
            valid.append((hold, span))
            if sum(h.permits for h, _ in valid) > hold.limit:
                found.append(Crush(name, [h for h, _ in valid], span.start))
    return found


# --- tokens, deadlines, service ------------------------------------------------------------


def tokens_that_do_not_grow(holds, excuses=()):
    """Pairs of holds of a name (older, newer) whose tokens are the wrong way round: the
    older one's token was read before the newer one was asked for; or, as they cannot
    have been granted at once, well before the newer one's was."""
    wrong = []
    order = sorted(holds, key=lambda h: (h.name, h.answered))
    for _, group in itertools.groupby(order, lambda h: h.name):
        group = list(group)
        times = [h.answered for h in group]
        best = list(itertools.accumulate(group, lambda a, b: a if a.token >= b.token else b))
        for at, hold in enumerate(group):
            sure = hold.asked
            if hold.kind not in SHARED:
                sure = max(sure, hold.answered - LATE_MS * MS)
            before = bisect.bisect_left(times, sure, hi=at)
            old = best[before - 1] if before else None
            if (old is not None and old.token >= hold.token
                    and excuse_of(excuses, old, hold, old.answered) is None):
                wrong.append((old, hold))
    return wrong + tokens_given_twice(holds)


def tokens_given_twice(holds):
    """A reader's token is its own; any other's too."""
    seen, wrong = {}, []
    for hold in sorted(holds, key=lambda h: h.answered):
        other = seen.setdefault((hold.name, hold.token), hold)
        if other is not hold and other.who != hold.who:
            wrong.append((other, hold))
    return wrong


def late_answers(book, redis_timeout_ms):
    """LOCKs that were answered too late, or not at all, as (LOCK, how many ms too late,
    excuse). A machine that stood still excuses as much as it stood still."""
    wrong = []
    for ask in book.asks:
        if ask.verb != "LOCK" or ask.wait_ms is None:
            continue
        end = ask.answered or ask.closed or book.ended
        due = ask.sent + (max(ask.wait_ms, redis_timeout_ms) + TICK_MS) * MS
        if end <= due + ANSWER_LATE_MS * MS:
            continue
        stalled = sum(late for at, late in book.stalls if due - 1000 * MS <= at <= end)
        late = end - due - ANSWER_LATE_MS * MS - STALLED * stalled
        still = end - due - ANSWER_LATE_MS * MS - book.stood_still(ask.sent, end)
        if late > 0:
            wrong.append((ask, min(late, still) / MS, STILL if still <= 0 else None))
    return wrong


def service_gaps(book, holds, since):
    """Per name, of the ms from `since`, or from when it was next asked for, to the next
    grant that was answered, those in which nobody held it; None: it was not granted
    again."""
    gaps = {}
    for name in book.names():
        granted = min((h.answered for h in holds if h.name == name and h.answered > since),
                      default=None)
        wanted = min((max(since, a.sent) for a in book.asks
                      if a.name == name and a.verb == "LOCK"
                      and (a.answered or a.closed or book.ended) > since), default=since)
        gaps[name] = None if granted is None else (
            granted - wanted - held(holds, name, wanted, granted)) / MS
    return gaps


def held(holds, name, start, end):
    """For how long anybody had it."""
    spans = sorted((max(s.start, start), min(s.end, end))
                   for h in holds if h.name == name for s in h.spans)
    time, seen = 0, start
    for first, last in spans:
        time += max(0, last - max(first, seen))
        seen = max(seen, last)
    return time


@dataclasses.dataclass
class Rules:
    """What a case's history has to be."""

    redis_timeout_ms: int
    excuses: tuple = ()
    # mark -> ms, or several (ms, name -> whether it counts)
    gaps: dict = dataclasses.field(default_factory=dict)
    no_errors: bool = False  # clients were to see none
    kept: tuple = ()  # names of which no hold was to be lost


def verdict(book, rules):
    """(what is wrong, what is worth saying): lists of lines."""
    holds = book.holds()
    every = overlaps(holds, rules.excuses)
    wrong = [f"two holders of {o}" for o in every if o.excuse is None]
    wrong += [f"{new.name}: {new} came after {old}"
              for old, new in tokens_that_do_not_grow(holds, rules.excuses)]
    late = late_answers(book, rules.redis_timeout_ms)
    for ask, ms, _ in (a for a in late if a[2] is None):
        wrong.append(f"{ask.name}: {ask.who} at {ask.daemon} waited {ms:.0f} ms too long, "
                     f"with WAIT {ask.wait_ms}, and was answered {ask.value}")
        wrong += book.story(ask.name, ask.sent - 20 * MS, ask.sent + 3000 * MS)[:60]
    excused = sum(1 for o in every if o.excuse is not None)
    said = [f"{len(book.asks)} requests, {len(holds)} holds, "
            f"{sum(s.resumed for h in holds for s in h.spans)} doubts that ended well, "
            f"{len(every)} overlaps, {excused} of them allowed, "
            f"{sum(why is not None for *_, why in late)} late answers as {STILL}"]
    if rules.no_errors:
        wrong += [f"{a.name}: {a.verb} of {a.who} at {a.daemon} was answered {a.value}"
                  for a in book.asks if isinstance(a.value, Exception)]
    for ask in book.asks:  # who gives back what is gone has lost nothing
        if (ask.name in rules.kept and ask.verb == "RENEW"
                and str(ask.value).startswith("NOTHELD")):
            wrong.append(f"{ask.name}: {ask.who} at {ask.daemon} has lost it")
            wrong += book.story(ask.name, ask.sent - 4000 * MS, ask.answered)[-60:]
    for mark, limits in rules.gaps.items():
        gaps = service_gaps(book, holds, book.marks[mark])
        if isinstance(limits, int):
            limits = [(limits, lambda name: True)]
        for limit_ms, counts in limits:
            check_gaps(book, mark, {n: gap for n, gap in gaps.items() if counts(n)},
                       limit_ms, (wrong, said))
    return wrong, said


def check_gaps(book, mark, gaps, limit_ms, found):
    wrong, said = found
    since = book.marks[mark]
    slowest = max(gaps, key=lambda name: gaps[name] or 0, default=None)
    longest = gaps.get(slowest) or 0
    said.append(f"{longest:.0f} ms after '{mark}' until the last of {len(gaps)} names "
                f"went on, {slowest}")
    if longest > limit_ms + book.lateness(since, since + int(longest * MS)) / MS:
        wrong.append(f"service after '{mark}': {longest:.0f} of {limit_ms} ms, {slowest}")
        wrong += book.story(slowest, since - 500 * MS, since + int(longest + 500) * MS)
    wrong += [f"{name}: never granted again after '{mark}'"
              for name, gap in gaps.items() if gap is None]
