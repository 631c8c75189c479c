#!/usr/bin/env python3
"""latchd behind a real Redis Cluster: cluster.py LATCHD. Prints TAP.

Failover and resharding under load, with a checker, are in tests/failover; the Cluster
here is that of there: three masters with a replica each, and two daemons.
"""
import contextlib
import pathlib
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # nothing is written beside the sources
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from lock_scripts import TAKE_SEVERAL
from stand import need, tap
from children import until
from clusters import Cluster
from resp import Error
from servers import Latchd, Rack

REDIS_S = 3  # an answer may take so long, on a busy machine too
DAEMON = ("--redis-timeout", f"{REDIS_S}s", "--watchdog-timeout", "6s", "--recheck", "1h")
MANY = 10_000
MANY_LEASE_MS = 15_000  # a busy machine takes a while for so many
AT_ONCE = 100
HANDOVER_WINDOW_S = 0.02  # more than what may go by between chances of others


def daemon(stage, program, name, url):
    return stage.keep(Latchd(program, stage.folder, name, url, *DAEMON)).ready()


class Cases:
    """All of them with the same servers."""

    def __init__(self, stage, program):
        self.cluster = Cluster(stage)
        self.a = daemon(stage, program, "a", self.cluster.url)
        self.b = daemon(stage, program, "b", self.cluster.url)
        self.sharded = daemon(stage, program, "sharded",
                              self.cluster.url + "?publish=sharded")

    def names(self, what):
        """One on each master."""
        found, number = {}, 0
        while len(found) < len(self.cluster.masters):
            name = f"{what}-{number}"
            found.setdefault(self.cluster.master_of(name), name)
            number += 1
        return found.items()

    def in_bulk(self, wire, verb, names, *more):
        replies = []
        for at in range(0, len(names), AT_ONCE):
            some = names[at:at + AT_ONCE]
            for name in some:
                wire.send(verb, name, *more)
            replies += [wire.reply() for _ in some]
        return replies

    def ten_thousand_names_are_spread_and_renewed(self):
        names = [f"many-{n}" for n in range(MANY)]
        with self.a.wire() as wire:
            wire.ask("CONFIG", "SET", "watchdog-timeout", MANY_LEASE_MS)
            tokens = self.in_bulk(wire, "LOCK", names, "WAIT", 0)
            assert all(tokens), "not all of them were granted"
            shares = [master.ask("DBSIZE") for master in self.cluster.masters]
            assert min(shares) > max(shares) * 0.8, f"keys of each: {shares}"
            before, lost = int(wire.info("renewals")), wire.info("lost")
            until(lambda: int(wire.info("renewals")) >= before + MANY, "all are renewed", 25)
            assert wire.info("lost") == lost, f"{wire.info('lost')} are lost"
            until(lambda: wire.info("uncertain") == "0", "all are certain")
            left = self.in_bulk(wire, "UNLOCK", names)
            assert left == [0] * MANY, "not all of them were there"

    def a_release_wakes_who_waits_at_another_daemon(self):
        for kind in ((), ("FAIR",), ("WRITE",)):
            for (_, name), holder in zip(self.names("wake" + "".join(kind)),
                                         (self.a, self.sharded, self.sharded)):
                with holder.wire() as a, self.b.wire() as b:
                    token = a.ask("LOCK", name, *kind)
                    b.send("LOCK", name, *kind, "WAIT", 15000)
                    until(lambda: self.waits(name), "it waits")
                    time.sleep(0.05)  # any moment will do: it may be subscribed by now
                    assert a.ask("UNLOCK", name) == 0
                    assert b.reply() > token
                    assert b.ask("UNLOCK", name) == 0

    def waits(self, name):
        return self.waiting(self.b, name) == 1

    @staticmethod
    def waiting(latchd, name):
        with latchd.wire() as wire:
            info = wire.ask("LOCKINFO", name)
            return dict(zip(info[::2], info[1::2]))["waiting"]

    def releases_are_told_where_the_place_says(self):
        """On sharded channels always, on plain ones unless they are not wanted."""
        for _, name in self.names("told"):
            for kind, prefix in (((), "redisson_lock__channel"), (("FAIR",),
                                 "redisson_lock__channel"), (("WRITE",), "redisson_rwlock")):
                channel = prefix + ":{%s}" % name
                for holder, plain in ((self.a, True), (self.sharded, False)):
                    heard = self.heard(holder, name, kind, channel)
                    assert heard == {"SSUBSCRIBE": True, "SUBSCRIBE": plain}, heard

    def heard(self, holder, name, kind, channel):
        """Whether a release was, before what is published next."""
        master = self.cluster.master_of(name)
        with holder.wire() as wire, contextlib.ExitStack() as stack:
            ears = {verb: stack.enter_context(master.wire())
                    for verb in ("SSUBSCRIBE", "SUBSCRIBE")}
            for verb, ear in ears.items():
                ear.ask(verb, channel)
            assert wire.ask("LOCK", name, *kind) > 0
            assert wire.ask("UNLOCK", name) == 0
            master.ask("SPUBLISH", channel, "next")
            master.ask("PUBLISH", channel, "next")
            return {verb: ear.reply()[2] != "next" for verb, ear in ears.items()}

    def foreign_messages_of_both_sorts_wake(self):
        """A plain one that comes through any node; a sharded one."""
        for master, name in self.names("message"):
            others = [n for n in self.cluster.nodes if n is not master]
            for verb, node in (("PUBLISH", others[0]), ("SPUBLISH", master)):
                with self.b.wire() as b:
                    master.ask("HSET", name, "somebody", 1)
                    master.ask("PEXPIRE", name, 60000)
                    b.send("LOCK", name, "WAIT", 15000)
                    until(lambda: self.waits(name), "it waits")
                    until(lambda: self.hears(master, name), "it listens")
                    master.ask("DEL", name)
                    node.ask(verb, "redisson_lock__channel:{%s}" % name, "0")
                    assert b.reply() > 0
                    b.ask("UNLOCK", name)

    def others_who_listen_in_either_way_get_their_chance(self):
        """The second release in a row, some time after the first, is told to them."""
        for (_, name), verb in zip(self.names("chance"), ("SUBSCRIBE", "SSUBSCRIBE")):
            with contextlib.ExitStack() as stack:
                first, second, third = [stack.enter_context(self.a.wire()) for _ in range(3)]
                listener = stack.enter_context(self.cluster.master_of(name).wire())
                assert first.ask("LOCK", name) > 0
                for wire in (second, third):
                    wire.send("LOCK", name, "WAIT", 15000)
                until(lambda: self.waiting(self.a, name) == 2, "both wait")
                listener.ask(verb, "redisson_lock__channel:{%s}" % name)
                assert first.ask("UNLOCK", name) == 0
                assert second.reply() > 0
                time.sleep(HANDOVER_WINDOW_S)
                assert second.ask("UNLOCK", name) == 0
                assert listener.reply()[2] == "0"
                assert third.reply() > 0
                assert third.ask("UNLOCK", name) == 0

    def sharded_messages_to_members_of_fair_queues_wake(self):
        """Redisson's, as it wakes the head; also where the slot has gone, or the link."""
        for (master, name), fault in zip(self.names("member"), ("none", "loss", "move")):
            with self.b.wire() as b:
                master.ask("HSET", name, "somebody", 1)
                master.ask("PEXPIRE", name, 60000)
                b.send("LOCK", name, "FAIR", "WAIT", 15000)
                queue = "redisson_lock_queue:{%s}" % name
                until(lambda: master.ask("LLEN", queue) == 1, "it stands in the queue")
                member = master.ask("LINDEX", queue, 0)
                channel = "redisson_lock__channel:{%s}:%s" % (name, member)
                self.listened(master, channel)
                if fault == "loss":
                    master.ask("CLIENT", "KILL", "TYPE", "PUBSUB")
                if fault == "move":
                    old, master = master, next(m for m in self.cluster.masters
                                               if m is not master)
                    self.cluster.move(self.cluster.slot(name), master)
                    until(lambda: not self.is_listened(old, channel), "the old one is left")
                self.listened(master, channel)
                time.sleep(0.3)  # what follows a subscription is over
                master.ask("DEL", name)
                assert master.ask("SPUBLISH", channel, "0") > 0
                assert b.reply() > 0
                b.ask("UNLOCK", name)
                until(lambda: not self.is_listened(master, channel), "none is left over")

    def listened(self, master, channel):
        until(lambda: self.is_listened(master, channel), "the member is listened to")

    @staticmethod
    def is_listened(master, channel):
        return master.ask("PUBSUB", "SHARDNUMSUB", channel)[1] > 0

    @staticmethod
    def hears(master, name):
        channel = "redisson_lock__channel:{%s}" % name
        return (master.ask("PUBSUB", "SHARDNUMSUB", channel)[1] > 0 and
                master.ask("PUBSUB", "NUMSUB", channel)[1] > 0)

    def mlock_takes_names_of_all_masters_or_none(self):
        names = [f"all-{n}" for n in range(12)]
        with self.a.wire() as a, self.b.wire() as b:
            assert b.ask("LOCK", "all-7") > 0
            assert a.ask("MLOCK", len(names), *names, "WAIT", 0) is None
            for name in names:
                if name != "all-7":
                    assert b.ask("LOCK", name, "WAIT", 3000) > 0, f"{name} was not given back"
                    b.ask("UNLOCK", name)
            a.send("MLOCK", len(names), *names, "WAIT", 15000)
            until(lambda: self.held(names[0]), "it has the first")
            assert b.ask("UNLOCK", "all-7") == 0
            tokens = a.reply()
            assert tokens is not None and all(tokens)
            assert [a.ask("UNLOCK", name) for name in names] == [0] * len(names)

    def keys_of_a_lock_library_are_of_one_slot(self):
        """Nobody else is kept from one of them by who cannot have all."""
        with self.a.wire() as a, self.b.wire() as b:
            try:
                raise AssertionError(a.ask("EVAL", TAKE_SEVERAL, 2, "one", "two", "v", 5000))
            except Error as why:
                assert str(why).startswith("CROSSSLOT"), why
            assert a.ask("EXISTS", "one", "two") == 0
            assert a.ask("EVAL", TAKE_SEVERAL, 2, "{k}1", "{k}2", "v", 5000) == 2
            assert b.ask("EVAL", TAKE_SEVERAL, 2, "{k}0", "{k}2", "w", 5000) == 0
            assert b.ask("EXISTS", "{k}0", "{k}1", "{k}2") == 2
            assert b.ask("DEL", "{k}1", "{k}2") == 2

    def held(self, name):
        with self.a.wire() as wire:
            info = wire.ask("LOCKINFO", name)
            return dict(zip(info[::2], info[1::2]))["state"] == "held"

    def nothing_is_written_while_a_slot_is_half_moved(self):
        tag = "{half}"
        slot = self.cluster.slot(tag)
        source = self.cluster.master_of(tag)
        target = next(m for m in self.cluster.masters if m is not source)
        with self.a.wire() as a, self.b.wire() as b, self.a.wire() as once:
            token = a.ask("LOCK", f"{tag}1", "ID", "0123456789abcdef")
            target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id())
            source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id())
            source.ask("MIGRATE", "127.0.0.1", target.port, f"latchd:fence:{tag}1", 0, 5000)
            before = self.keys(source, slot), self.keys(target, slot)
            assert all(before), f"not half moved: {before}"
            a.send("UNLOCK", f"{tag}1", "ID", "0123456789abcdef")
            b.send("LOCK", f"{tag}1", "WAIT", 15000)
            begun = time.monotonic()
            try:
                raise AssertionError(once.ask("LOCK", f"{tag}2", "WAIT", 0))
            except Error as why:
                assert str(why).startswith("BACKEND"), why
            assert time.monotonic() - begun > REDIS_S - 0.1
            assert (self.keys(source, slot), self.keys(target, slot)) == before
            self.cluster.move(slot, target)
            assert b.reply() > token
            try:
                a.reply()
            except Error as why:
                assert str(why).startswith("BACKEND"), why
            assert a.ask("UNLOCK", f"{tag}1", "ID", "0123456789abcdef") == 0
            assert b.ask("UNLOCK", f"{tag}1") == 0

    def a_map_that_is_out_of_date_costs_no_error(self):
        """Who is asked although the slot has gone says so, and the map is asked for."""
        with self.a.wire() as wire:
            for (old, name), wait in zip(self.names("stale"), (0, 0, 5000)):
                new = next(m for m in self.cluster.masters if m is not old)
                for _ in range(20):  # the map is looked at once a second anyway
                    before = self.refused(old)
                    self.cluster.move(self.cluster.slot(name), new)
                    assert wire.ask("LOCK", name, "WAIT", wait) > 0
                    assert wire.ask("UNLOCK", name) == 0
                    if self.refused(old) > before:
                        break
                    old, new = new, old
                else:
                    raise AssertionError("never asked where it was not any more")

    @staticmethod
    def refused(node):
        """How often it said MOVED."""
        return int((node.info("errorstat_MOVED") or "count=0").removeprefix("count="))

    @staticmethod
    def keys(node, slot):
        return sorted(node.ask("CLUSTER", "GETKEYSINSLOT", slot, 100))

    def braces_that_are_no_tag_are_refused(self):
        with self.a.wire() as wire:
            for name in ("a{b", "{}", "{a}{b}", "}"):
                try:
                    raise AssertionError(wire.ask("LOCK", name, "WAIT", 0))
                except Error as why:
                    assert "Redis Cluster" in str(why), why

    def what_was_not_passed_on_is_withheld(self):
        """The old master lives on, and follows: but it had to forget."""
        tag = "{lossy}"
        old = self.cluster.master_of(tag)
        heir = self.cluster.replica_of[old]
        heir.ask("CONFIG", "SET", "masteruser", "nobody", "masterauth", "wrong")
        old.ask("CLIENT", "KILL", "TYPE", "REPLICA")
        until(lambda: heir.info("master_link_status") == "down", "it follows no more")
        with self.a.wire() as a, self.b.wire() as b:
            assert a.ask("LOCK", f"{tag}1", "LEASE", 10_000) > 0
            b.ask("CONFIG", "SET", "failover-quarantine", "60s")  # longer than what follows
            heir.ask("CLUSTER", "FAILOVER", "TAKEOVER")
            self.cluster.settled(self.cluster.slot(tag), heir)
            until(lambda: old.info("master_link_status") == "up", "the old one follows")
            gone = f"127.0.0.1:{old.port} has no slots any more"  # when that is settled
            until(lambda: gone in self.b.said(), "it is looked at no more")
            try:
                raise AssertionError(b.ask("LOCK", f"{tag}2", "WAIT", 0))
            except Error as why:
                assert "may have lost" in str(why), why
        assert "lost nothing" not in self.b.said()

    def each_master_is_told_of(self):
        with self.a.wire() as wire:
            assert wire.info("redis_kind") == "cluster"
            nodes = {wire.info(f"redis_node{i}").split(",")[0] for i in range(3)}
            want = {f"address=127.0.0.1:{m.port}" for m in self.cluster.masters}
            assert nodes == want, nodes
            assert wire.info("redis_node3") is None


CASES = (
    "a_release_wakes_who_waits_at_another_daemon",
    "releases_are_told_where_the_place_says",
    "foreign_messages_of_both_sorts_wake",
    "others_who_listen_in_either_way_get_their_chance",
    "sharded_messages_to_members_of_fair_queues_wake",
    "mlock_takes_names_of_all_masters_or_none",
    "keys_of_a_lock_library_are_of_one_slot",
    "nothing_is_written_while_a_slot_is_half_moved",
    "a_map_that_is_out_of_date_costs_no_error",
    "braces_that_are_no_tag_are_refused",
    "each_master_is_told_of",
    "ten_thousand_names_are_spread_and_renewed",
    "what_was_not_passed_on_is_withheld",  # the last one: there are other masters then
)


def main():
    need("redis-server")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="latchd-cluster-") as folder:
        with Rack(folder) as stage:
            cases = Cases(stage, sys.argv[1])
            wanted = sys.argv[2:] or CASES
            failed = tap([(name, getattr(cases, name)) for name in wanted])
    sys.exit(1 if failed else 0)


main()
