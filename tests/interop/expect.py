"""What checks have in common: how to say what is wrong, and how to know who waits."""
import statistics

from peers import RespError, until

LATE_S = 2.0  # a wake-up that came by itself; leases and rechecks are far longer
SLACK_MS = 700  # how much later than its TTL a dead holder's lock may come
EARLY_MS = 150  # how much earlier, by our clock


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def refused(reply):
    """An error reply, as text."""
    try:
        return f"no error but {reply()}"
    except RespError as error:
        return str(error)


def subscribed(redis, name, channel="redisson_lock__channel"):
    """Somebody sleeps till that channel of the name says something."""
    channel += ":{%s}" % name
    until(lambda: redis.ask("PUBSUB", "NUMSUB", channel)[1] > 0, f"a subscriber of {channel}")


def sleeper(masters, name):
    """Somebody sleeps at one of them: a RedLock goes on where a master is late to answer."""
    channel = "redisson_lock__channel:{%s}" % name
    until(lambda: any(m.ask("PUBSUB", "NUMSUB", channel)[1] > 0 for m in masters),
          f"a subscriber of {channel}")


def queue_of(redis, name):
    return redis.ask("LRANGE", "redisson_lock_queue:{%s}" % name, 0, -1)


def queued(redis, name, count):
    """So many stand in the fair queue of that name."""
    until(lambda: len(queue_of(redis, name)) == count, f"{count} in the queue of {name}")


def deadline_ms(redis, name, member):
    """In how many ms that member of the queue counts as dead."""
    seconds, micros = redis.ask("TIME")
    score = redis.ask("ZSCORE", "redisson_lock_timeout:{%s}" % name, member)
    check(score is not None, f"{member} has no score")
    return float(score) - int(seconds) * 1000 - int(micros) / 1000


def told(world, what, waits_ns):
    ms = sorted(w / 1e6 for w in waits_ns)
    world.say(f"{what}: median {statistics.median(ms):.2f} ms, "
              f"99 % {ms[int(len(ms) * 0.99)]:.2f} ms, longest {ms[-1]:.2f} ms")
    check(ms[-1] < LATE_S * 1000, f"{what}: {ms[-1]:.0f} ms after the release")
    check(ms[0] > 0, f"{what}: in before the release began")


def after(world, took_ns, ttl_ms, what):
    took = took_ns / 1e6
    world.say(f"{what}: {took:.0f} ms, it had {ttl_ms:.0f} ms")
    check(ttl_ms - EARLY_MS < took < ttl_ms + SLACK_MS, what)
