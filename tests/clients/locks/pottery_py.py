#!/usr/bin/env python3
"""Pottery's Redlock."""
import sys

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import pottery  # noqa: E402
import redis  # noqa: E402

import threads  # noqa: E402


class Library:
    def __init__(self, host, port):
        self.masters = {redis.Redis(host=host, port=port)}

    def acquire(self, name, lease_s, wait_s):
        lock = pottery.Redlock(key=name, masters=self.masters, auto_release_time=lease_s)
        how = {"timeout": wait_s} if wait_s else {"blocking": False}
        return lock if lock.acquire(**how) else None

    @staticmethod
    def extend(lock, lease_s):
        lock.auto_release_time = lease_s
        try:
            lock.extend()
            return True
        except pottery.ExtendUnlockedLock:
            return False

    @staticmethod
    def release(lock):
        try:
            lock.release()
            return True
        except pottery.ReleaseUnlockedLock:
            return False


threads.serve(Library)
