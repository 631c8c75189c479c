"""What followers may be told of leaders. An answer to LEADER is a token, an owner and data."""
import bisect
import collections

from history import MS

BLOCK_US = 100_000  # tokens closer than that may be those of one loan
LEADER = "leader"
EARLY_MS = 20  # two clocks


def leads(ask):
    return ask.verb == "LEADER" and isinstance(ask.value, list)


class Leaders:
    """Violations of a record, as (text, (name, when), lost, daemons): `lost`, when the change was
    made or told that Redis may have lost, which excuses it, or None; `daemons`, whose."""

    def __init__(self, record, holds):
        self.record = record
        self.asks = sorted((a for a in record.asks if leads(a)), key=lambda a: a.answered)
        self.data, self.ended = {}, {}
        self.spans = collections.defaultdict(list)  # name -> when somebody surely led
        for ask in record.asks:
            if ask.verb == "LOCK" and isinstance(ask.value, int):
                self.data[ask.name, ask.value] = ask.data or ""
        names = {ask.name for ask in self.asks}
        for hold in holds:
            if hold.name in names and hold.kind != "read":
                self.spans[hold.name] += [(s.start, s.end, hold) for s in hold.spans]
        for spans in self.spans.values():
            spans.sort(key=lambda s: s[:2])
        self.given_back()

    def given_back(self):
        """(name, token) -> when its UNLOCK was answered."""
        held = {}
        for ask in sorted(self.record.asks, key=lambda a: a.answered or a.sent):
            if ask.verb == "LOCK" and isinstance(ask.value, int):
                held[ask.who, ask.name] = ask.value
            elif ask.verb == "UNLOCK" and ask.value == 0:
                token = held.pop((ask.who, ask.name), None)
                if token is not None:
                    self.ended[ask.name, token] = ask.answered

    def wrong(self):
        newest = collections.defaultdict(lambda: (0, 0))  # token, and when it was told
        for ask in self.asks:
            token, owner, data = ask.value
            text = f"{ask.name}: {ask.who} at {ask.daemon}, after {ask.after}, was told {ask.value}"
            about, (told, told_at) = (ask.name, ask.answered), newest[ask.who, ask.name]
            newest[ask.who, ask.name] = max((told, told_at), (token, ask.answered))
            ended_at = self.ended.get((ask.name, token), ask.sent)
            if token and data != self.data.get((ask.name, token), data):
                yield (f"{text}, whose data is {self.data[ask.name, token]}", about,
                       ask.answered if data == "" else None, ())
            if token and token + BLOCK_US < (ask.after or 0):
                yield f"{text}, who led before", about, None, ()
            elif token and token + BLOCK_US < told:
                yield f"{text} after {told}", about, told_at, ()
            if token == ask.after and ask.answered - ask.sent < (ask.wait_ms - EARLY_MS) * MS:
                yield f"{text} again, before WAIT was over", about, None, ()
            if ended_at < ask.sent:
                yield f"{text}, who had given it back", about, ended_at, ()
            if not owner:
                holder = self.holder(ask)
                if holder is not None:
                    yield f"{text}, but {holder} led", about, None, (holder.daemon, ask.daemon)

    def holder(self, ask):
        """Who surely led from the question to the answer."""
        spans = self.spans[ask.name]
        before = bisect.bisect_right(spans, ask.sent, key=lambda s: s[0])
        return next((hold for _, end, hold in spans[max(0, before - 3):before]
                     if end > ask.answered), None)
