#!/usr/bin/env python3
"""sherlock's RedisLock."""
import sys

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import redis  # noqa: E402
import sherlock  # noqa: E402

import threads  # noqa: E402


class Library:
    """Its times to live are whole seconds."""

    def __init__(self, host, port):
        self.client = redis.Redis(host=host, port=port)

    def acquire(self, name, lease_s, wait_s):
        lock = sherlock.RedisLock(name, client=self.client, expire=int(lease_s), timeout=wait_s)
        try:
            return lock if lock.acquire(blocking=wait_s > 0) else None
        except sherlock.LockTimeoutException:
            return None

    @staticmethod
    def release(lock):
        try:
            lock.release()
            return True
        except sherlock.LockException:
            return False


threads.serve(Library)
