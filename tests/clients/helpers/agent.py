#!/usr/bin/env python3
"""agent.py threads|tasks TIMEOUT_S PATIENCE_S URL...: takes locks as it is told, with the helper
for Python, in threads or in asyncio's tasks. README.md beside it says how it is told."""
import asyncio
import os
import pathlib
import signal
import sys
import threading

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "clients/python"))

# pylint: disable=wrong-import-position
import latchd  # noqa: E402


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def start_child(key):
    """A fork that does nothing more."""
    pid = os.fork()
    if pid == 0:
        while True:
            signal.pause()
    say(key, "pid", pid)


def arguments(words):
    """Names, wait and options of a lock."""
    names, wait, *options = words
    more = {}
    for option in options:
        key, _, value = option.partition("=")
        if key in ("lease", "grace", "keep", "heartbeat", "at_least"):
            value = int(value) / 1000
        elif key in ("priority", "queue"):
            value = int(value)
        more[key] = True if value == "" else value
    if "permits" in more:
        more["of"] = 3
    return names.split(","), None if wait == "-" else int(wait) / 1000, more


def answer(lock, token):
    assert lock.held == (token is not None)
    return ["null"] if token is None else ["token", *lock.tokens.values()]


def say_leader(key, leader):
    say(key, "leader", leader.token, leader.data.decode() or "-")


def latch_call(latch, what, words):
    if what == "set":
        return latch.set(int(words[0]), *words[1:])
    if what == "await":
        return latch.wait(int(words[0]) / 1000)
    return getattr(latch, what)(*words)


class Threads:
    def __init__(self, client):
        self.client, self.locks, self.followers = client, {}, {}

    def follow(self, key, name):
        self.followers[key] = self.client.follow(name)
        try:
            for leader in self.followers[key]:
                say_leader(key, leader)
            say(key, "gave-up")
        except latchd.LatchdError as error:
            say(key, "error", error.code)

    def leave(self, key):
        self.followers[key].close()

    def obey(self, what, key, *words):
        threading.Thread(target=getattr(self, what), args=(key, *words), daemon=True).start()

    def lock(self, key, *words):
        names, wait, more = arguments(words)
        lock = self.client.lock(*names, wait=wait, on_lost=lambda: say(key, "lost"),
                                on_uncertain=lambda: say(key, "uncertain"), **more)
        self.locks[key] = lock
        try:
            say(key, *answer(lock, lock.acquire()))
        except latchd.LatchdError as error:
            say(key, "error", error.code)

    def unlock(self, key):
        try:
            self.locks[key].release()
            assert not self.locks[key].held
            say(key, "unlocked")
        except latchd.LatchdError as error:
            say(key, "error", error.code)

    def locked(self, key, names):
        try:
            say(key, "answer", int(self.client.lock(*names.split(",")).locked()))
        except latchd.LatchdError as error:
            say(key, "error", error.code)

    def child(self, key):
        start_child(key)

    def latch(self, key, what, name, *words):
        latch = self.client.latch(name)
        try:
            say(key, "answer", int(latch_call(latch, what, words)))
        except latchd.LatchdError as error:
            say(key, "error", error.code)

    def crowd(self, key, name, count, turns):
        inside, overlaps = [], []

        def work():
            for _ in range(int(turns)):
                with self.client.lock(name) as lock:
                    inside.append(lock.token)
                    overlaps.extend(inside[1:])
                    inside.remove(lock.token)

        threads = [threading.Thread(target=work) for _ in range(int(count))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        say(key, "overlaps", len(overlaps))


class Tasks:
    def __init__(self, client):
        self.client, self.locks, self.tasks = client, {}, {}

    def obey(self, what, key, *words):
        task = asyncio.ensure_future(getattr(self, what.replace("-", "_"))(key, *words))
        self.tasks[what, key] = task

    async def lock(self, key, *words):
        names, wait, more = arguments(words)

        async def lost():
            say(key, "lost")

        lock = self.client.lock(*names, wait=wait, on_lost=lost,
                                on_uncertain=lambda: say(key, "uncertain"), **more)
        self.locks[key] = lock
        try:
            say(key, *answer(lock, await lock.acquire()))
        except latchd.LatchdError as error:
            say(key, "error", error.code)
        except asyncio.CancelledError:
            say(key, "gave-up")

    async def follow(self, key, name):
        try:
            async for leader in self.client.follow(name):
                say_leader(key, leader)
        except latchd.LatchdError as error:
            say(key, "error", error.code)
        except asyncio.CancelledError:
            say(key, "gave-up")

    async def leave(self, key):
        self.tasks["follow", key].cancel()

    async def give_up(self, key):
        self.tasks["lock", key].cancel()

    async def unlock(self, key):
        try:
            await self.locks[key].release()
            assert not self.locks[key].held
            say(key, "unlocked")
        except latchd.LatchdError as error:
            say(key, "error", error.code)

    async def locked(self, key, names):
        try:
            say(key, "answer", int(await self.client.lock(*names.split(",")).locked()))
        except latchd.LatchdError as error:
            say(key, "error", error.code)

    async def child(self, key):
        start_child(key)

    async def latch(self, key, what, name, *words):
        latch = self.client.latch(name)
        try:
            say(key, "answer", int(await latch_call(latch, what, words)))
        except latchd.LatchdError as error:
            say(key, "error", error.code)

    async def crowd(self, key, name, count, turns):
        inside, overlaps = [], []

        async def work():
            for _ in range(int(turns)):
                async with self.client.lock(name) as lock:
                    inside.append(lock.token)
                    await asyncio.sleep(0)
                    overlaps.extend(inside[1:])
                    inside.remove(lock.token)

        await asyncio.gather(*(work() for _ in range(int(count))))
        say(key, "overlaps", len(overlaps))


def hear(hub):
    for line in sys.stdin:
        hub.obey(*line.split())


async def run_tasks(client):
    hub, loop = Tasks(client), asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        hub.obey(*line.split())


def main():
    kind, timeout, patience, *urls = sys.argv[1:]
    how = {"timeout": float(timeout), "patience": float(patience)}
    if kind == "tasks":
        asyncio.run(run_tasks(latchd.AsyncLatchd(*urls, **how)))
    else:
        hear(Threads(latchd.Latchd(*urls, **how)))


main()
