"""What LOCAL gives up: latchd-promises(7), "A hold from memory is young for a moment". On a
quorum LOCAL is an ordinary LOCK, and gives up nothing.
"""
from history import MS

LOCAL = "local"  # the kind of such a hold
WINDOW_MS = 20  # local-window of the daemons
SETTLE_MS = 150  # a round trip to Redis, and how late a busy machine is
RECOVERY_MS = 2000  # after a fault of what is between or of Redis, until there is a link
CRASH, STAND = "kill latchd", "stop latchd"
OF_DAEMONS = (CRASH, STAND, "restart latchd")
TAKEN_AWAY = ("flushall", "evict", "lost file")  # from outside


class Young:
    """Excuses for the holds of a record."""

    def __init__(self, record):
        self.record = record
        self.faults = sorted(record.faults, key=lambda f: f.start)

    def over(self, fault):
        return self.record.ended if fault.end is None else fault.end

    def until(self, grant):
        """When a hold has a field of its own at the latest, if its daemon lives so long."""
        settled = grant.answered + (WINDOW_MS + SETTLE_MS) * MS
        for fault in self.faults:
            end = self.over(fault)
            if fault.start > settled or end < grant.answered:
                continue
            if fault.kind not in OF_DAEMONS:
                settled = max(settled, end + RECOVERY_MS * MS)
            elif fault.kind == STAND and fault.target == grant.daemon:
                settled = max(settled, end + (WINDOW_MS + SETTLE_MS) * MS)
        return settled

    def is_local(self, grant):
        return grant.kind == LOCAL and self.record.settings.topology != "quorum"

    def lost(self, grant, ask):
        """Why a RENEW or UNLOCK, the first one, of a hold may be answered NOTHELD."""
        if not self.is_local(grant):
            return None
        until = self.until(grant)
        if any(f.kind == CRASH and f.target == grant.daemon and f.start <= ask.answered
               and f.start <= until and self.over(f) >= grant.answered
               for f in self.faults):
            return "a crash over a young hold"
        if ask.daemon != grant.daemon and ask.sent <= until:
            return "a young hold, through another daemon"
        return None

    def token(self, old, new):
        """Why the token of a grant may be smaller than one before it."""
        if not self.is_local(new):
            return None
        late = (WINDOW_MS + SETTLE_MS) * MS
        if any(f.kind in TAKEN_AWAY and f.start <= old.answered
               and new.answered <= self.over(f) + late for f in self.faults):
            return "a lent name was taken away from outside"
        return None
