#!/usr/bin/env python3
"""Whose locks a lock library's commands act on: library_users.py LATCHD. Prints TAP.

What names no value acts on what the same user took, from whatever address, and never tells another
user's lock as a free one.
"""
import contextlib
import functools
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from resp import Error, Wire
from stand import Stand, tap

HOME, AWAY = "127.0.0.1", "127.0.0.2"
RELEASE = ('if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) '
           'else return 0 end')
# What would change or end somebody's lock without knowing its value; as it is refused.
BLIND = [("DEL", "job"), ("UNLINK", "job"), ("EXPIRE", "job", 5), ("PEXPIRE", "job", 5000),
         ("EXPIREAT", "job", 1), ("PEXPIREAT", "job", 1), ("PEXPIRE", "job", 0)]

BLIND_SCRIPTS = [("EVAL", "return redis.call('del', KEYS[1])", 1, "job"),
                 ("EVAL", "redis.call('pexpire', KEYS[1], 5) return 1", 1, "job")]


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r}, and not {wanted!r}")


def refused(link, word, *command):
    try:
        raise AssertionError(f"{link.ask(*command)!r}, and not {word}")
    except Error as error:
        equal(str(error).split()[0], word)


@contextlib.contextmanager
def login(stand, user, source=HOME):
    with Wire(stand.port, source=source) as link:
        if user is not None:
            equal(link.ask("AUTH", user, "x"), "OK")
        yield link


def make_users(stand):
    with login(stand, None) as link:
        for user in ("ann", "bob"):
            equal(link.ask("ACL", "SETUSER", user, "on", ">x", "~*", "+@lock", "+@connection", "+@transaction",
                           "-@admin"), "OK")
        equal(link.ask("ACL", "SETUSER", "guest", "on", ">x", "~*", "+@all", "-@lock"), "OK")


def take(link):
    equal(link.ask("SET", "job", "v", "NX", "PX", 60000), "OK")


def who_took_it_needs_no_value(stand):
    with login(stand, "ann") as ann, login(stand, "ann") as again:
        for command in BLIND:
            take(ann)
            equal(again.ask(*command), 1)
            again.ask("DEL", "job")
        take(ann)
        equal(again.ask("SET", "job", "w", "XX", "PX", 5000), "OK")
        equal(again.ask("GET", "job"), "v")
        equal(0 < ann.ask("PTTL", "job") <= 5000, True)
        equal(ann.ask("DEL", "none", "job"), 1)


def the_same_user_needs_no_value_elsewhere_either(stand):
    """Laravel's ShouldBeUnique: the web server takes the lock, and the worker on another host frees it."""
    with login(stand, "ann") as ann, login(stand, "ann", AWAY) as away:
        for command in BLIND:
            take(ann)
            equal(away.ask(*command), 1)
            ann.ask("DEL", "job")
        take(ann)
        equal(away.ask("SET", "job", "w", "XX", "PX", 5000), "OK")
        equal(0 < ann.ask("PTTL", "job") <= 5000, True)
        equal(away.ask("DEL", "job"), 1)


def another_user_is_refused_and_told_so(stand):
    with login(stand, "ann") as ann:
        take(ann)
        for source in (HOME, AWAY):
            with login(stand, "bob", source) as link:
                for command in (*BLIND, *BLIND_SCRIPTS, ("DEL", "none", "job"), ("DEL", "job", "none"),
                                ("SET", "job", "w", "XX", "PX", 5)):
                    refused(link, "NOPERM", *command)
                equal(link.ask("DEL", "none"), 0)
                equal(link.ask("GET", "job"), "v")
                equal(link.ask("SET", "bobs", "v", "NX", "PX", 60000), "OK")
                equal(link.ask("DEL", "job", "bobs"), 1)
        equal(ann.ask("PTTL", "job") > 50000, True)
        equal(ann.ask("DEL", "job"), 1)


def so_it_is_after_a_restart_and_within_a_transaction(stand):
    with login(stand, "ann") as ann:
        take(ann)
    stand.daemon.kill()
    stand.daemon.wait()
    stand.start_daemon()
    make_users(stand)
    with login(stand, "bob") as bob, login(stand, "ann", AWAY) as ann:
        refused(bob, "NOPERM", "DEL", "job")
        for command in (("MULTI",), ("DEL", "job"), ("EXISTS", "job")):
            bob.ask(*command)
        said = bob.ask("EXEC")
        equal((str(said[0]).split()[0], said[1]), ("NOPERM", 1))
        equal(ann.ask("DEL", "job"), 1)


def who_names_the_value_may_be_elsewhere_but_no_other_user(stand):
    with login(stand, "ann") as ann, login(stand, "ann", AWAY) as away, \
            login(stand, "bob") as bob:
        take(ann)
        refused(bob, "NOPERM", "EVAL", RELEASE, 1, "job", "v")
        refused(bob, "NOPERM", "RENEW", "job", "VALUE", "v")
        equal(away.ask("EVAL", RELEASE, 1, "job", "w"), 0)
        equal(away.ask("EVAL", RELEASE, 1, "job", "v"), 1)


def operators_act_on_any(stand):
    with login(stand, "ann") as ann, login(stand, None, AWAY) as admin:
        for command in BLIND:
            take(ann)
            equal(admin.ask(*command), 1)
            admin.ask("DEL", "job")


def what_lock_holds_is_nobodys_here(stand):
    with login(stand, "ann") as ann, login(stand, None) as admin:
        token = ann.ask("LOCK", "job", "WAIT", 0)
        for link in (ann, admin):
            for command in BLIND:
                equal(link.ask(*command), 0)
            for command in BLIND_SCRIPTS:
                refused(link, "ERR", *command)
        equal(ann.ask("UNLOCK", "job", "TOKEN", token), 0)


def scripts_belong_to_the_category_of_locks(stand):
    with login(stand, "ann") as ann, login(stand, "guest") as guest:
        sha = ann.ask("SCRIPT", "LOAD", RELEASE + " ")
        equal(ann.ask("SCRIPT", "EXISTS", sha), [1])
        take(ann)
        equal(ann.ask("EVALSHA", sha, 1, "job", "v"), 1)
        equal(ann.ask("SCRIPT", "FLUSH"), "OK")
        equal(ann.ask("SCRIPT", "EXISTS", sha), [0])
        for command in (("SCRIPT", "LOAD", RELEASE), ("SCRIPT", "EXISTS", sha),
                        ("SCRIPT", "FLUSH"), ("EVAL", RELEASE, 1, "job", "v"),
                        ("SET", "job", "v", "NX")):
            refused(guest, "NOPERM", *command)


CASES = [
    who_took_it_needs_no_value,
    the_same_user_needs_no_value_elsewhere_either,
    another_user_is_refused_and_told_so,
    so_it_is_after_a_restart_and_within_a_transaction,
    who_names_the_value_may_be_elsewhere_but_no_other_user,
    operators_act_on_any,
    what_lock_holds_is_nobodys_here,
    scripts_belong_to_the_category_of_locks,
]


def main():
    with Stand(sys.argv[1], level="error") as stand:
        make_users(stand)
        failed = tap([(case.__name__, functools.partial(case, stand)) for case in CASES])
    sys.exit(1 if failed else 0)


main()
