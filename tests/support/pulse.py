"""Pulse: a process that only sleeps, and notes when the machine woke it late. Then the whole
machine stood still: the processes that are tested had no processor either.

    with Pulse() as pulse:
        ...
    pulse.pauses    (start, end) in ns of CLOCK_MONOTONIC, in order
"""
import json
import select
import subprocess
import sys
import time

MS = 1_000_000
BEAT_MS, LATE_MS = 10, 50  # a busy machine is often late by less


class Pulse:
    """A process of its own: a thread would wait for Python's lock, too."""

    def __init__(self):
        self.pauses, self.child = [], None

    def __enter__(self):
        self.child = subprocess.Popen(  # pylint: disable=consider-using-with
            [sys.executable, "-S", "-E", __file__], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_):
        said, _ = self.child.communicate()
        self.pauses = [tuple(pause) for pause in json.loads(said or "[]")]


def beat():
    """Until standard input ends."""
    pauses, before = [], time.monotonic_ns()
    while not select.select([sys.stdin], [], [], BEAT_MS / 1000)[0]:
        now = time.monotonic_ns()
        if now - before > (BEAT_MS + LATE_MS) * MS:
            pauses.append((before + BEAT_MS * MS, now))
        before = now
    print(json.dumps(pauses))


if __name__ == "__main__":
    beat()
