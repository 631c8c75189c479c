"""What is wrong with a record: violations, each of a kind, and what is allowed.

Checked are: that two never had a name at once while each was vouched for, nor so many a
semaphore that they had more permits than it has; that tokens grow with real time and none is given
twice; that what was written under a lock was written in the order of the tokens and that no update
got lost; the order of fair waiters, and of all at one daemon; one grant and one entry for each
request ID; answers in time; that nobody has a name before ATLEAST of a hold is over; that nothing is
left behind; that nothing acknowledged is lost; what followers are told of leaders; that an UNLOCK
which is sent again has the same answer; that a latch opens when all parts were counted, and not before.
Each in O(n log n), but for the order at a daemon: in O(n) for each who waits at once.

What a topology does not promise (docs/backends.md; latchd-protocol(7),
"Failover") is an Allowance: it is counted by its name and is no violation. So is what LOCAL
gives up: local_rules.py.
"""
import bisect
import collections
import dataclasses
import itertools

from history import (MS, TOLD_LATE_MS, crushes, late_answers, overlaps,
                     tokens_that_do_not_grow)
from leader_rules import Leaders, leads
from local_rules import Young
from order_rules import JOIN_MS, passed
from place_rules import Places
from rest_rules import too_early

# What of a lease is left whenever a renewal fails: renewals are sent every third. Less
# what renewals and clients may be late on a busy machine.
LEFT_PART, LATE_RENEWAL_MS = 2 / 3, 400
RECOVERY_MS = 2000  # after a fault is undone, until all daemons have links again

# What is told of a violation: what happened to its name then, of so many of them.
BEFORE_MS, AFTER_MS, STORY_LINES, STORIES = 3000, 300, 80, 20

CALM, SLEEP_MS = "calm-", 800  # where everybody is served, and how soon

# Holds of the moment may be gone from Redis.
FORGETS = {"flushall", "evict", "clock", "lost file"}
# After these a grant may be left that nobody knows of, for as long as its lease.
ORPHANS = FORGETS | {"kill latchd", "restart latchd"}
LOSES = {"kill master", "stop master", "lag", "partition with the master",
         "partition of a master"}  # what was not sent on
LOSSES = LOSES | {"flushall", "lost file"}
# Where Redis may have lost the last writes, daemons say so and withhold names from each other
# for so long: latchd-promises(7), "Data loss in Redis is noticed".
WITHHELD_MS, WITHHELD = 3000, "BACKEND Redis may have lost locks"
WITHHOLDS = {"kill redis", "power cut", "flushall", "evict", "lost file"}
# Grants and renewals wait for a replica, other changes do not: they may stay behind.
UNACKED = {"partition with the acknowledging master"}
SWITCHES = LOSES | {"failover"} | UNACKED
CUTS_OFF = {"stop latchd": "a daemon stood still for longer than a lease",
            "partition with the master": "a daemon was cut off together with its master"}


@dataclasses.dataclass
class Allowance:
    """Two may have a name at once from `start` to `end`; with a daemon, only if that
    one's client is one of them."""

    start: int
    end: int
    why: str
    daemon: str | None = None

    def explains(self, daemons, at):
        return self.start <= at <= self.end and (
            self.daemon is None or self.daemon in daemons)

    def covers(self, old, new, at):
        """As an Excuse of history.py."""
        return self.explains((old.daemon, new.daemon), at)


def allowances(record):
    """From what was done, and where."""
    lease = record.settings.watchdog_ms
    found = []
    for fault in record.faults:
        end = record.ended if fault.end is None else fault.end
        if fault.kind in FORGETS:
            found.append(Allowance(fault.start, end + (lease + RECOVERY_MS) * MS,
                                   fault.kind))
        elif fault.kind in CUTS_OFF:
            start = fault.start
            if fault.kind == "stop latchd":
                start += int(lease * LEFT_PART - LATE_RENEWAL_MS) * MS
            found.append(Allowance(start, end + RECOVERY_MS * MS, CUTS_OFF[fault.kind],
                                   fault.target))
    return found


@dataclasses.dataclass
class Verdict:
    """violations: (kind, text); the others count by name."""

    violations: list = dataclasses.field(default_factory=list)
    allowed: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    counts: collections.Counter = dataclasses.field(default_factory=collections.Counter)


    def add(self, other):
        self.violations += other.violations
        self.allowed += other.allowed
        self.counts += other.counts


class Checker:
    """Of one record."""

    def __init__(self, record):
        self.record, self.settings = record, record.settings
        self.allowed = allowances(record)
        self.outages = self.merged()
        self.withheld = self.merged([
            a.answered for a in record.asks if str(a.value).startswith(WITHHELD)])
        self.holds = record.holds()
        self.again = self.repeated()
        self.young = Young(record)
        self.places = Places(record, FORGETS | LOSSES)
        self.verdict = Verdict()
        self.word = collections.defaultdict(list)  # when a client heard of doubts
        for told in record.told:
            self.word[told.who, told.name].append(told.at)
        for closed in record.closed:
            self.word[closed.who, closed.daemon].append(closed.at)
        for times in self.word.values():
            times.sort()

    def run(self):
        for check in (self.overlaps, self.crushes, self.rests, self.tokens, self.writes, self.fair,
                      self.order, self.requests, self.deadlines, self.slept, self.left, self.lost,
                      self.sent_again, self.leaders, self.latches):
            check()
        counts, record = self.verdict.counts, self.record
        counts.update(requests=len(record.asks), holds=len(self.holds),
                      writes=len(record.writes), told=len(record.told),
                      closed=len(record.closed), led=sum(map(leads, record.asks)))
        counts.update(f"fault: {fault.kind}" for fault in record.faults)
        return self.verdict

    def merged(self, withheld=()):
        """Times in which renewals may have failed, or nothing be granted as there was a
        failover, or names were withheld, as was said then: (start, end), in order."""
        found = []
        for fault in sorted(self.record.faults, key=lambda f: f.start):
            start, end = fault.start, fault.end or self.record.ended
            end += RECOVERY_MS * MS
            if fault.kind in SWITCHES:
                end += self.settings.quarantine_ms * MS
            elif fault.kind in WITHHOLDS and any(
                    start <= at <= end + WITHHELD_MS * MS for at in withheld):
                end += WITHHELD_MS * MS
            if found and start <= found[-1][1]:
                found[-1][1] = max(end, found[-1][1])
            else:
                found.append([start, end])
        return found

    def moved_away(self, holds, at):
        """A hold of which nobody knows whether the daemon that its client went to keeps it, and
        that daemon was cut off until the lease was over: RENEW in latchd-protocol(7)."""
        enough = int(self.settings.watchdog_ms * LEFT_PART - LATE_RENEWAL_MS) * MS
        if self.ran_out(at) and any(start + enough <= at <= end
                                    for hold in holds for start, end in hold.moves):
            return "moved to a daemon that was cut off"
        return None

    def excuse(self, daemons, at):
        return next((a.why for a in self.allowed if a.explains(daemons, at)), None)

    def ran_out(self, at):
        """Why a lease may have been over then although it was renewed."""
        lease = self.settings.watchdog_ms
        enough = int(lease * LEFT_PART - LATE_RENEWAL_MS) * MS
        for start, end in self.outages:
            if start <= at and end >= at - lease * MS and min(end, at) - start >= enough:
                return "the lease ran out in an outage"
        return None

    def judge(self, kind, text, excuse, about=None):
        """A violation, unless there is an excuse. about: (name, when), of which the
        story is told."""
        if excuse is not None:
            self.verdict.allowed[f"{kind}: {excuse}"] += 1
            return
        if about is not None and len(self.verdict.violations) < STORIES:
            name, at = about
            text = "\n".join([text, *self.record.story(
                name, at - BEFORE_MS * MS, at + AFTER_MS * MS)[-STORY_LINES:]])
        self.verdict.violations.append((kind, text))

    def overlaps(self):
        for overlap in overlaps(self.holds, self.allowed):
            moved = self.moved_away((overlap.old, overlap.new), overlap.start)
            self.judge("two holders", str(overlap), overlap.excuse or moved,
                       (overlap.name, overlap.start))

    def crushes(self):
        for crush in crushes(self.holds):
            daemons = [h.daemon for h in crush.holds]
            excuse = (self.excuse(daemons, crush.start)
                      or self.moved_away(crush.holds, crush.start))
            self.judge("too many permits", str(crush), excuse, (crush.name, crush.start))

    def rests(self):
        for rest, hold in too_early(self.record, self.holds):
            text = f"{rest.name}: {hold} came before the time of {rest} was over"
            self.judge("early", text, self.lost_since(rest.asked, hold.answered),
                       (rest.name, hold.answered))

    def lost_since(self, start, end):
        """What may have lost a rest that no daemon knew of, or was the first to put back."""
        kinds = FORGETS | LOSES | WITHHOLDS
        return next((f.kind for f in self.record.faults if f.kind in kinds and f.start <= end
                     and (f.end or self.record.ended) + RECOVERY_MS * MS >= start), None)

    def tokens(self):
        for old, new in tokens_that_do_not_grow(self.holds):
            self.judge("token", f"{new.name}: {new} came after {old}",
                       self.set_back(new.answered) or self.young.token(old, new)
                       or self.held_again(new.who, new.name, new.answered, old.who, new.token),
                       (new.name, new.answered))

    def set_back(self, at):
        """Tokens may go back if data was lost and the clock was set back since."""
        before = [f for f in self.record.faults if f.start <= at]
        clock = self.settings.clock_was_set or any(f.kind == "clock" for f in before)
        data = any(f.kind in FORGETS - {"clock"} for f in before)
        return "data was lost and the clock set back" if clock and data else None

    def held_again(self, who, name, at, other=None, token=None):
        """Why an owner may find an entry, with its old token, that it has given back: its
        UNLOCK was lost, and so was the daemon that remembered it; or of a lock it is just
        the entries that were lost. It is not over before the owner lets it alone for a
        lease. `other`: who had the name since, with a higher token."""
        if other not in (None, who) and (who, name, token) not in self.again:
            return None
        for fault in self.record.faults:
            if fault.start <= at and fault.kind == "evict":
                return "an owner's entries were evicted"
            if (fault.start <= at and fault.kind in LOSSES - {"flushall"}  # brings back nothing
                    and self.killed(fault)):
                return "an owner's UNLOCK was lost"
        return self.places.granted_again(who, name, at)

    def killed(self, loss):
        """Whether a daemon forgot what it had released when that was lost, or was cut off
        with it, and could not release it again."""
        if loss.kind == "partition with the master":
            return True
        start = loss.start - self.settings.watchdog_ms * MS
        end = (loss.end or self.record.ended) + RECOVERY_MS * MS
        return any(f.start <= end and (f.end or end) >= start for f in self.record.faults
                   if f.kind in ("kill latchd", "restart latchd"))

    def repeated(self):
        """(who, name, token) of grants that were given back, and found again."""
        seen, found = set(), set()
        for hold in self.holds:
            key = hold.who, hold.name, hold.token
            (found if key in seen else seen).add(key)
        return found

    def heard_soon(self, who, key, at):
        """Whether a word of doubt was on its way then."""
        times = self.word.get((who, key), ())
        i = bisect.bisect_left(times, at)
        return i < len(times) and times[i] <= at + TOLD_LATE_MS * MS

    def writes(self):
        before = {}  # name -> the last change
        for write in self.record.writes:
            last, at = before.get(write.name), [write.at]
            if write.kind != "read":
                before[write.name] = write
            if last is not None:  # who came between may have been allowed to, then
                at.append(last.at)
            stale = write.kind != "read" and write.fence > write.token
            changed = write.found != write.seen
            if not write.vouched:
                self.verdict.counts["late writes fenced off"] += stale
                continue
            if not stale and not changed:
                continue
            if (self.heard_soon(write.who, write.name, write.at)
                    or self.heard_soon(write.who, write.daemon, write.at)):
                self.verdict.counts["writes while a word of doubt was under way"] += 1
                continue
            old, _, daemon = write.before.rpartition("@")
            excuse = (next(filter(None, (self.excuse((write.daemon, daemon), t) for t in at)),
                           None)
                      or self.held_again(write.who, write.name, write.at, old, write.token))
            text = (f"{write.name}: {write.who} at {write.daemon}, token {write.token}, "
                    f"read {write.seen}; then {write.before} had made it {write.found}, "
                    f"with token {write.fence}")
            if changed:
                self.judge("lost update", text, excuse, (write.name, write.at))
            if stale:
                self.judge("fenced write", text, excuse, (write.name, write.at))

    def fair(self):
        """Nobody who came later, by more than it takes to join, is granted first."""
        asked = [h for h in self.holds if h.kind == "fair"]
        for name, group in itertools.groupby(sorted(asked, key=lambda h: (h.name, h.asked)),
                                             lambda h: h.name):
            group = list(group)
            times = [h.asked for h in group]
            first = list(itertools.accumulate(
                reversed(group), lambda a, b: min(a, b, key=lambda h: h.answered)))[::-1]
            for hold in group:
                after = bisect.bisect_right(times, hold.asked + JOIN_MS * MS)
                if after == len(group) or first[after].answered >= hold.answered:
                    continue
                other = first[after]
                if not self.quiet(hold) or not self.quiet(other):
                    self.verdict.allowed["fair order: a fault came between"] += 1
                elif other.asked > hold.asked + self.lateness(hold.asked, hold.answered):
                    self.judge("fair order", f"{name}: {other} asked later than {hold}, "
                               "and was first", None, (name, hold.answered))

    def quiet(self, hold):
        """Nothing was done to servers from the asking to the answer, or just before."""
        return self.quiet_between(hold.asked, hold.answered)

    def quiet_between(self, first, last):
        return not any(start <= last and first <= end for start, end in self.outages)

    def order(self):
        """Of those who wait at one daemon the lower rank is first."""
        for got, other, quiet in passed(self.record, self.quiet_between):
            self.judge("order", f"{got.ask.name}: {got} was granted before {other}",
                       None if quiet else "a fault came between",
                       (got.ask.name, got.ask.answered))

    def lateness(self, start, end):
        """How long joining takes then, in ns."""
        return JOIN_MS * MS + self.record.lateness(start, end)

    def requests(self):
        """One token for an ID, and one entry."""
        tokens = {}
        for ask in sorted(self.record.asks, key=lambda a: a.answered or 0):
            left = {"UNLOCK": 0, "LEAVE": 1}.get(ask.verb)
            if left is not None and isinstance(ask.value, int) and ask.value != left:
                self.judge("entries", f"{ask.name}: {ask.who} at {ask.daemon} gave an "
                           f"entry back, and has {ask.value} left, not {left}",
                           self.held_again(ask.who, ask.name, ask.answered),
                           (ask.name, ask.answered))
            if ask.verb != "LOCK" or ask.request is None or not isinstance(ask.value, int):
                continue
            token = tokens.setdefault((ask.name, ask.request), ask.value)
            if token != ask.value:
                tokens[ask.name, ask.request] = ask.value
                self.judge(
                    "request", f"{ask.name}: {ask.who} at {ask.daemon} was given {ask.value} "
                    f"for what had been given {token}",
                    self.excuse((ask.daemon,), ask.answered) or self.ran_out(ask.answered),
                    (ask.name, ask.answered))

    def deadlines(self):
        stopped = collections.defaultdict(list)
        for fault in self.record.faults:
            if fault.kind == "stop latchd":
                stopped[fault.target].append(fault)
        for ask, ms, excuse in late_answers(self.record, self.settings.redis_timeout_ms):
            end = ask.answered or ask.closed or self.record.ended
            if any(f.start <= end and ask.sent <= (f.end or end)
                   for f in stopped[ask.daemon]):
                self.verdict.allowed["deadline: the daemon stood still"] += 1
                continue
            self.judge("deadline", f"{ask.name}: {ask.who} at {ask.daemon} waited {ms:.0f} "
                       f"ms too long, with WAIT {ask.wait_ms}, and was answered {ask.value}",
                       excuse, (ask.name, end))

    def slept(self):
        """Who waits for a name that nobody has is granted it."""
        calm = [h for h in self.holds if h.name.startswith(CALM)]
        waits = collections.defaultdict(list)
        for ask in self.record.asks:
            if ask.verb == "LOCK" and ask.name.startswith(CALM):
                waits[ask.name].append(ask)
        for name, group in itertools.groupby(sorted(calm, key=lambda h: h.name),
                                             lambda h: h.name):
            gaps = self.gaps([s for h in group for s in h.spans])
            starts = [start for start, _ in gaps]
            for ask in waits[name]:
                end = ask.answered or ask.closed or self.record.ended
                i = max(bisect.bisect_right(starts, ask.sent) - 1, 0)
                for start, stop in gaps[i:i + 2]:
                    self.overslept(ask, max(start, ask.sent), min(stop, end))

    def gaps(self, spans):
        """When nobody had it, for longer than anybody may sleep: (start, end), in order."""
        found, seen = [], None
        for span in sorted(spans, key=lambda s: s.start):
            if seen is not None and span.start - seen > SLEEP_MS * MS:
                found.append((seen, span.start))
            seen = max(span.end, seen or 0)
        return found

    def overslept(self, ask, start, end):
        late = self.record.lateness(start, end)
        if end - start > SLEEP_MS * MS + late and not any(
                first <= end and start <= last for first, last in self.withheld):
            self.judge("slept", f"{ask.name}: {ask.who} at {ask.daemon} waited for "
                       f"{(end - start) / MS:.0f} ms, and nobody had it", None,
                       (ask.name, end))

    def left(self):
        for left in self.record.left:
            if left.waited_ms >= left.limit_ms:
                self.judge("left behind", f"{left.name}: {left.what} after "
                           f"{left.waited_ms} of {left.limit_ms} ms", None)

    def lost(self):
        """RENEW or UNLOCK of a hold that nobody gave back is NOTHELD."""
        current = {}  # (who, name) -> the LOCK's answer
        settled = set()  # tokens that were renewed
        asks = sorted(self.record.asks, key=lambda a: a.sent)
        for ask in asks:
            key = ask.who, ask.name
            if ask.verb == "LOCK" and isinstance(ask.value, int):
                current[key] = ask
            elif ask.verb == "LOCK" and str(ask.value).startswith("NOREPLICAS"):
                current.pop(key, None)  # what was asked for again is undone
            elif ask.verb in ("RENEW", "LEAVE", "UNLOCK") and key in current:
                grant = current[key]
                gone = str(ask.value).startswith("NOTHELD")
                if ask.verb == "RENEW" and isinstance(ask.value, int):
                    settled.add(grant.value)
                if gone and not over(grant, ask):
                    self.judge(
                        "lost", f"{ask.name}: {ask.who} at {ask.daemon} has lost token "
                        f"{grant.value}",
                        self.excuse((ask.daemon, grant.daemon), ask.answered)
                        or self.ran_out(ask.answered)
                        or (grant.value not in settled and self.young.lost(grant, ask)
                            or None), (ask.name, ask.answered))
                if gone or ask.verb == "UNLOCK":  # answered or not: it is not tried again
                    del current[key]

    def leaders(self):
        for text, about, lost, daemons in Leaders(self.record, self.holds).wrong():
            may_be_lost = lost is not None and next((
                f.kind for f in self.record.faults if f.start <= about[1]
                and (f.kind in LOSSES | FORGETS or
                     f.kind in UNACKED and f.start <= lost <= f.end)), None)
            self.judge("leader", text,
                       self.set_back(about[1]) or may_be_lost or None
                       or daemons and (self.excuse(daemons, about[1]) or self.ran_out(about[1]))
                       or None, about)

    def sent_again(self):
        """An UNLOCK that was answered 0, and was sent again to the same daemon at once."""
        for ask in self.record.asks:
            if ask.verb == "AGAIN" and str(ask.value).startswith("NOTHELD"):
                faulty = any(start <= ask.answered and ask.sent <= end
                             for start, end in self.outages)
                self.judge("sent again", f"{ask.name}: {ask.who} at {ask.daemon} was told "
                           "NOTHELD", "a fault came between" if faulty else None,
                           (ask.name, ask.answered))


    def latches(self):
        """Each was set once, to as many as have an ID each: latch_workers.py."""
        asks = [a for a in self.record.asks if a.kind == "latch"]
        sent, counted, deleted = (collections.defaultdict(dict) for _ in range(3))
        made = {}
        for ask in asks:
            latch, _, part = ask.request.partition(" ")
            made[latch] = min(ask.sent, made.get(latch, ask.sent))
            if ask.verb == "LATCH DELETE":
                deleted[latch].setdefault("", ask.sent)
            elif ask.verb == "LATCH COUNT":
                sent[latch][part] = min(ask.sent, sent[latch].get(part, ask.sent))
                if isinstance(ask.value, int):
                    counted[latch][part] = min(ask.answered, counted[latch].get(part, ask.answered))
        for ask in asks:
            if ask.verb != "LATCH AWAIT" or ask.answered is None:
                continue
            latch, end = ask.request, ask.answered
            begun = sum(at < end for at in sent[latch].values())
            done = sum(at < ask.sent for at in counted[latch].values())
            if ask.value == 1 and begun < ask.limit:
                self.judge("latch", f"{latch} was open for {ask.who} when {begun} of {ask.limit} "
                           "had been counted", None, (ask.name, end))
            elif ask.value is None and done == ask.limit:
                self.judge("latch", f"{latch} was closed for {ask.who}, and all had been counted",
                           self.forgotten(made[latch], end), (ask.name, end))
            elif str(ask.value).startswith("ERR"):
                excuse = "it was deleted" if deleted[latch].get("", end) < end else self.forgotten(made[latch], end)
                self.judge("latch", f"{latch} was gone for {ask.who}: {ask.value}", excuse,
                           (ask.name, end))

    def forgotten(self, made, at):
        """What may have made Redis forget a latch, or a count, that was `made` before that."""
        kinds = FORGETS | LOSSES | SWITCHES | WITHHOLDS
        return next((f.kind for f in self.record.faults if f.kind in kinds and f.start < at
                     and (f.end or at) + RECOVERY_MS * MS > made), None)


def over(grant, ask):
    """Whether a grant's own lease may be over when something is asked."""
    return (grant.lease_ms is not None
            and ask.answered > grant.sent + grant.lease_ms * MS)
