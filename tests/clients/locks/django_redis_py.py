#!/usr/bin/env python3
"""django-redis: `lock` is cache.lock, `add` is cache.add and cache.delete. `django` is the latter with Django's own
backend."""
import sys
import time

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
from django.conf import settings  # noqa: E402
from redis.exceptions import LockNotOwnedError  # noqa: E402

HOW, *sys.argv[1:] = sys.argv[1:]
BACKEND = "django.core.cache.backends.redis.RedisCache" if HOW == "django" else "django_redis.cache.RedisCache"
settings.configure(CACHES={"default": {
    "BACKEND": BACKEND, "LOCATION": f"redis://{sys.argv[1]}:{sys.argv[2]}"}})

from django.core.cache import cache  # noqa: E402

import threads  # noqa: E402

DELAY_S = 0.1  # of ours: cache.add does not wait


class LockOfCache:
    def __init__(self, *_):
        pass

    @staticmethod
    def acquire(name, lease_s, wait_s):
        lock = cache.lock(name, timeout=lease_s, thread_local=False)
        return lock if lock.acquire(blocking=wait_s > 0, blocking_timeout=wait_s or None) else None

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


class AddOfCache:
    def __init__(self, *_):
        pass

    @staticmethod
    def acquire(name, lease_s, wait_s):
        end = time.monotonic() + wait_s
        while not cache.add(name, "taken", timeout=lease_s):
            if time.monotonic() >= end:
                return None
            time.sleep(DELAY_S)
        return name

    @staticmethod
    def extend(name, lease_s):
        return cache.touch(name, lease_s)

    @staticmethod
    def release(name):
        cache.delete(name)
        return True


threads.serve(LockOfCache if HOW == "lock" else AddOfCache)
