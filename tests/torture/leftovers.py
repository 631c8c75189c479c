"""What is left in Redis when everybody has given back what he had."""
import time

from record import Left
from resp import Error
from stage import FAIR_WAIT_MS

SLACK_MS = 10_000  # for a busy machine
SCAN, LOOK_S = 1000, 0.1
# Keys that have no time to live while they are in use, as with Redisson. A master that was
# just replaced has those of the time when it was, until it follows its successor.
IN_USE = ("redisson_lock_queue:", "redisson_lock_timeout:", "latch-")


def leftovers(stage, place, names, pools):
    """Locks that are still held when each lease is over, semaphores (`pools`: name -> limit)
    that have not all their permits then, and keys that never end: those in use have as
    long as a lock has to go."""
    limit_ms = 2 * place.watchdog_ms + FAIR_WAIT_MS + SLACK_MS
    started, waiting, found = time.monotonic(), sorted(names), []
    daemon = next(iter(stage.daemons.values()))
    while waiting:
        waited_ms = int((time.monotonic() - started) * 1000)
        states = look(daemon, waiting)
        waiting = [name for name in waiting if states.get(name) != "free"]
        for name, limit in pools.items():
            if name not in waiting and name in states:
                states[name] = permits(daemon, name)
                waiting += [name] if states[name] != (limit, limit) else []
        if waited_ms >= limit_ms:
            break
        time.sleep(LOOK_S)
    found += [Left(name, f"it is {states.get(name)} ({describe(daemon, name)})", waited_ms,
                   limit_ms) for name in waiting]
    found += [Left(key, "it has no end", 0, 0) for key in endless(place)
              if not key.startswith(IN_USE)]
    place.settled()
    started, waited_ms = time.monotonic(), 0
    while (keys := {k for k in endless(place) if k.startswith(IN_USE)}) and (
            waited_ms < limit_ms):
        time.sleep(LOOK_S)
        waited_ms = int((time.monotonic() - started) * 1000)
    found += [Left(key, "it has no end, and nobody uses it", waited_ms, limit_ms)
              for key in sorted(keys)]
    return found


def look(daemon, names):
    states = {}
    try:
        with daemon.wire() as wire:
            for name in names:
                said = wire.ask("LOCKINFO", name)
                states[name] = dict(zip(said[::2], said[1::2]))["state"]
    except (OSError, Error):
        pass  # it is asked again
    return states


def describe(daemon, name):
    """All that is known of it."""
    try:
        with daemon.wire() as wire:
            return wire.ask("LOCKINFO", name)
    except (OSError, Error) as why:
        return why


def permits(daemon, name):
    """(how many are free, how many there are) of a semaphore."""
    try:
        with daemon.wire() as wire:
            said = wire.ask("SEMAPHORE", "INFO", name)
        told = dict(zip(said[::2], said[1::2]))
        return told["free"], told["limit"]
    except (OSError, Error):
        return None


def endless(place):
    """Keys without a time to live at any master; a semaphore's counter, and what is out of
    it, have none."""
    for server in place.wires():
        with server.wire() as wire:
            cursor = None
            while cursor != "0":
                cursor, keys = wire.ask("SCAN", cursor or "0", "COUNT", SCAN)
                for key in keys:
                    if "pool" not in key and wire.ask("PTTL", key) == -1:
                        yield key
