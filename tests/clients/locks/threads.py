"""A program that takes locks as it is told (README.md), with a library that blocks: its adapter
has the functions of redis_py.Library."""
import sys
import threading
import time

from contention import LEASE_S, WAIT_S, Contention, say


class Threads:
    def __init__(self, library, host, *ports):
        self.make = lambda: library(host, *ports)
        self.library, self.locks = self.make(), {}

    def answer(self, what, key, *words):
        try:
            say(key, getattr(self, what)(key, *words))
        except Exception as error:  # pylint: disable=broad-except
            say(key, "error", type(error).__name__, error)

    def acquire(self, key, name, lease_ms, wait_ms):
        lock = self.library.acquire(name, int(lease_ms) / 1000, int(wait_ms) / 1000)
        self.locks[key] = lock
        return "acquired" if lock else "refused"

    def extend(self, key, lease_ms):
        extended = self.library.extend(self.locks[key], int(lease_ms) / 1000)
        return "extended" if extended else "refused"

    def release(self, key):
        return "released" if self.library.release(self.locks[key]) else "refused"

    def query(self, key, name):
        return "held" if self.library.is_held(name) else "free"

    def contend(self, key, name, count, *how):
        contention, errors = Contention(*how), []

        def work(me):
            try:
                self.take_turns(self.make(), contention, me, name)
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(int(count))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return contention.result()

    @staticmethod
    def take_turns(library, contention, me, name):
        while not contention.is_over():
            began = time.monotonic()
            lock = library.acquire(name, LEASE_S, WAIT_S)
            if not lock:
                raise TimeoutError(f"not acquired in {WAIT_S} s")
            if contention.enter(me, began):
                time.sleep(contention.hold_s)
            contention.leave()
            library.release(lock)
            time.sleep(contention.pause())


def serve(library):
    obey(Threads(library, sys.argv[1], *map(int, sys.argv[2].split(","))))


def obey(threads):
    for line in sys.stdin:
        threading.Thread(target=threads.answer, args=line.split(), daemon=True).start()
