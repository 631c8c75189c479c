#!/usr/bin/env python3
"""aioredlock."""
import sys

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import aioredlock  # noqa: E402

import tasks  # noqa: E402

DELAY_S = 0.1, 0.3  # as it has them


class Library:
    def __init__(self, host, port):
        self.servers = [(host, port)]
        self.manager = aioredlock.Aioredlock(self.servers)

    async def acquire(self, name, lease_s, wait_s):
        manager = aioredlock.Aioredlock(
            self.servers, retry_count=1 + int(wait_s * 2 / sum(DELAY_S)),
            retry_delay_min=DELAY_S[0], retry_delay_max=DELAY_S[1])
        manager.redis = self.manager.redis  # one pool of connections for all
        try:
            return manager, await manager.lock(name, lock_timeout=lease_s)
        except aioredlock.errors.LockAcquiringError:
            return None

    @staticmethod
    async def extend(lock, lease_s):
        manager, held = lock
        try:
            await manager.extend(held, lease_s)
            return True
        except (aioredlock.LockError, RuntimeError):
            return False

    @staticmethod
    async def release(lock):
        manager, held = lock
        try:
            await manager.unlock(held)
            return True
        except aioredlock.LockError:
            return False

    async def is_held(self, name):
        return await self.manager.is_locked(name)


tasks.serve(Library)
