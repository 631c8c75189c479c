#!/usr/bin/env python3
"""dramatiq's ConcurrentRateLimiter of one, which it calls a distributed mutex. It counts in a transaction."""
import sys
import time

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
from dramatiq.rate_limits import ConcurrentRateLimiter  # noqa: E402
from dramatiq.rate_limits.backends import RedisBackend  # noqa: E402

import threads  # noqa: E402

DELAY_S = 0.1  # of ours: it does not wait


class Library:
    def __init__(self, host, port):
        self.backend = RedisBackend(host=host, port=port)

    @staticmethod
    def take(limiter):
        """While LOCK has the name, what is there is no number: ValueError."""
        turn = limiter.acquire(raise_on_failure=False)
        try:
            if turn.__enter__():
                return turn
            turn.__exit__(None, None, None)
        except ValueError:
            pass
        return None

    def acquire(self, name, lease_s, wait_s):
        limiter = ConcurrentRateLimiter(self.backend, name, limit=1, ttl=int(lease_s * 1000))
        end = time.monotonic() + wait_s
        while True:
            turn = self.take(limiter)
            if turn:
                return turn
            if time.monotonic() >= end:
                return None
            time.sleep(DELAY_S)

    @staticmethod
    def release(turn):
        turn.__exit__(None, None, None)
        return True


threads.serve(Library)
