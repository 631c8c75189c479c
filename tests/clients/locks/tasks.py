"""A program that takes locks as it is told (README.md), with a library for asyncio: its adapter
has the functions of redis_py_asyncio.Library."""
import asyncio
import sys
import time

from contention import LEASE_S, WAIT_S, Contention, say


class Tasks:
    def __init__(self, library, host, port):
        self.make = lambda: library(host, port)
        self.library, self.locks, self.tasks = self.make(), {}, set()

    def obey(self, *words):
        task = asyncio.ensure_future(self.answer(*words))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def answer(self, what, key, *words):
        try:
            say(key, await getattr(self, what)(key, *words))
        except Exception as error:  # pylint: disable=broad-except
            say(key, "error", type(error).__name__, error)

    async def acquire(self, key, name, lease_ms, wait_ms):
        lock = await self.library.acquire(name, int(lease_ms) / 1000, int(wait_ms) / 1000)
        self.locks[key] = lock
        return "acquired" if lock else "refused"

    async def extend(self, key, lease_ms):
        extended = await self.library.extend(self.locks[key], int(lease_ms) / 1000)
        return "extended" if extended else "refused"

    async def release(self, key):
        return "released" if await self.library.release(self.locks[key]) else "refused"

    async def query(self, key, name):
        return "held" if await self.library.is_held(name) else "free"

    async def contend(self, key, name, count, *how):
        contention = Contention(*how)
        await asyncio.gather(*(self.take_turns(self.make(), contention, me, name)
                               for me in range(int(count))))
        return contention.result()

    @staticmethod
    async def take_turns(library, contention, me, name):
        while not contention.is_over():
            began = time.monotonic()
            lock = await library.acquire(name, LEASE_S, WAIT_S)
            if not lock:
                raise TimeoutError(f"not acquired in {WAIT_S} s")
            if contention.enter(me, began):
                await asyncio.sleep(contention.hold_s)
            contention.leave()
            await library.release(lock)
            await asyncio.sleep(contention.pause())


async def run(library):
    tasks, loop = Tasks(library, sys.argv[1], int(sys.argv[2])), asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        tasks.obey(*line.split())


def serve(library):
    asyncio.run(run(library))
