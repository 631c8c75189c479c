#!/usr/bin/env python3
"""What the log and the errors say of a Redis that refuses something: said.py LATCHD.

They say what the server said, and what latchd cannot check; each at most once a minute. Prints TAP.
"""
import contextlib
import hashlib
import pathlib
import socket
import sys
import tempfile
import threading

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import tap
from children import until
from resp import NOTHING, Error, Parser, encode
from servers import Latchd, Rack, Redis

SOON_S = 60
OFTEN = 10


class Place(Rack):
    def __init__(self, latchd, folder, *rights):
        super().__init__(folder)
        self.latchd = latchd
        self.redis = self.keep(Redis(self.folder).ready())
        self.redis.ask("ACL", "SETUSER", "u", "on", ">p", "~*", "&*", "+@all", *rights)
        self.daemon = None

    def start(self, url=None, *options):
        self.daemon = self.keep(Latchd(self.latchd, self.folder, "d", url or
                                       self.redis.url.replace("//", "//u:p@"), *options))
        return self.daemon

    def log(self):
        return self.daemon.log.read_text(errors="replace")

    def until_log(self, *texts):
        for text in texts:
            until(lambda t=text: t in self.log(), f"the log says {text}", SOON_S)

    def lines(self, *texts):
        return [line for line in self.log().splitlines() if all(text in line for text in texts)]


def both_links_name_what_turned_them_away(latchd):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Place(latchd, folder) as here:
            with here.redis.wire() as wire:
                wire.ask("CONFIG", "SET", "maxclients", 1)
                here.start(here.redis.url)  # without a password the link asks something else first
                for module in ("redis: ", "redis-sub: "):
                    until(lambda m=module: here.lines(m, "max number of clients"),
                          f"{module} says it", SOON_S)
                wire.ask("CONFIG", "SET", "maxclients", 100)
            here.daemon.ready()


class Server:
    """Of one's own: serve() has each connection to itself."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.accepted = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self.end, args=(link,), daemon=True).start()

    def end(self, link):
        with link, contextlib.suppress(ConnectionError):
            self.serve(link)

    def serve(self, link):
        link.recv(65536)
        link.sendall(b"-ERR this is no TLS\r\n")


def a_tls_handshake_that_fails_again_and_again_is_said_once(latchd):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Rack(folder) as rack:
            fake = Server()
            daemon = rack.keep(Latchd(latchd, rack.folder, "d",
                                      f"rediss://127.0.0.1:{fake.port}"))
            until(lambda: fake.accepted > 4 * OFTEN, "it tries often", SOON_S)
            log = daemon.log.read_text()
            assert 1 <= log.count("no handshake") <= 3, log
            assert 1 <= log.count("cannot use") <= 6, log
            fake.listener.close()


def a_link_that_breaks_again_and_again_is_said_once(latchd):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Place(latchd, folder) as here:
            here.start().ready()
            for i in range(OFTEN):
                here.redis.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                until(lambda n=i: here.daemon.info("redis_reconnects") == str(n + 1) and
                      here.daemon.info("redis_link") == "up", "it is back", SOON_S)
            assert 1 <= len(here.lines("redis: lost")) <= 2, here.log()
            assert len(here.lines("redis: connected")) <= 3, here.log()


def an_error_says_why_a_redis_that_is_up_cannot_be_used(latchd):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Place(latchd, folder) as here:
            here.start().ready()
            here.redis.ask("REPLICAOF", "127.0.0.1", 1)

            def answer():
                with here.daemon.wire() as wire:
                    try:
                        return str(wire.ask("LOCK", "job", "WAIT", 50))
                    except Error as error:
                        return str(error)
            until(lambda: answer().startswith("BACKEND Redis cannot be used: it is a replica"),
                  f"it says so: {answer()}", SOON_S)
            here.redis.ask("REPLICAOF", "NO", "ONE")
            here.daemon.ready()


def what_cannot_be_checked_is_said(latchd):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Place(latchd, folder, "-info", "-config", "-client|id") as here:
            here.start().ready()
            here.until_log("refuses INFO", "refuses CONFIG GET", "refuses CLIENT ID")
            for text in ("refuses INFO", "refuses CONFIG GET", "refuses CLIENT ID"):
                assert len(here.lines(text)) == 1, here.log()


def without_info_the_other_checks_are_made(latchd):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Place(latchd, folder, "-info") as here:
            here.redis.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
            here.start().ready()
            here.until_log("maxmemory-policy is allkeys-lru", "neither append-only file")


class LateClock(Server):
    """Answers what latchd asks at first as a Redis does; its clock tells ten seconds more each
    time."""

    times = 0

    def reply(self, words):
        word = words[0].upper()
        if word == "TIME":
            self.times += 1
            return encode(str(1_700_000_000 + 10 * self.times), "0")
        if word == "PING":
            return b"+PONG\r\n"
        if word == "INFO":
            return b"$14\r\nrun_id:abcdef\n\r\n"
        if word == "SCRIPT":
            return b"$40\r\n%s\r\n" % hashlib.sha1(words[2].encode()).hexdigest().encode()
        if word == "EVALSHA":
            return b"*1\r\n$0\r\n\r\n"
        return b"+OK\r\n"

    def serve(self, link):
        parser = Parser()
        while data := link.recv(65536):
            parser.feed(data)
            while (words := parser.next()) is not NOTHING:
                link.sendall(self.reply(words))


def the_first_clock_of_a_server_is_no_jump(latchd):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        with Rack(folder) as rack:
            fake = LateClock()
            daemon = rack.keep(Latchd(latchd, rack.folder, "d", f"redis://127.0.0.1:{fake.port}"))
            log = until(lambda: (text := daemon.log.read_text()) and "redis: connected" in text
                        and text, "it is connected", SOON_S)
            assert "jumped" not in log[:log.index("redis: connected")], log
            fake.listener.close()


def main(latchd):
    cases = []
    for function in (both_links_name_what_turned_them_away,
                     a_tls_handshake_that_fails_again_and_again_is_said_once,
                     a_link_that_breaks_again_and_again_is_said_once,
                     an_error_says_why_a_redis_that_is_up_cannot_be_used,
                     what_cannot_be_checked_is_said, without_info_the_other_checks_are_made,
                     the_first_clock_of_a_server_is_no_jump):
        cases.append((function.__name__.replace("_", " "), lambda f=function: f(latchd)))
    return 1 if tap(cases) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
