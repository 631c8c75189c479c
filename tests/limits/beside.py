#!/usr/bin/env python3
"""A client that behaves well, beside one of those that do not: beside.py PORT

Locks and unlocks a name of its own until its input ends, then says in one line how many
answers came and how long they took. An answer that does not come in time is its end.
"""
import select
import sys
import time

import support  # pylint: disable=unused-import # finds resp
from resp import Wire

PATIENCE_S = 30
PAUSE_S = 0.001  # so that it is the other one who keeps the daemon busy


def main():
    took = []
    with Wire(int(sys.argv[1]), PATIENCE_S) as wire:
        wire.ask("PING")
        print("ready", flush=True)
        while not took or not select.select([sys.stdin], [], [], PAUSE_S)[0]:
            for words in (("LOCK", "beside", "WAIT", PATIENCE_S * 1000), ("UNLOCK", "beside")):
                start = time.monotonic_ns()
                wire.ask(*words)
                took.append(time.monotonic_ns() - start)
    took.sort()
    print(len(took), *(took[min(len(took) - 1, len(took) * part // 1000)] // 1000
                       for part in (500, 990, 1000)))


main()
