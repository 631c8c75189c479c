#!/usr/bin/env python3
"""Lock libraries made for Redis, on latchd's port: lock_libraries.py LATCHD.

redis-py's own Lock as it is, beside LOCK on the same names, and the commands that other
libraries send. Prints TAP.
"""
import contextlib
import functools
import pathlib
import signal
import subprocess
import sys
import textwrap
import uuid

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from children import die_with_parent, until
from library import redis
from lock_scripts import TAKE_SEVERAL
from stand import Stand, tap

from redis.exceptions import LockNotOwnedError, NoScriptError, ResponseError

MULTI_RELEASE = """
local count = 0
for i, key in ipairs(KEYS) do
  if redis.call("get", key) == ARGV[1] then
    redis.pcall("del", key)
    count = count + 1
  end
end
return count
"""


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r}, and not {wanted!r}")


def raises(error, function, text=""):
    try:
        got = function()
    except error as raised:
        if text not in str(raised):
            raise AssertionError(f"{raised!r} lacks {text!r}") from raised
        return
    raise AssertionError(f"no {error.__name__}, but {got!r}")


def client(stand, **more):
    return redis.Redis(port=stand.port, **more)


def take(r, name):
    return r.execute_command("LOCK", name, "WAIT", 0, "LEASE", 60000)


def with_lock_excludes_lock_and_the_other_way_round(stand):
    r = client(stand)
    with r.lock("job", timeout=10) as lock:
        equal(lock.locked() and lock.owned(), True)
        equal(r.get("job"), lock.local.token)
        equal(take(r, "job"), None)
        equal(r.lock("job", timeout=10, blocking=False).acquire(), False)
    equal(r.get("job"), None)
    token = take(r, "job")
    other = r.lock("job", timeout=10, blocking=False)
    equal(other.acquire(), False)
    equal(other.locked(), True)
    equal(r.get("job"), b"latchd:held:%d" % token)
    equal(r.delete("job"), 0)
    r.execute_command("UNLOCK", "job", "TOKEN", token)
    equal(other.acquire(), True)
    other.release()


def a_script_answers_several_things_at_once(stand):
    r = client(stand)
    ask = r.register_script("return { redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1]) }")
    equal(ask(keys=["job"]), [None, -2])
    lock = r.lock("job", timeout=20)
    lock.acquire()
    value, left_ms = ask(keys=["job"])
    equal((value, 15000 < left_ms <= 20000), (lock.local.token, True))
    lock.release()
    token = take(r, "job")
    value, left_ms = ask(keys=["job"])
    equal((value, 15000 < left_ms <= 60000), (b"latchd:held:%d" % token, True))
    r.execute_command("UNLOCK", "job", "TOKEN", token)


def extend_sets_adds_and_shortens(stand):
    r = client(stand)
    lock = r.lock("job", timeout=20)
    lock.acquire()
    lock.extend(30)
    equal(45000 < r.pttl("job") <= 50000, True)
    lock.extend(5, replace_ttl=True)
    equal(0 < r.pttl("job") <= 5000, True)
    lock.reacquire()
    equal(15000 < r.pttl("job") <= 20000, True)
    lock.release()
    raises(LockNotOwnedError, lambda: setattr(lock.local, "token", b"x") or lock.release())


def a_lock_without_an_end_is_renewed_after_its_connection_has_closed(stand):
    r = client(stand)
    straight = redis.Redis(unix_socket_path=str(stand.redis_socket))
    watchdog = r.config_get("watchdog-timeout")["watchdog-timeout"]
    r.config_set("watchdog-timeout", "1s")
    try:
        taker = client(stand)
        lock = taker.lock("job")
        lock.acquire()
        taker.connection_pool.disconnect()
        equal((r.pttl("job"), r.ttl("job")), (-1, -1))
        straight.pexpire("job", 30000)
        until(lambda: straight.pttl("job") > 86000000, "it was renewed")
        equal(take(r, "job"), None)
        equal(r.pexpire("job", 40000), 1)
        equal(0 < r.pttl("job") <= 40000, True)
        equal(r.set("job", lock.local.token, xx=True), True)
        equal(r.pttl("job"), -1)
        lock.release()
        equal((r.setnx("job", "v"), r.pttl("job"), r.delete("job")), (True, -1, 1))
    finally:
        r.config_set("watchdog-timeout", watchdog)


def added_time_is_no_way_around_max_lease(stand):
    r = client(stand)
    day = r.config_get("max-lease")["max-lease"]
    r.config_set("max-lease", "60s")
    try:
        lock = r.lock("job", timeout=40)
        lock.acquire()
        raises(ResponseError, lambda: lock.extend(30), "at most 60000 ms")
        equal(30000 < r.pttl("job") <= 40000, True)
        lock.extend(10)
        lock.release()
    finally:
        r.config_set("max-lease", day)


def another_value_neither_releases_nor_extends(stand):
    r = client(stand)
    lock = r.lock("job", timeout=20)
    lock.acquire()
    thief = r.lock("job", timeout=20)
    thief.local.token = b"another"
    raises(LockNotOwnedError, thief.release)  # and it forgets its value
    thief.local.token = b"another"
    raises(LockNotOwnedError, lambda: thief.extend(50, replace_ttl=True))
    equal(lock.owned(), True)
    lock.release()


def a_killed_holder_is_waited_for_until_its_lease_ends(stand):
    r = client(stand)
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(f"""
            import redis, sys
            redis.Redis(port={stand.port}).lock("killed", timeout=1).acquire()
            print("held", flush=True)
            sys.stdin.read()""")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent)
    equal(holder.stdout.readline(), b"held\n")
    lock = r.lock("killed", timeout=10, blocking_timeout=60)
    equal(r.lock("killed", timeout=10, blocking=False).acquire(), False)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    equal(lock.acquire(), True)
    lock.release()


def a_hold_outlives_a_redis_that_lost_everything(stand):
    r = client(stand)
    lock = r.lock("kept", timeout=600)
    lock.acquire()
    stand.redis.kill()
    stand.redis.wait()
    stand.start_redis()

    def is_back():
        try:
            return lock.owned()
        except ResponseError:
            return False

    until(is_back, "the hold is put back")
    lock.release()
    equal(r.exists("kept"), 0)


def several_keys_are_taken_all_or_none(stand):
    r = client(stand)
    equal(r.eval(TAKE_SEVERAL, 3, "a", "b", "a", "v", 9000), 3)
    equal(r.eval(TAKE_SEVERAL, 2, "c", "b", "w", 9000), 0)
    equal(r.exists("a", "b", "c"), 2)
    equal(r.eval(MULTI_RELEASE, 3, "a", "b", "c", "v"), 2)
    equal(r.exists("a", "b", "c"), 0)


def who_cannot_have_all_keys_takes_none_for_a_moment(stand):
    """No token was ever given for the first one."""
    r = client(stand)
    straight = redis.Redis(unix_socket_path=str(stand.redis_socket))
    r.set("held", "v", nx=True, px=60000)
    straight.hset("redissons", "uuid:1", 1)
    straight.pexpire("redissons", 60000)
    for held in ("held", "redissons"):
        equal(r.eval(TAKE_SEVERAL, 3, "a-free", held, "z-free", "w", 9000), 0)
        equal(straight.exists("a-free", "latchd:fence:{a-free}", "latchd:fence:{z-free}"), 0)
    straight.delete("redissons")
    r.delete("held")


def any_bytes_are_a_value(stand):
    r = client(stand)
    release = r.register_script(redis.lock.Lock.LUA_RELEASE_SCRIPT)
    for value in (bytes(range(256)), b"", b"y:write", b"*", b"% :", b"v" * 512):
        equal(r.set("job", value, nx=True, px=9000), True)
        equal(r.get("job"), value)
        equal(r.set("job", value, nx=True, px=9000), None)
        equal(r.execute_command("RENEW", "job", "VALUE", value, "LEASE", 9000) > 0, True)
        equal(release(["job"], [b"x" + value[1:] if value else b"x"]), 0)
        equal(release(["job"], [value]), 1)


def scripts_that_are_no_locks_are_refused(stand):
    r = client(stand)
    raises(ResponseError, lambda: r.eval("return redis.call('hset', KEYS[1], 'a', 1)", 1, "x"),
           "line 1")
    raises(NoScriptError, lambda: r.evalsha("0" * 40, 1, "x"))
    raises(ResponseError, lambda: r.eval(MULTI_RELEASE, 3, "x"), "Number of keys")
    raises(ResponseError, lambda: r.eval(MULTI_RELEASE, -1, "x"), "Number of keys")
    sha = r.script_load(TAKE_SEVERAL + " ")
    equal(r.script_exists(sha, "0" * 40), [True, False])
    equal(r.script_flush(), True)


def a_transaction_takes_and_deletes(stand):
    r = client(stand)
    pipe = r.pipeline(transaction=True)
    pipe.set("job", "v", nx=True, px=5000).get("job").delete("job").exists("job")
    equal(pipe.execute(), [True, b"v", 1, 0])


def a_transaction_takes_and_releases_by_a_script_or_with_others(stand):
    r = client(stand)
    pipe = r.pipeline(transaction=True)
    pipe.set("job", "v", nx=True, px=5000).eval(MULTI_RELEASE, 2, "other", "job", "v")
    pipe.set("job", "v", nx=True, px=5000).delete("other", "job")
    pipe.eval(TAKE_SEVERAL, 1, "job", "v", 5000).delete("job")
    equal(pipe.execute(), [True, 1, True, 1, 1, 1])


def commands_in_a_pipeline_are_answered_in_order(stand):
    r = client(stand)
    pipe = r.pipeline(transaction=False)
    for name in ("p1", "p2", "p1"):
        pipe.set(name, "v", nx=True, px=5000)
    pipe.pttl("p3").delete("p1", "p2")
    equal(pipe.execute(), [True, True, None, -2, 2])


def what_names_no_value_acts_on_locks_of_the_same_user(stand):
    r = client(stand)
    r.acl_setuser("joe", enabled=True, passwords=["+x"], categories=["+@all", "-@dangerous"],
                  keys=["*"])
    joe = client(stand, username="joe", password="x")
    r.set("job", "v", nx=True, px=60000)
    raises(ResponseError, lambda: joe.delete("job"), "another user")
    raises(ResponseError, lambda: joe.set("job", "w", xx=True, px=5), "another user")
    raises(ResponseError, lambda: joe.register_script(
        redis.lock.Lock.LUA_RELEASE_SCRIPT)(["job"], ["v"]), "another user")
    joe.set("joes", "v", nx=True, px=60000)
    equal(client(stand).delete("job", "joes"), 2)  # an operator


def the_fencing_token_is_for_who_names_the_value(stand):
    r = client(stand)

    def renew(who, value):
        return who.execute_command("RENEW", "job", "VALUE", value, "LEASE", 30000)

    with r.lock("job", timeout=10) as lock:
        token = renew(r, lock.local.token)
        equal(10000 < r.pttl("job") <= 30000, True)
        equal(r.execute_command("RENEW", "job", "TOKEN", token, "LEASE", 40000) > 30000, True)
        raises(ResponseError, lambda: renew(r, "another"), "NOTHELD")
        raises(ResponseError, lambda: renew(r, ""), "NOTHELD")
        raises(ResponseError, lambda: renew(r, "v" * 513), "VALUE must be 0..512 bytes")
    with r.lock("job", timeout=10) as lock:
        equal(renew(r, lock.local.token) > token, True)
    r.set("job", bytes(range(256)), nx=True, px=60000)
    equal(renew(r, bytes(range(256))) > token, True)
    r.delete("job")


def libraries_can_be_turned_off(stand):
    r = client(stand)
    r.config_set("lock-libraries", "no")
    raises(ResponseError, lambda: r.set("job", "v", nx=True), "keeps locks, not data")
    raises(ResponseError, lambda: r.eval(TAKE_SEVERAL, 1, "a", "v", 5), "keeps locks, not data")
    equal(r.get("job"), None)
    equal(r.exists("job"), 0)
    r.config_set("lock-libraries", "yes")


class Poller:
    """A connection of its own, whose last SET may have no answer yet."""

    def __init__(self, stand):
        self.connection = redis.Connection(port=stand.port)
        self.connection.connect()
        self.value = uuid.uuid4().hex.encode()  # nobody has asked with it before

    def asks(self):
        self.connection.send_command("SET", "job", self.value, "NX", "PX", 3600000)
        return self

    def hears(self):
        return self.connection.read_response()


@contextlib.contextmanager
def parked(stand, count=1, ms=60000):
    """Pollers that wait in the queue, in this order."""
    r = client(stand)
    default = r.config_get("library-park")["library-park"]
    r.config_set("library-park", ms)
    holder = r.lock("job", timeout=600)
    holder.acquire()
    pollers = [Poller(stand) for _ in range(count)]
    try:
        for i, poller in enumerate(pollers):
            equal(poller.asks().hears(), None)
            poller.asks()
            if ms > 1000:
                until(lambda i=i: len(r.execute_command("WAITERS", "job")) == i + 1,
                      "it waits")
        yield holder, pollers
    finally:
        for poller in pollers:
            poller.connection.disconnect()
        until(lambda: r.delete("job") or r.exists("job") == 0, "it is free")
        r.config_set("library-park", default)


def who_polls_waits_in_the_queue_and_is_answered_at_the_release(stand):
    with parked(stand, 2) as (holder, (first, second)):
        holder.release()
        equal(first.hears(), b"OK")
        equal(client(stand).get("job"), first.value)
        client(stand).delete("job")
        equal(second.hears(), b"OK")


def who_asks_once_never_waits(stand):
    with parked(stand):
        for _ in range(3):
            equal(client(stand).lock("job", timeout=600, blocking=False).acquire(), False)


def a_wait_ends_by_itself(stand):
    with parked(stand, ms=20) as (_, (poller,)):
        equal(poller.hears(), None)


def the_next_command_ends_a_wait(stand):
    with parked(stand) as (_, (poller,)):
        poller.connection.send_command("PING")
        equal(poller.hears(), None)
        equal(poller.hears(), b"PONG")


def who_leaves_while_it_waits_holds_nobody_up(stand):
    with parked(stand, 2) as (holder, (first, second)):
        first.connection.disconnect()
        holder.release()
        equal(second.hears(), b"OK")


def a_wait_is_refused_when_latchd_stops(stand):
    with parked(stand) as (_, (poller,)):
        stand.daemon.send_signal(signal.SIGTERM)
        raises(ResponseError, poller.hears, "GOAWAY")
        equal(stand.daemon.wait(), 0)
        stand.start_daemon()


def a_known_script_is_there_after_a_restart_and_so_is_the_lock(stand):
    lock = client(stand).lock("job", timeout=600)
    lock.acquire()
    stand.daemon.kill()
    stand.daemon.wait()
    stand.start_daemon()
    equal(client(stand).script_exists(lock.lua_release.sha), [True])
    lock.redis = client(stand)
    lock.release()
    equal(client(stand).exists("job"), 0)


CASES = [
    with_lock_excludes_lock_and_the_other_way_round,
    a_script_answers_several_things_at_once,
    extend_sets_adds_and_shortens,
    a_lock_without_an_end_is_renewed_after_its_connection_has_closed,
    added_time_is_no_way_around_max_lease,
    another_value_neither_releases_nor_extends,
    a_killed_holder_is_waited_for_until_its_lease_ends,
    a_hold_outlives_a_redis_that_lost_everything,
    several_keys_are_taken_all_or_none,
    who_cannot_have_all_keys_takes_none_for_a_moment,
    any_bytes_are_a_value,
    scripts_that_are_no_locks_are_refused,
    a_transaction_takes_and_deletes,
    a_transaction_takes_and_releases_by_a_script_or_with_others,
    commands_in_a_pipeline_are_answered_in_order,
    what_names_no_value_acts_on_locks_of_the_same_user,
    the_fencing_token_is_for_who_names_the_value,
    who_polls_waits_in_the_queue_and_is_answered_at_the_release,
    who_asks_once_never_waits,
    a_wait_ends_by_itself,
    the_next_command_ends_a_wait,
    who_leaves_while_it_waits_holds_nobody_up,
    a_wait_is_refused_when_latchd_stops,
    libraries_can_be_turned_off,
    a_known_script_is_there_after_a_restart_and_so_is_the_lock,
]


def main():
    with Stand(sys.argv[1], level="error") as stand:
        failed = tap([(case.__name__, functools.partial(case, stand)) for case in CASES])
    sys.exit(1 if failed else 0)


main()
