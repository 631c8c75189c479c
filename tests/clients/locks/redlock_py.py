#!/usr/bin/env python3
"""redlock-py. A release says nothing of whether the lock was still held."""
import sys

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import redlock  # noqa: E402

import threads  # noqa: E402

DELAY_S = redlock.Redlock.default_retry_delay


class Library:
    def __init__(self, host, *ports):
        self.servers = [{"host": host, "port": port} for port in ports]

    def acquire(self, name, lease_s, wait_s):
        manager = redlock.Redlock(self.servers, retry_count=1 + int(wait_s / DELAY_S))
        lock = manager.lock(name, int(lease_s * 1000))
        return (manager, lock) if lock else None

    @staticmethod
    def release(lock):
        manager, held = lock
        manager.unlock(held)
        return True


threads.serve(Library)
