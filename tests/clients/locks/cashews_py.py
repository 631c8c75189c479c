#!/usr/bin/env python3
"""cashews' lock."""
import asyncio
import sys
import time
import uuid

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
from cashews import Cache  # noqa: E402

import tasks  # noqa: E402

DELAY_S = 0.1


class Library:
    def __init__(self, host, port):
        self.cache = Cache()
        self.cache.setup(f"redis://{host}:{port}", client_side=False, suppress=False)

    async def acquire(self, name, lease_s, wait_s):
        value, end = uuid.uuid4().hex, time.monotonic() + wait_s
        while not await self.cache.set_lock(name, value, expire=lease_s):
            if time.monotonic() >= end:
                return None
            await asyncio.sleep(DELAY_S)
        return name, value

    async def release(self, lock):
        return bool(await self.cache.unlock(*lock))

    async def is_held(self, name):
        return await self.cache.is_locked(name)


tasks.serve(Library)
