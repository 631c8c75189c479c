#!/usr/bin/env python3
"""The locks of celery-once and celery-singleton, which keep a task from being queued twice: `once`, `singleton`.
Neither waits."""
import sys
import time

sys.dont_write_bytecode = True

HOW, *sys.argv[1:] = sys.argv[1:]
# pylint: disable=wrong-import-position,import-error
import threads  # noqa: E402

DELAY_S = 0.1  # of ours


class Once:
    """Its times to live are whole seconds."""

    def __init__(self, host, port):
        from celery_once.backends import Redis
        from celery_once.tasks import AlreadyQueued
        self.refusal = AlreadyQueued
        self.backend = Redis({"url": f"redis://{host}:{port}/0"})

    def take(self, name, lease_s):
        try:
            self.backend.raise_or_lock(name, timeout=int(lease_s))
            return True
        except self.refusal:
            return False

    def acquire(self, name, lease_s, wait_s):
        end = time.monotonic() + wait_s
        while not self.take(name, lease_s):
            if time.monotonic() >= end:
                return None
            time.sleep(DELAY_S)
        return name

    def release(self, name):
        self.backend.clear_lock(name)
        return True


class Singleton(Once):
    def __init__(self, host, port):  # pylint: disable=super-init-not-called
        from celery_singleton.backends.redis import RedisBackend
        self.backend = RedisBackend(f"redis://{host}:{port}/0")

    def take(self, name, lease_s):
        return self.backend.lock(name, "task", expiry=int(lease_s))

    def release(self, name):
        self.backend.unlock(name)
        return True


threads.serve(Once if HOW == "once" else Singleton)
