"""Floods: very many connections, waiters, names and subscriptions; clients that are slow,
that do not read, and that send for ever."""
import socket
import tempfile
import time

from children import until
from floods import (HARD, MIB, SECONDS, Peer, attack, close_all, encode, hear, many, rage)
from resp import Error, Wire
from stand import Certs


# Connections.

def connections_beyond_the_limit_are_told_and_closed(program):
    limit = many(100, 10000)
    count = many(300, 15000)

    @attack(program, "--maxclients", str(limit), more_mib=16 + count * 4 // 1024)
    def _(target):
        peers = []
        for _ in range(count):
            peers.append(Peer(target.port))
        told = b"-ERR max number of clients reached\r\n"
        rage(peers, 60, lambda: sum(p.over for p in peers) >= count - limit + 2)
        refused = [p for p in peers if p.over]
        assert len(refused) == count - limit + 2, len(refused)  # the admin, the one beside
        assert all(p.last == told for p in refused)
        assert target.clients() == limit
        close_all(peers)


def connections_that_come_and_go_are_only_work(program):
    @attack(program)
    def _(target):
        end = time.monotonic() + SECONDS
        count = 0
        while time.monotonic() < end:
            for _ in range(100):
                with socket.socket() as s:
                    s.connect(("127.0.0.1", target.port))
            count += 100
        print(f"# {count} connections")


def a_byte_now_and_then_costs_a_connection_each(program):
    count = many(200, 8000)

    @attack(program, more_mib=16 + count * 4 // 1024)
    def _(target):
        text = encode("LOCK", "slow", "WAIT", 0)[:-1]
        peers = [Peer(target.port) for _ in range(count)]
        end = time.monotonic() + SECONDS
        for at in range(len(text)):
            for peer in peers:
                assert peer.send(text[at:at + 1]) == 1
            time.sleep(SECONDS / len(text))
            if time.monotonic() > end:
                break
        until(lambda: target.clients() == count + 2, "all have come in")
        close_all(peers)


def half_a_handshake_ends(program):
    """It has ten seconds; there the deadlines are tested, here what many of them cost."""
    count = many(100, 5000)
    with tempfile.TemporaryDirectory() as folder:
        @attack(program, more_mib=16 + count * 40 // 1024, certs=Certs(folder))
        def _(target):
            hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100)
            peers = [Peer(target.tls_port) for _ in range(count)]
            for at, peer in enumerate(peers):
                assert peer.send(hello[:1 + at % len(hello)]) > 0
            time.sleep(SECONDS)
            close_all(peers)


# Clients that do not read.

def replies_that_nobody_reads_end_the_connection(program):
    count = many(3, 30)
    asks = [("INFO", "everything"), ("COMMAND", "DOCS"), ("CLIENT", "LIST"), ("COMMAND",)]

    @attack(program, "--output-buffer-limit", "1mb", more_mib=16 + count * len(asks) * 3)
    def _(target):
        peers = [Peer(target.port, encode(*words) * 200, reads=False, small=True)
                 for words in asks for _ in range(count)]
        rage(peers, 60)
        assert all(peer.over for peer in peers)
        close_all(peers)


def what_all_leave_unread_is_bounded(program):
    """Each stays within its own limit; all together are too much."""
    count = many(8, 100)

    @attack(program, "--output-buffer-limit", "64mb", "--maxmemory-clients", "16mb", more_mib=50)
    def _(target):
        peers = [Peer(target.port, encode("COMMAND", "DOCS") * 400, reads=False, small=True)
                 for _ in range(count)]
        for peer in peers:
            peer.push()
        until(lambda: int(target.admin.info("evicted_clients")) > 0, "some had to go")
        assert int(target.admin.info("mem_clients_normal")) <= 17 * MIB
        close_all(peers)


def events_that_nobody_reads_end_the_subscription(program):
    count = many(5, 100)

    @attack(program, "--output-buffer-limit", "64kb", more_mib=16 + count)
    def _(target):
        peers = [Peer(target.port, small=True) for _ in range(count)]
        for peer in peers:
            peer.send(encode("PSUBSCRIBE", "*"))
        name = "n" * 512
        with Wire(target.port) as wire:
            burst = (encode("LOCK", name) + encode("UNLOCK", name)) * 50
            start = time.monotonic()
            while target.clients() > 3:
                assert time.monotonic() < start + 60, target.clients()
                wire.socket.sendall(burst)
                for _ in range(100):
                    wire.reply()
        close_all(peers)


def what_a_pipeline_asks_for_comes_in_turns(program):
    """The attackers read; they only ask for all that there is, all the time."""
    asks = [("INFO", "everything"), ("COMMAND", "DOCS"), ("PING",),
            ("LOCKS", "CURSOR", 0, "MATCH", "*a*b*c*d*e*", "COUNT", 1000)]

    @attack(program, more_mib=40)
    def _(target):
        peers = [Peer(target.port, encode(*words) * 100) for words in asks]
        rage(peers, SECONDS)
        assert not any(peer.over for peer in peers), [
            (peer.data[:60], peer.last[-100:]) for peer in peers if peer.over]
        close_all(peers)


# Clients that send for ever.

def what_never_ends_is_cut(program):
    forever = [
        b"a" * 65536,  # a line
        b"*2\r\n$4\r\nECHO\r\n$1000000000\r\n" + b"b" * (1 << 21),
        b"*2\r\n$4\r\nECHO\r\n$1000000\r\n" + b"c" * (1 << 21),
        b"*1\r\n" * 100000,
        b"*1024\r\n" + b"$1000\r\n" + b"d" * 1000 + b"\r\n" + b"$1000\r\n" * 3000,
    ]
    count = many(2, 20)

    @attack(program, more_mib=16 + 3 * count * len(forever))
    def _(target):
        for _ in range(many(2, 50)):
            peers = [Peer(target.port, data) for data in forever for _ in range(count)]
            rage(peers, 60)
            assert all(peer.over for peer in peers)
            assert all(b"-ERR Protocol error: " in peer.last or not peer.last
                       for peer in peers), [peer.last for peer in peers]
            close_all(peers)


def what_is_sent_behind_a_wait_is_bounded(program):
    count = many(4, 100)

    @attack(program, "--query-buffer-limit", "64kb", more_mib=16 + count)
    def _(target):
        target.admin.ask("LOCK", "taken")
        peers = [Peer(target.port, encode("PING") * 1000) for _ in range(count)]
        for peer in peers:
            peer.send(encode("LOCK", "taken", "WAIT", 60000))
        rage(peers, 60)
        assert all(peer.over for peer in peers)
        close_all(peers)
        target.admin.ask("UNLOCK", "taken")


def a_transaction_is_bounded(program):
    count = many(4, 50)
    rows = [("PING",), ("ECHO", "e" * 1000)]

    @attack(program, more_mib=16 + 6 * count)
    def _(target):
        peers = [Peer(target.port, encode(*row) * 1000) for row in rows for _ in range(count)]
        for peer in peers:
            peer.send(encode("MULTI"))
        hear(peers, lambda peer: b"-LIMIT a transaction has at most" in peer.last, "told")
        assert not any(peer.over for peer in peers)
        close_all(peers)


# Many of a kind.

def many_waiters_of_one_name(program):
    count = many(1000, 14000)

    @attack(program, "--maxclients", "16000", more_mib=16 + count * 4 // 1024)
    def _(target):
        target.admin.ask("LOCK", "one")
        peers = [Peer(target.port) for _ in range(count)]
        for peer in peers:
            peer.send(encode("LOCK", "one", "WAIT", 600000))
        while target.waiting() < count:
            time.sleep(0.01)
        time.sleep(SECONDS)
        close_all(peers)
        target.admin.ask("UNLOCK", "one")


def many_places_of_one_name(program):
    """A place in the queue outlives its connection: so one client can have very many."""
    count = many(5000, 1000000)

    @attack(program, "--max-keep", "1h", "--max-waiters", str(count + 10), more_mib=16 + count // 1024)
    def _(target):
        target.admin.ask("LOCK", "one")
        start = time.monotonic()
        with Wire(target.port) as wire:
            for first in range(0, count, 500):
                wire.socket.sendall(b"".join(
                    encode("LOCK", "one", "WAIT", 0, "ID", f"{i:032d}", "KEEP", 3600000)
                    for i in range(first, min(first + 500, count))))
                for _ in range(first, min(first + 500, count)):
                    assert wire.reply() is None
            assert target.waiting() >= count  # and the one beside, at times
            print(f"# {count} places after {time.monotonic() - start:.1f} s, "
                  f"{target.rss() / MIB:.0f} MiB")
            time.sleep(SECONDS)
            start = time.monotonic()
            for first in range(0, count, 500):
                wire.socket.sendall(b"".join(
                    encode("CANCEL", "one", "ID", f"{i:032d}")
                    for i in range(first, min(first + 500, count))))
                for _ in range(first, min(first + 500, count)):
                    assert wire.reply() == 1
            print(f"# given up in {time.monotonic() - start:.1f} s")
        target.admin.ask("UNLOCK", "one")


def many_names(program):
    count = many(5000, 200000)

    @attack(program, more_mib=16 + count * 2 // 1024)
    def _(target):
        with Wire(target.port) as wire:
            for word in ("LOCK", "UNLOCK"):
                start = time.monotonic()
                for first in range(0, count, 100):
                    wire.socket.sendall(b"".join(encode(word, f"name-{i}" + "x" * 400)
                                                 for i in range(first, first + 100)))
                    for _ in range(100):
                        wire.reply()
                print(f"# {word} {count / (time.monotonic() - start):.0f}/s")


def many_subscriptions(program):
    clients, each = many(3, 20), 8192

    @attack(program, more_mib=16 + clients * 10)
    def _(target):
        wires = [Wire(target.port) for _ in range(clients)]
        for wire in wires:
            for first in range(0, each, 512):
                names = [f"granted:{i}" for i in range(first, first + 512)]
                wire.send("SUBSCRIBE", *names)
                for _ in names:
                    wire.reply()
            try:
                wire.ask("SUBSCRIBE", "granted:one-too-many")
                raise AssertionError("one too many")
            except Error as error:
                assert str(error).startswith("LIMIT "), error
            wire.close()


def patterns_that_are_slow_to_match(program):
    """As many as are taken of those that take longest, and names that they all but match."""
    count = many(2, 10)

    @attack(program, more_mib=40)
    def _(target):
        wires = [Wire(target.port) for _ in range(count)]
        taken = 0
        for at, wire in enumerate(wires):
            for i in range(128):
                try:
                    wire.ask("PSUBSCRIBE", "*" + "?" * 30 + "a" * 30 + f"{at}.{i}*")
                except Error as error:
                    assert str(error).startswith("LIMIT "), error
                    break
                taken += 1
        assert 0 < taken < 128, taken
        with Wire(target.port) as wire:
            end = time.monotonic() + SECONDS
            n = 0
            while time.monotonic() < end:
                wire.ask("LOCK", "a" * 512)
                wire.ask("UNLOCK", "a" * 512)
                n += 2
            print(f"# {n} events, {taken} patterns")
        for wire in wires:
            wire.close()


CASES = [
    connections_beyond_the_limit_are_told_and_closed,
    connections_that_come_and_go_are_only_work,
    a_byte_now_and_then_costs_a_connection_each,
    half_a_handshake_ends,
    replies_that_nobody_reads_end_the_connection,
    what_all_leave_unread_is_bounded,
    events_that_nobody_reads_end_the_subscription,
    what_a_pipeline_asks_for_comes_in_turns,
    what_never_ends_is_cut,
    what_is_sent_behind_a_wait_is_bounded,
    a_transaction_is_bounded,
    many_waiters_of_one_name,
    many_places_of_one_name,
    many_names,
    many_subscriptions,
    patterns_that_are_slow_to_match,
]
