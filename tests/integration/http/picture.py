#!/usr/bin/env python3
"""The picture of the status page in the documents: picture.py LATCHD FILE [MINUTES]

Clients with names and owners as people have them use a daemon for so long (12), which fills the
charts; then Chromium takes the picture.
"""
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

from devtools import QUIET, chromium
from http_stand import HttpStand
from resp import Wire

SIZE = "1100,850"
# Who asks, for which name; seconds of a hold and before the next; how many of them.
CLIENTS = [
    ("worker", "nightly:report", (100, 200), (1, 5), 3),
    ("scheduler", "leader:scheduler", (300, 500), (5, 20), 2),
    ("mailer", "mail:outbox", (0.05, 0.4), (0.1, 0.8), 6),
    ("billing", "invoice:{}", (0.1, 3), (0.2, 1), 8),
    ("indexer", "index:products", (0.5, 4), (2, 10), 3),
    ("cache", "cache:{}", (0.01, 0.05), (0.05, 0.2), 2),
]


def use(port, client, number):
    who, name, holds, pauses, _ = client
    owner = f"{who}-{number}"
    with Wire(port, timeout_s=None) as wire:
        while True:
            at = name.format(random.randrange(40))
            wire.ask("LOCK", at, "OWNER", owner)
            time.sleep(random.uniform(*holds))
            wire.ask("UNLOCK", at, "OWNER", owner)
            time.sleep(random.uniform(*pauses))


def main(latchd, path, minutes=12):
    with HttpStand(latchd) as stand, tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        for client in CLIENTS:
            for number in range(1, client[-1] + 1):
                threading.Thread(target=use, args=(stand.port, client, number), daemon=True).start()
        time.sleep(60 * float(minutes))
        subprocess.run([chromium(), *QUIET, "--virtual-time-budget=3000",
                        "--blink-settings=preferredColorScheme=1", f"--window-size={SIZE}",
                        f"--user-data-dir={folder}", f"--screenshot={pathlib.Path(path).resolve()}",
                        f"http://127.0.0.1:{stand.http_port}/"], check=True, timeout=120,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


threading.excepthook = lambda _: None  # the daemon has gone
main(*sys.argv[1:])
