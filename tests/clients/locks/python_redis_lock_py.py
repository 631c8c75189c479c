#!/usr/bin/env python3
"""python-redis-lock. Its key is `lock:` and the name. It waits by BLPOP, which latchd refuses, so it only tries."""
import sys
import time

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import redis  # noqa: E402
from redis_lock import Lock, NotAcquired  # noqa: E402

import threads  # noqa: E402

DELAY_S = 0.1  # of ours


class Library:
    """Its times to live are whole seconds."""

    def __init__(self, host, port):
        self.client = redis.Redis(host=host, port=port)

    def acquire(self, name, lease_s, wait_s):
        end = time.monotonic() + wait_s
        while True:
            lock = Lock(self.client, name, expire=int(lease_s))
            if lock.acquire(blocking=False):
                return lock
            if time.monotonic() >= end:
                return None
            time.sleep(DELAY_S)

    @staticmethod
    def extend(lock, lease_s):
        try:
            lock.extend(int(lease_s))
            return True
        except NotAcquired:
            return False

    @staticmethod
    def release(lock):
        try:
            lock.release()
            return True
        except NotAcquired:
            return False

    def is_held(self, name):
        return self.client.exists(name) == 1


threads.serve(Library)
