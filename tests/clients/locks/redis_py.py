#!/usr/bin/env python3
"""redis-py's Lock."""
import sys

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import redis  # noqa: E402
from redis.exceptions import LockNotOwnedError  # noqa: E402

import threads  # noqa: E402


class Library:
    """Times are in seconds. A wait of 0 is one try."""

    def __init__(self, host, port):
        self.client = redis.Redis(host=host, port=port)

    def acquire(self, name, lease_s, wait_s):
        """The lock, or None."""
        lock = self.client.lock(name, timeout=lease_s, thread_local=False)
        acquired = lock.acquire(blocking=wait_s > 0, blocking_timeout=wait_s or None)
        return lock if acquired else None

    @staticmethod
    def extend(lock, lease_s):
        try:
            return lock.extend(lease_s, replace_ttl=True)
        except LockNotOwnedError:
            return False

    @staticmethod
    def release(lock):
        try:
            lock.release()
            return True
        except LockNotOwnedError:
            return False

    def is_held(self, name):
        return self.client.lock(name).locked()


if __name__ == "__main__":
    threads.serve(Library)
