#!/usr/bin/env python3
"""redis-py's Lock for asyncio."""
import sys

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import redis.asyncio  # noqa: E402
from redis.exceptions import LockNotOwnedError  # noqa: E402

import tasks  # noqa: E402


class Library:
    """Times are in seconds. A wait of 0 is one try."""

    def __init__(self, host, port):
        self.client = redis.asyncio.Redis(host=host, port=port)

    async def acquire(self, name, lease_s, wait_s):
        """The lock, or None."""
        lock = self.client.lock(name, timeout=lease_s, thread_local=False)
        acquired = await lock.acquire(blocking=wait_s > 0, blocking_timeout=wait_s or None)
        return lock if acquired else None

    @staticmethod
    async def extend(lock, lease_s):
        try:
            return await lock.extend(lease_s, replace_ttl=True)
        except LockNotOwnedError:
            return False

    @staticmethod
    async def release(lock):
        try:
            await lock.release()
            return True
        except LockNotOwnedError:
            return False

    async def is_held(self, name):
        return await self.client.lock(name).locked()


tasks.serve(Library)
