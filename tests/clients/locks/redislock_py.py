#!/usr/bin/env python3
"""redis-lock-py's RedisLock, which waits for the message of its own release script."""
import sys

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import redis  # noqa: E402
from redis_lock import RedisLock  # noqa: E402
from redis_lock.exceptions import ExtendFailedError, LockNotOwnedError  # noqa: E402

import threads  # noqa: E402

ONCE_S = 0.001  # it wants a time to wait


class Library:
    """Its times to live are whole seconds, and an extension is added to what is left."""

    def __init__(self, host, port):
        self.client = redis.Redis(host=host, port=port)

    def acquire(self, name, lease_s, wait_s):
        lock = RedisLock(self.client, name, blocking_timeout=wait_s or ONCE_S, expire_timeout=int(lease_s))
        return lock if lock.acquire() else None

    def extend(self, lock, lease_s):
        try:
            return lock.extend(int(lease_s) - self.client.ttl(lock.name))
        except ExtendFailedError:
            return False

    @staticmethod
    def release(lock):
        try:
            return lock.release()
        except LockNotOwnedError:
            return False


threads.serve(Library)
