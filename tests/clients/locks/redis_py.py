#!/usr/bin/env python3
"""redis_py.py threads|tasks HOST PORT: redis-py's Lock takes locks as it is told, in threads or
in asyncio's tasks. README.md says how it is told."""
import asyncio
import os
import random
import sys
import threading
import time

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import redis  # noqa: E402
import redis.asyncio  # noqa: E402
from redis.exceptions import LockError, RedisError  # noqa: E402


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def arguments(lease_ms, wait_ms):
    """Of a lock."""
    wait_s = int(wait_ms) / 1000
    return {"timeout": int(lease_ms) / 1000, "blocking": wait_s > 0,
            "blocking_timeout": wait_s or None}


class Run:
    """A contention: who had the lock last, and how long everybody waited."""

    def __init__(self, seconds, hold_us, pause_us, guard):
        self.end = time.monotonic() + float(seconds)
        self.hold_s, self.pause_s = int(hold_us) / 1e6, int(pause_us) / 1e6
        self.guard = guard
        self.last, self.hand_overs, self.overlaps, self.waits = None, 0, 0, []

    def is_over(self):
        return time.monotonic() >= self.end

    def pause(self):
        return random.uniform(0, 2 * self.pause_s)

    def enter(self, me, began):
        """Whether it came before the end."""
        wait_us = int((time.monotonic() - began) * 1e6)
        in_time = not self.is_over()
        self.waits.append(wait_us if in_time else -wait_us)
        try:
            os.close(os.open(self.guard, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            self.overlaps += 1
        self.hand_overs += in_time and self.last not in (None, me)
        self.last = me
        return in_time

    def leave(self):
        os.unlink(self.guard)

    def result(self):
        return " ".join(map(str, ("contended", self.hand_overs, self.overlaps, *self.waits)))


class Threads:
    def __init__(self, host, port):
        self.where = {"host": host, "port": port}
        self.client, self.locks = redis.Redis(**self.where), {}

    def obey(self, what, key, *words):
        threading.Thread(target=self.answer, args=(what, key, *words), daemon=True).start()

    def answer(self, what, key, *words):
        try:
            say(key, getattr(self, what)(key, *words))
        except LockError:
            say(key, "refused")
        except RedisError as error:
            say(key, "error", error)

    def acquire(self, key, name, *words):
        lock = self.client.lock(name, thread_local=False, **arguments(*words))
        self.locks[key] = lock
        return "acquired" if lock.acquire() else "refused"

    def extend(self, key, lease_ms):
        self.locks[key].extend(int(lease_ms) / 1000, replace_ttl=True)
        return "extended"

    def release(self, key):
        self.locks[key].release()
        return "released"

    def query(self, key):
        return "held" if self.locks[key].locked() else "free"

    def contend(self, key, name, count, *how):
        run = Run(*how)

        def work(me):
            client = redis.Redis(**self.where)
            while not run.is_over():
                lock, began = client.lock(name, timeout=10), time.monotonic()
                lock.acquire()
                if run.enter(me, began):
                    time.sleep(run.hold_s)
                run.leave()
                lock.release()
                time.sleep(run.pause())

        threads = [threading.Thread(target=work, args=(i,)) for i in range(int(count))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return run.result()


class Tasks:
    def __init__(self, host, port):
        self.where = {"host": host, "port": port}
        self.client, self.locks = redis.asyncio.Redis(**self.where), {}
        self.tasks = set()

    def obey(self, what, key, *words):
        task = asyncio.ensure_future(self.answer(what, key, *words))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def answer(self, what, key, *words):
        try:
            say(key, await getattr(self, what)(key, *words))
        except LockError:
            say(key, "refused")
        except RedisError as error:
            say(key, "error", error)

    async def acquire(self, key, name, *words):
        lock = self.client.lock(name, thread_local=False, **arguments(*words))
        self.locks[key] = lock
        return "acquired" if await lock.acquire() else "refused"

    async def extend(self, key, lease_ms):
        await self.locks[key].extend(int(lease_ms) / 1000, replace_ttl=True)
        return "extended"

    async def release(self, key):
        await self.locks[key].release()
        return "released"

    async def query(self, key):
        return "held" if await self.locks[key].locked() else "free"

    async def contend(self, key, name, count, *how):
        run = Run(*how)

        async def work(me):
            client = redis.asyncio.Redis(**self.where)
            while not run.is_over():
                lock, began = client.lock(name, timeout=10), time.monotonic()
                await lock.acquire()
                if run.enter(me, began):
                    await asyncio.sleep(run.hold_s)
                run.leave()
                await lock.release()
                await asyncio.sleep(run.pause())

        await asyncio.gather(*(work(i) for i in range(int(count))))
        return run.result()


async def run_tasks(host, port):
    hub, loop = Tasks(host, port), asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        hub.obey(*line.split())


def main():
    kind, host, port = sys.argv[1:]
    if kind == "tasks":
        asyncio.run(run_tasks(host, int(port)))
    else:
        hub = Threads(host, int(port))
        for line in sys.stdin:
            hub.obey(*line.split())


main()
