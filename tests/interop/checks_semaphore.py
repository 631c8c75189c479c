"""Semaphores: RPermitExpirableSemaphore beside LOCK PERMITS. One function a check."""
import time

from actors import Ours, TheirPermits, asleep, wake
from crowd import ENDS, crowd, state_of
from doom import kills_a_jvm
from expect import EARLY_MS, SLACK_MS, after, check, refused, told
from peers import until

MARGIN_MS = 2000  # between a lease's end as one side counts it, and the other side's taking it
LIMIT = 5
LISTS_SINCE = (3, 41)  # a list of IDs is released as a whole, or not at all
SEVERAL_SINCE = (3, 51)  # who waits for several permits is woken in time


def ours(latchd, name, count=1, *how):
    return Ours(latchd, "permits", name, "PERMITS", count, *how)


def make(world, name, limit):
    """By Redisson."""
    check(world.jvm.ask("maker", "make", "permits", name, limit) == "true", "it was there before")


def state(world, name):
    """As Redisson sees it: its limit, what is free, what is out."""
    return tuple(map(int, world.jvm.ask("looker", "state", "permits", name).split()))


def member_of(token, number):
    """The ID in hexadecimal digits of a permit of latchd's."""
    return (b"latchd" + token.to_bytes(8, "big") + number.to_bytes(2, "big")).hex()


def end_of(redis, name, which=-1):
    """In how many ms the last of its permits ends, or the first."""
    seconds, micros = redis.ask("TIME")
    # Redisson's members are no text.
    score = redis.ask("EVAL", f"return redis.call('ZRANGE', KEYS[1], {which}, {which}, "
                              "'WITHSCORES')[2]", 1, ENDS % name)
    return float(score) - int(seconds) * 1000 - int(micros) / 1000


def permits_of_one_side_count_for_the_other(world):
    with world.latchd.connect() as first, world.second.connect() as other:
        for maker in ("latchd", "redisson"):
            name = f"counted-{maker}"
            how = ["OF", LIMIT] if maker == "latchd" else []
            if not how:
                make(world, name, LIMIT)
            three, one = ours(first, name, 3, *how), ours(other, name, 1)
            two, more = (TheirPermits(world.jvm, t, name, n) for t, n in (("two", 2), ("more", 1)))
            three.take()
            check(state(world, name) == (LIMIT, 2, 3), "Redisson counts otherwise")
            check(TheirPermits(world.jvm, "three", name, 3).refused(), "too many")
            two.take()
            check(more.refused() and one.refused(), "too many")
            said = refused(lambda n=name: first.ask("LOCK", n, "PERMITS", LIMIT + 1, "WAIT", 0))
            check(said.startswith("ERR"), said)
            three.leave()
            more.take()
            two.leave()
            check(ours(other, name, LIMIT).refused(), "too many")
            more.leave()
            check(state(world, name) == (LIMIT, LIMIT, 0), "left behind")


def a_release_of_redisson_wakes_a_waiter_for_permits(world):
    """Of one permit and of several at once, with a lease and without."""
    waits = []
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds):
            count, name = 1 + i % 3, f"sem-theirs{i}"
            make(world, name, count)
            holder = TheirPermits(world.jvm, "holder", name, count, [0, 30_000][i // 3 % 2])
            waits.append(wake(redis, holder, ours(latchd, name, 1 + i % count)))
            check(state_of(redis, name) == (count, 0), f"left behind: {state_of(redis, name)}")
    told(world, "RPermitExpirableSemaphore.release() to a LOCK PERMITS", waits)


def a_release_of_latchd_wakes_a_semaphore_of_redisson(world):
    waits = []
    most = 3 if world.version >= SEVERAL_SINCE else 1
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        for i in range(world.rounds):
            count, name = 1 + i % 3, f"sem-ours{i}"
            holder = ours(latchd, name, count, "OF", count, *[[], ["LEASE", 30_000]][i // 3 % 2])
            waiter = TheirPermits(world.jvm, "waiter", name, min(count, most),
                                  [0, 30_000][i // 6 % 2])
            waits.append(wake(redis, holder, waiter))
            check(state_of(redis, name) == (count, 0), f"left behind: {state_of(redis, name)}")
    told(world, "UNLOCK of permits to an RPermitExpirableSemaphore", waits)


def never_more_are_inside_than_there_are_permits(world):
    """Of two daemons' clients and threads of a JVM, who count themselves."""
    share = crowd(world, "crowd", LIMIT, [world.latchd, world.second] * 3, 6,
                  world.count(8, 600))
    check(share >= 0.2 * world.redis.share, f"one side starves: {share:.3f}")


def a_lone_permit_changes_sides(world):
    """Whose limit is one is a lock."""
    pairs = [ours(world.latchd.connect(), "lone", 1, "OF", 1), TheirPermits(world.jvm, "l", "lone")]
    with world.redis.connect() as redis:
        waits = []
        for i in range(world.rounds // 2):
            waits.append(wake(redis, pairs[i % 2], pairs[1 - i % 2]))
        told(world, "one permit from side to side", waits)


def steal(world, latchd, name):
    """Redisson releases one of two permits that latchd has of three, by its ID: the token."""
    token = latchd.ask("LOCK", name, "PERMITS", 2, "OF", 3, "WAIT", 0)
    check(world.jvm.ask("thief", "release", "permits", name, member_of(token, 1)) == "1",
          "no such permit")
    return token


def what_redisson_releases_of_latchd_is_taken_back_where_one_is_free(world):
    """The hold goes on as it was."""
    name = "stolen-back"
    with world.redis.connect() as redis, world.quick.connect() as latchd:
        token = steal(world, latchd, name)
        until(lambda: state_of(redis, name) == (1, 2), "it is taken back")
        check(TheirPermits(world.jvm, "greedy", name, 2).refused(), "too many")
        check(latchd.ask("UNLOCK", name, "TOKEN", token) == 0, "not released")
        check(state_of(redis, name) == (3, 0), f"{state_of(redis, name)}")


def what_redisson_releases_of_latchd_and_takes_is_lost(world):
    """Whoever had it is told once; the rest of the hold comes back, and no permit more."""
    name = "stolen-lost"
    with world.redis.connect() as redis, world.quick.connect() as latchd, \
         world.quick.connect() as listener:
        listener.ask("SUBSCRIBE", f"lost:{name}")
        rest, thief = (TheirPermits(world.jvm, who, name) for who in ("rest", "thief"))
        make(world, name, 3)
        rest.take()
        token = steal(world, latchd, name)
        thief.take()
        said = listener.receive()
        check(said[:2] == ["message", f"lost:{name}"], said)
        said = refused(lambda: latchd.ask("UNLOCK", name, "TOKEN", token))
        check(said.startswith("NOTHELD"), said)
        check(state_of(redis, name) == (1, 2), f"{state_of(redis, name)}")
        rest.leave()
        thief.leave()
        check(state_of(redis, name) == (3, 0), f"{state_of(redis, name)}")
        check(listener.ask("PING")[0] == "pong", "told twice")


def a_list_of_ids_of_which_one_is_over_releases_nothing(world):
    """Since Redisson 3.41; before, it releases the others. latchd's own permit goes on."""
    name = "listed"
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        make(world, name, 3)
        theirs = TheirPermits(world.jvm, "lister", name, 2)
        theirs.take()
        token = latchd.ask("LOCK", name, "PERMITS", 1, "WAIT", 0)
        first, second = theirs.ids.split(",")
        ids = f"{first},{member_of(token + 1, 1)}"
        whole = world.version >= LISTS_SINCE
        check(world.jvm.ask("lister", "release", "permits", name, ids) == ("0" if whole else "1"),
              "it released otherwise")
        check(state_of(redis, name) == ((0, 3) if whole else (1, 2)), f"{state_of(redis, name)}")
        check(latchd.ask("RENEW", name, "TOKEN", token) > 0, "the hold is not there")
        for left in [first, second] if whole else [second]:
            check(world.jvm.ask("lister", "release", "permits", name, left) == "1", "not released")
        check(latchd.ask("UNLOCK", name, "TOKEN", token) == 0, "not released")
        check(state_of(redis, name) == (3, 0), f"{state_of(redis, name)}")


def resize(world, redis, waiter, verb, value):
    """Redisson does that while a LOCK waits: how long it took to be served, in ns."""
    waiter.wait()
    asleep(redis, waiter)
    check(waiter.waits(), "too many")
    reply = world.jvm.finish(world.jvm.start("admin", verb, "permits", waiter.name, value))
    check(reply.ok, reply.value)
    return waiter.got() - reply.began


def a_larger_limit_of_redisson_serves_latchd_at_once(world):
    """setPermits() and addPermits(), which publish other numbers than what is free."""
    name, waits, held = "resized", [], []
    with world.redis.connect() as redis:
        held.append(ours(world.latchd.connect(), name, 3, "OF", 3))
        held[0].take()
        for verb, value, limit in (("limit", 5, 5), ("add", 2, 7), ("limit", 9, 9)):
            held.append(ours(world.second.connect(), name, 2))
            waits.append(resize(world, redis, held[-1], verb, value))
            check(state(world, name) == (limit, 0, limit), f"{state(world, name)}")
        for one in held:
            one.leave()
        check(state(world, name) == (9, 9, 0), f"{state(world, name)}")
    told(world, "setPermits() and addPermits() to a LOCK PERMITS", waits)


def a_smaller_limit_of_redisson_takes_nothing_away_and_lets_nobody_in(world):
    """What is free is below 0 until enough have come back."""
    name = "shrunk"
    with world.latchd.connect() as a, world.second.connect() as b:
        first, second = ours(a, name, 2, "OF", 3), ours(b, name, 1)
        first.take()
        second.take()
        world.jvm.ask("admin", "limit", "permits", name, 1)
        check(state(world, name) == (1, -2, 3), f"{state(world, name)}")
        check(ours(world.second.connect(), name).refused(), "too many")
        said = refused(lambda: b.ask("LOCK", name, "PERMITS", 4, "WAIT", 0))
        check(said.startswith("ERR"), said)
        theirs = TheirPermits(world.jvm, "patient", name)
        theirs.wait()
        theirs.parked()
        second.leave()
        check(state(world, name) == (1, -1, 2) and theirs.waits(), f"{state(world, name)}")
        first.leave()
        theirs.got()
        check(state(world, name) == (1, 0, 1), f"{state(world, name)}")
        theirs.leave()
        check(state(world, name) == (1, 1, 0), f"{state(world, name)}")


def a_semaphore_of_latchd_is_not_made_again(world):
    """trySetPermits() changes nothing, whatever is free, and the first limit counts."""
    name = "remade"
    with world.latchd.connect() as latchd:
        for count in (1, LIMIT):
            held = ours(latchd, name, count, "OF", LIMIT)
            held.take()
            check(world.jvm.ask("maker", "make", "permits", name, 9) == "false", "made again")
            check(state(world, name) == (LIMIT, LIMIT - count, count), f"{state(world, name)}")
            held.leave()
        check(world.jvm.ask("maker", "make", "permits", name, 9) == "false", "made again")
        check(state(world, name) == (LIMIT, LIMIT, 0), f"{state(world, name)}")


@kills_a_jvm
def permits_of_a_killed_jvm_come_back_at_latchd(world):
    """2 s after their lease; nobody else asks for the semaphore, and the recheck is far off."""
    with world.redis.connect() as redis:
        pairs = []
        for count in (1, 3):
            name = f"sem-orphan{count}"
            make(world, name, 3)
            holders = [TheirPermits(world.doomed, f"{name}-{i}", name, 3 // count,
                                    world.watchdog_ms) for i in range(count)]
            for holder in holders:
                holder.take()
            waiter = ours(world.latchd.connect(), name, 3)
            waiter.wait()
            asleep(redis, waiter)
            pairs.append((name, waiter))
        world.doom.kill()
        died = time.monotonic_ns()
        ends = [end_of(redis, name) for name, _ in pairs]
        for (name, waiter), end_ms in zip(pairs, ends):
            check(end_ms <= world.watchdog_ms, f"a lease of {end_ms} ms")
            after(world, waiter.got() - died, end_ms + MARGIN_MS,
                  f"latchd after permits of a killed JVM ({name})")
            waiter.leave()
            check(state_of(redis, name) == (3, 0), f"{state_of(redis, name)}")


def permits_of_a_killed_latchd_come_back_at_redisson(world):
    """With the score that they have in Redis, which is 2 s after their lease."""
    with world.redis.connect() as redis, world.start_latchd("sem-husband") as doomed:
        pairs = []
        for how in ([], ["LEASE", world.watchdog_ms], ["ID", "sem-widow-request"]):
            name = f"sem-widow{len(pairs)}"
            holder = ours(doomed.connect(), name, 2, "OF", 2, *how)
            holder.take()
            waiter = TheirPermits(world.jvm, name, name)
            waiter.wait()
            waiter.parked()
            pairs.append((name, waiter))
        doomed.kill()
        died = time.monotonic_ns()
        ends = [end_of(redis, name, 0) for name, _ in pairs]
        for (name, waiter), end_ms in zip(pairs, ends):
            check(MARGIN_MS < end_ms <= world.watchdog_ms + MARGIN_MS, f"an end in {end_ms} ms")
            after(world, waiter.got() - died, end_ms, f"Redisson after a killed latchd ({name})")
            waiter.leave()


def permits_of_a_client_that_closes_with_grace_0_wake_redisson(world):
    """At once; without GRACE with the end of the lease and 2 s."""
    waits = []
    with world.redis.connect() as redis:
        for i in range(world.rounds // 4):
            name, client = f"sem-grace{i}", world.latchd.connect()
            ours(client, name, 2, "OF", 2, "GRACE", 0).take()
            waiter = TheirPermits(world.jvm, "graced", name)
            waiter.wait()
            waiter.parked()
            began = time.monotonic_ns()
            client.close()
            waits.append(waiter.got() - began)
            waiter.leave()
            check(state_of(redis, name) == (2, 0), f"{state_of(redis, name)}")
    told(world, "close with GRACE 0 to an RPermitExpirableSemaphore", waits)


def the_watchdog_keeps_permits_from_redisson_that_waits(world):
    """For three leases; an RPermitExpirableSemaphore has no watchdog, and its permits end."""
    name = "sem-kept"
    with world.quick.connect() as latchd:
        held, waiter = ours(latchd, name, 1, "OF", 1), TheirPermits(world.jvm, name, name)
        held.take()
        waiter.wait()
        end = time.monotonic() + 3 * (world.watchdog_ms + MARGIN_MS) / 1000
        while time.monotonic() < end:
            check(waiter.waits(), "two have it")
            time.sleep(0.02)
        held.leave()
        waiter.got()
        waiter.leave()


def a_lease_of_redisson_that_is_made_longer_is_respected(world):
    """updateLeaseTime(), while a LOCK waits for its end: not before the new one and 2 s."""
    name, lease_ms = "sem-longer", 1500
    with world.redis.connect() as redis, world.latchd.connect() as latchd:
        make(world, name, 1)
        holder = TheirPermits(world.jvm, "longer", name, 1, lease_ms)
        holder.take()
        waiter = ours(latchd, name, 1)
        waiter.wait()
        asleep(redis, waiter)
        began = time.monotonic_ns()
        check(world.jvm.ask("longer", "renew", "permits", name, holder.ids, 2 * lease_ms)
              == "true", "not renewed")
        took = (waiter.got() - began) / 1e6
        due = 2 * lease_ms + MARGIN_MS
        world.say(f"a LOCK after a lease that was made longer: {took:.0f} ms of {due}")
        check(due - EARLY_MS < took < due + SLACK_MS, f"{took:.0f} ms")
        waiter.leave()


CHECKS = [
    permits_of_one_side_count_for_the_other,
    a_release_of_redisson_wakes_a_waiter_for_permits,
    a_release_of_latchd_wakes_a_semaphore_of_redisson,
    never_more_are_inside_than_there_are_permits,
    a_lone_permit_changes_sides,
    what_redisson_releases_of_latchd_is_taken_back_where_one_is_free,
    what_redisson_releases_of_latchd_and_takes_is_lost,
    a_list_of_ids_of_which_one_is_over_releases_nothing,
    a_larger_limit_of_redisson_serves_latchd_at_once,
    a_smaller_limit_of_redisson_takes_nothing_away_and_lets_nobody_in,
    a_semaphore_of_latchd_is_not_made_again,
    permits_of_a_client_that_closes_with_grace_0_wake_redisson,
]

WAITING = [
    permits_of_a_killed_jvm_come_back_at_latchd,
    permits_of_a_killed_latchd_come_back_at_redisson,
    the_watchdog_keeps_permits_from_redisson_that_waits,
    a_lease_of_redisson_that_is_made_longer_is_respected,
]
