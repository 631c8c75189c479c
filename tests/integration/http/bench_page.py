#!/usr/bin/env python3
"""What the status page costs with 10,000 held names and 5,000 waiters: bench_page.py LATCHD

The daemon's processor time while nobody looks, while one page and while ten are refreshed;
how long its answers take; and, with Chromium, how long a page takes to open.
"""
import os
import pathlib
import resource
import sys
import time

from devtools import Browser
from http_stand import HttpStand, wait_for, words
from stand import Skip

HELD, WAITERS = 10000, 5000
REFRESH_S, LOOK_S = 2, 10


def processor_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def hold(stand, client):
    for i in range(0, HELD, 500):
        client.sendall(b"".join(words("LOCK", f"name:{j}") for j in range(i, i + 500)))
        left = 500
        while left > 0:
            left -= client.recv(65536).count(b"\r\n")


def wait(stand):
    """Most wait for few names, as it is."""
    waiters = []
    for i in range(WAITERS):
        waiters.append(stand.client())
        waiters[-1].sendall(words("LOCK", f"name:{i * i % 997 if i % 5 else i}"))
    wait_for(lambda: stand.status()["now"]["waiting"] == WAITERS, "they do not wait")
    return waiters


def share(stand, pages):
    """Of a core, in percent, while so many pages are refreshed."""
    if pages == 0:
        time.sleep(11)  # nobody has looked for a while
    start, begun, turns = time.monotonic(), processor_s(stand.daemon.pid), 0
    while time.monotonic() - start < LOOK_S:
        for _ in range(pages):
            stand.status()
        turns += 1
        time.sleep(max(0, start + turns * REFRESH_S - time.monotonic()))
    return 100 * (processor_s(stand.daemon.pid) - begun) / (time.monotonic() - start)


def fetch_ms(stand, path):
    times = []
    for _ in range(9):
        time.sleep(0.12)
        start = time.monotonic()
        stand.get(path)
        times.append(1000 * (time.monotonic() - start))
    return sorted(times)[len(times) // 2], max(times)


def opened_ms(stand, browser):
    """From the click to rows in the tables, by the browser's own clock."""
    browser.call("Page.navigate", url=f"http://127.0.0.1:{stand.http_port}/")
    rows = "document.querySelectorAll('#holds tbody tr, #crowded tbody tr').length > 10"
    return wait_for(lambda: browser.evaluate(f"({rows}) && performance.now()"), "no rows")


def open_page(stand):
    try:
        with Browser() as browser:
            times = [opened_ms(stand, browser) for _ in range(5)]
    except Skip as why:
        print(f"{why}: not opened")
        return
    print(f"a page opens in {sorted(times)[2]:.0f} ms, at most {max(times):.0f} ms")


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20000), hard))
    with HttpStand(sys.argv[1]) as stand, stand.client() as client:
        hold(stand, client)
        waiters = wait(stand)
        print(f"{HELD} names held, {len(waiters)} waiters")
        for pages in (0, 1, 10):
            print(f"{pages} pages every {REFRESH_S} s: {share(stand, pages):.2f} % of a core",
                  flush=True)
        for path in ("/status.json", "/metrics", "/"):
            print("%s: %.1f ms, at most %.1f ms" % (path, *fetch_ms(stand, path)), flush=True)
        open_page(stand)
        for waiter in waiters:
            waiter.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


main()
