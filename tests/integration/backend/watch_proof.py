#!/usr/bin/env python3
"""The watch link's proof and its mark, where Redis answers otherwise: watch_proof.py LATCHD.

A relay before Redis asks it something else than the daemon did. Prints TAP.
"""
import pathlib
import socket
import sys
import tempfile
import threading

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import children
from resp import NOTHING, Parser, encode
from servers import Latchd, Rack, Redis
from stand import tap

SOON_S = 60
MARKS = 2  # one may have been on its way


def until(condition, what):
    children.until(condition, what, SOON_S, 0.02)


class Relay:
    """Between a daemon and Redis. `instead`: what is asked in place of a request that begins
    with these words, on the watch link or on another one; `seen`: how often that was."""

    def __init__(self, target):
        self.target = target
        self.instead = {}  # (link, words): request
        self.seen = {}     # (link, first word): times
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        threading.Thread(target=self.take, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.door.close()

    def take(self):
        while True:
            try:
                near, _ = self.door.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.target))
            threading.Thread(target=self.requests, args=(near, far), daemon=True).start()
            threading.Thread(target=self.replies, args=(far, near), daemon=True).start()

    def request(self, kind, words):
        """What Redis is asked."""
        said = tuple(word.decode(errors="replace") for word in words[:2])
        self.seen[kind, said[0]] = self.seen.get((kind, said[0]), 0) + 1
        for (link, begins), other in list(self.instead.items()):
            if link == kind and all(word.startswith(begin) for word, begin in zip(said, begins)):
                return other()
        return words

    def requests(self, near, far):
        parser, kind = Parser(raw=True), None
        try:
            while data := near.recv(1 << 16):
                parser.feed(data)
                while (words := parser.next()) is not NOTHING:
                    kind = kind or ("watch" if words[0] == b"INFO" else "other")
                    far.sendall(encode(*self.request(kind, words)))
        except OSError:
            pass
        far.close()

    @staticmethod
    def replies(far, near):
        try:
            while data := far.recv(1 << 16):
                near.sendall(data)
        except OSError:
            pass
        near.close()

    def refuse(self, link, words, error):
        self.instead[link, words] = lambda: (
            "EVAL", "return redis.error_reply(ARGV[1])", 0, error)

    def once(self, link, words, request):
        def other():
            del self.instead[link, words]
            return request
        self.instead[link, words] = other


class Place(Rack):
    def __init__(self, latchd, folder):
        super().__init__(folder)
        self.latchd = latchd
        self.redis = self.keep(Redis(self.folder).ready())
        self.relay = self.keep(Relay(self.redis.port))

    def start(self, *options):
        url = f"redis://127.0.0.1:{self.relay.port}"
        self.daemon = self.keep(Latchd(self.latchd, self.folder, "d", url, *options)).ready()

    def await_watch(self, text):
        until(lambda: self.daemon.info("redis_watch").startswith(text),
              f"redis_watch is {text}")

    def watched_hold(self):
        """A connection that holds `job`, and is told of its loss. A hold that is older than the watch is
        watched from its next renewal on."""
        self.await_watch("yes")
        holder = self.keep(self.daemon.wire())
        holder.ask("HELLO", 3)
        holder.ask("LOCK", "job")
        until(lambda: self.daemon.info("watched_holds") == "1", "the hold is watched")
        return holder


PROOF = ("latchd:probe:",)
REFUSED = {
    "a_busy_redis_has_the_watch_proved_later": ("watch", "EXISTS", "BUSY a script runs"),
    "a_write_that_is_refused_says_why": ("other", "SET", "MISCONF no disk"),
    "a_mark_that_is_refused_says_why": ("watch", "DEL", "NOREPLICAS too few"),
}


def refused(place, link, command, error):
    place.relay.refuse(link, (command, *PROOF), error)
    place.start("--redis-timeout", "500ms")
    place.await_watch(f"no, {error}")
    place.relay.instead.clear()
    place.await_watch("yes")


def a_flush_during_the_proof_has_it_begun_anew_at_once(place):
    place.relay.once("other", ("SET", *PROOF), ("FLUSHALL",))
    place.start("--redis-timeout", "60s")
    place.await_watch("yes")
    assert place.relay.seen["watch", "EXISTS"] == 2, place.relay.seen


def another_server_than_the_command_links_is_not_watched(place):
    place.relay.instead["watch", ("INFO",)] = lambda: (
        "EVAL", "return 'run_id:0123456789\\r\\n'", 0)
    place.start()
    place.await_watch("no, another server answers")
    place.relay.instead.clear()
    place.await_watch("yes")


def a_master_that_was_demoted_is_left(place):
    place.start("--watchdog-timeout", "3s")
    place.watched_hold()
    place.relay.refuse("watch", ("DEL", *PROOF), "READONLY a replica")
    place.await_watch("no, READONLY a replica")
    place.relay.instead.clear()
    place.await_watch("yes")
    until(lambda: place.daemon.info("watched_holds") == "1", "the hold is watched again")


def a_busy_redis_is_watched_still(place):
    place.start("--watchdog-timeout", "10m")
    holder = place.watched_hold()
    place.relay.refuse("watch", ("DEL", *PROOF), "BUSY a script runs")
    marks = place.relay.seen["watch", "DEL"]
    until(lambda: place.relay.seen["watch", "DEL"] > marks + MARKS, "marks are refused")
    assert place.daemon.info("redis_watch") == "yes"
    place.redis.ask("DEL", "job")
    until(lambda: place.daemon.info("watched_holds") == "0", "the hold is lost")
    holder.close()


def no_mark_is_written_while_nothing_is_watched(place):
    place.start("--redis-timeout", "500ms")
    place.await_watch("yes")
    pings = place.relay.seen.get(("watch", "PING"), 0)
    until(lambda: place.relay.seen.get(("watch", "PING"), 0) > pings + 10, "it is idle for a while")
    assert place.relay.seen["watch", "DEL"] == 1, place.relay.seen


def in_a_place(latchd, case, *args):
    def run():
        with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
            with Place(latchd, folder) as place:
                case(place, *args)
    return run


def main():
    latchd = pathlib.Path(sys.argv[1]).resolve()
    cases = [(name, in_a_place(latchd, refused, *row)) for name, row in REFUSED.items()]
    cases += [(case.__name__, in_a_place(latchd, case)) for case in (
        a_flush_during_the_proof_has_it_begun_anew_at_once,
        another_server_than_the_command_links_is_not_watched, a_master_that_was_demoted_is_left,
        a_busy_redis_is_watched_still, no_mark_is_written_while_nothing_is_watched)]
    sys.exit(tap(cases, at_once=2) != 0)


if __name__ == "__main__":
    main()
