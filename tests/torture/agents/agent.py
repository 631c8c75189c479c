#!/usr/bin/env python3
"""agent.py redis-py HOST PORT[,PORT...] [MASTER], or agent.py latchd ADDRESS...: takes locks as it
is told. With a MASTER the ports are those of Sentinels."""
import pathlib
import sys

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(TESTS / "clients" / "locks"), str(TESTS.parent / "clients" / "python")]

# pylint: disable=wrong-import-position
import latchd  # noqa: E402
import redis  # noqa: E402
import redis.sentinel  # noqa: E402

import redis_py  # noqa: E402
import threads  # noqa: E402
from contention import say  # noqa: E402


class Plain(redis_py.Library):
    def __init__(self, host, ports, master=None):  # pylint: disable=super-init-not-called
        places = [(host, int(port)) for port in ports.split(",")]
        self.client = (redis.Redis(*places[0]) if master is None
                       else redis.sentinel.Sentinel(places).master_for(master))


class Helped(threads.Threads):
    """latchd's helper: it renews, tells of a loss, and has tokens."""

    def acquire(self, key, name, lease_ms, wait_ms):
        del lease_ms  # the daemon's
        lock = self.library.lock(name, wait=int(wait_ms) / 1000, on_lost=lambda: say(key, "lost"))
        self.locks[key] = lock
        token = lock.acquire()
        return "refused" if token is None else f"acquired {token}"

    def release(self, key):
        try:
            self.locks.pop(key).release()
        except latchd.LockLost:
            return "refused"
        return "released"


if sys.argv[1] == "redis-py":
    threads.obey(threads.Threads(Plain, *sys.argv[2:]))
else:
    threads.obey(Helped(latchd.Latchd, *sys.argv[2:]))
