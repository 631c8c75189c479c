"""What `contend` measures, for programs in Python."""
import os
import random
import sys
import time

LEASE_S, WAIT_S = 10, 60  # of each lock in it


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Contention:
    """Who had the lock last, and how long everybody waited."""

    def __init__(self, seconds, hold_us, pause_us, guard):
        self.end = time.monotonic() + float(seconds)
        self.hold_s, self.pause_s = int(hold_us) / 1e6, int(pause_us) / 1e6
        self.guard = guard
        self.last, self.handovers, self.overlaps, self.waits = None, 0, 0, []

    def is_over(self):
        return time.monotonic() >= self.end

    def pause(self):
        return random.uniform(0, 2 * self.pause_s)

    def enter(self, me, began):
        """Whether it came before the end."""
        wait_us = int((time.monotonic() - began) * 1e6)
        in_time = not self.is_over()
        self.waits.append(wait_us if in_time else -wait_us)
        try:
            os.close(os.open(self.guard, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            self.overlaps += 1
        self.handovers += in_time and self.last not in (None, me)
        self.last = me
        return in_time

    def leave(self):
        try:
            os.unlink(self.guard)
        except FileNotFoundError:
            self.overlaps += 1

    def result(self):
        return " ".join(map(str, ("contended", self.handovers, self.overlaps, *self.waits)))
