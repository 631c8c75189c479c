#!/usr/bin/env python3
"""Metrics, health and the page's data over HTTP: http_endpoints.py LATCHD"""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import quote

from http_stand import HOSTILE, PATIENCE_S, HttpStand, shown, wait_for, words
from http_metrics import parse, value
from stand import tap

PATHS = ["/", "/metrics", "/healthz", "/status.json"]
BINARY = sys.argv[1]


def closed(client, within):
    """Whether the peer closes it within so many seconds."""
    end = time.monotonic() + within
    try:
        while time.monotonic() < end:
            client.settimeout(max(0.01, end - time.monotonic()))
            if not client.recv(65536):
                return True
    except ConnectionError:
        return True
    except TimeoutError:
        pass
    return False


def is_well(stand):
    try:
        return stand.ask("GET", "/healthz")[0] == 200
    except (OSError, http.client.HTTPException):
        return False  # too many are there still


def get_and_head_say_the_same():
    with HttpStand(BINARY) as stand:
        for path in PATHS:
            code, headers, body = stand.ask("GET", path)
            assert code == 200 and body, (path, code)
            assert int(headers["Content-Length"]) == len(body)
            code, head, nothing = stand.ask("HEAD", path)
            assert code == 200 and nothing == b"" and int(head["Content-Length"]) > 0
            for key in ("Content-Type", "Cache-Control", "X-Content-Type-Options"):
                assert head[key] == headers[key] is not None, (path, key)


def what_is_not_there_or_not_for_looking_is_refused():
    with HttpStand(BINARY) as stand:
        for path in ("/nothing", "/metrics/", "/../etc/passwd", "//", "/Metrics", "/%2e%2e"):
            assert stand.ask("GET", path)[0] == 404, path
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "get", "LOCK"):
            code, headers, _ = stand.ask(method, "/metrics")
            assert code == 405 and headers["Allow"] == "GET, HEAD", (method, code)
        assert stand.ask("GET", "/healthz?verbose=1")[0] == 200


def the_page_is_one_document_that_loads_nothing():
    with HttpStand(BINARY) as stand:
        _, headers, body = stand.ask("GET", "/")
        policy, text = headers["Content-Security-Policy"], body.decode()
        assert policy.startswith("default-src 'none'; style-src 'sha256-"), policy
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy, policy
        for tag in re.findall(r"<(?:script|link|img|iframe|object|style)\b[^>]*>", text):
            assert "src=" not in tag and "href=\"http" not in tag, tag
        markup = re.sub(r"(?s)<(script|style).*?</\1>", "", text)
        assert not re.search(r"\s(on\w+|style)\s*=", markup), "the policy forbids that"


def only_our_own_names_are_answered():
    with HttpStand(BINARY) as stand:
        for host in ("localhost", f"127.0.0.1:{stand.http_port}", "[::1]:9"):
            assert stand.ask("GET", "/status.json", Host=host)[0] == 200, host
        for host in ("evil.example", f"rebound.example:{stand.http_port}", ""):
            assert stand.ask("GET", "/status.json", Host=host)[0] == 403, host


def metrics_are_as_prometheus_wants_them():
    with HttpStand(BINARY) as stand, stand.client() as client, stand.client() as second:
        stand.tell(client, "LOCK", "secret-name", "OWNER", "ann")
        second.sendall(words("LOCK", "secret-name", "WAIT", 100))
        assert second.recv(100) == b"$-1\r\n"
        stand.tell(client, "UNLOCK", "secret-name", "OWNER", "ann")
        stand.tell(client, "LOCK", "other", "LEASE", 60000)
        stand.tell(client, "UNLOCK", "other", "TOKEN", 5)
        time.sleep(0.11)  # what was made before is given for a tenth of a second
        text = stand.get("/metrics")
        assert "secret-name" not in text and "ann\"" not in text
        found = parse(text)
        assert value(found, "latchd_holds") == value(found, "latchd_entries_fixed") == 1
        assert value(found, "latchd_grants_total") == 2
        assert value(found, "latchd_wait_timeouts_total") == 1
        assert value(found, "latchd_wait_seconds_count") == 2
        assert value(found, "latchd_hold_seconds_count") == 1
        assert value(found, "latchd_redis_up") == value(found, "latchd_ready") == 1
        assert value(found, "latchd_connections") == 2
        assert value(found, "latchd_redis_round_trip_seconds_count") > 3
        assert value(found, "latchd_redis_round_trip_seconds_sum") < 60
        for command, outcome, times in (("lock", "ok", 2), ("lock", "null", 1),
                                        ("unlock", "ok", 1), ("unlock", "NOTHELD", 1)):
            assert value(found, "latchd_commands_total", command=command,
                         outcome=outcome) == times, (command, outcome)
        assert value(found, "process_resident_memory_bytes") > 1 << 20
        assert abs(value(found, "process_start_time_seconds") - time.time()) < 600


def permits_are_counted():
    with HttpStand(BINARY) as stand, stand.client() as client:
        def permits():
            time.sleep(0.11)  # what was made before is given for a tenth of a second
            return value(parse(stand.get("/metrics")), "latchd_permits")

        stand.tell(client, "LOCK", "pool", "PERMITS", 3, "OF", 10)
        token = int(stand.tell(client, "LOCK", "pool", "PERMITS", 2)[1:])
        stand.tell(client, "LOCK", "job")
        assert permits() == 5
        pool = json.loads(stand.get("/name.json?name=pool"))
        assert [(h["kind"], h["permits"]) for h in pool["holders"]] == [("permits", 2),
                                                                       ("permits", 3)]
        job = json.loads(stand.get("/name.json?name=job"))
        assert [(h["kind"], h["permits"]) for h in job["holders"]] == [("plain", 0)]
        stand.tell(client, "UNLOCK", "pool", "TOKEN", token)
        assert permits() == 3
        stand.tell(client, "FORCEUNLOCK", "pool", "ANY")
        assert permits() == 0


def what_holders_say_of_themselves_is_shown_and_harmless():
    with HttpStand(BINARY) as stand, stand.client() as client:
        stand.tell(client, "LOCK", "job", "DATA", "<script>alert(1)</script>\n\x00")
        stand.tell(client, "LOCK", "long", "DATA", "x" * 4096)
        stand.tell(client, "LOCK", "none")
        text = stand.get("/status.json")
        assert b"<script" not in (text if isinstance(text, bytes) else text.encode())
        shown = {h["name"]: (h["data"], h["data_is_cut"]) for h in json.loads(text)["holds"]}
        assert shown["job"] == ("<script>alert(1)</script>\\x0a\\x00", False), shown
        assert shown["long"] == ("x" * 120, True)
        assert shown["none"] == ("", False)
        job = json.loads(stand.get("/name.json?name=job"))
        assert job["holders"][0]["data"] == shown["job"][0]


def loans_are_counted_and_how_they_end():
    with HttpStand(BINARY, "--local-window", "100ms") as stand, stand.client() as client:

        def counts():
            found = parse(stand.get("/metrics"))
            return {key: value(found, f"latchd_{key}") for key in (
                "names_lent", "loans_total", "loans_settled_total", "loans_returned_total",
                "local_grants_total", "grants_total", "yields_total")}

        def pass_on():
            for _ in range(20):
                stand.tell(client, "LOCK", "hot", "LOCAL")
                stand.tell(client, "UNLOCK", "hot")
            return counts()["local_grants_total"] > 0

        def settle():
            before = counts()["loans_settled_total"]
            for _ in range(3):
                stand.tell(client, "UNLOCK", "hot")
                stand.tell(client, "LOCK", "hot", "LOCAL")
            time.sleep(0.11)  # a window; what was made before is given for a tenth of a second
            return counts()["loans_settled_total"] > before

        wait_for(pass_on, "nothing is granted from memory")
        stand.tell(client, "LOCK", "hot", "LOCAL")
        wait_for(settle, "no hold is settled")
        stand.tell(client, "UNLOCK", "hot")
        wait_for(lambda: pass_on() and counts()["loans_returned_total"], "no loan goes back")
        wait_for(lambda: counts()["names_lent"] == 0, "a name stays lent")
        now = counts()
        ended = now["loans_settled_total"] + now["loans_returned_total"]
        assert now["loans_total"] == ended and now["grants_total"] > now["local_grants_total"], now
        assert now["yields_total"] == 0, now  # there is nobody elsewhere


def health_follows_redis():
    with HttpStand(BINARY, "--redis-timeout", "300ms") as stand:
        assert stand.ask("GET", "/healthz")[2] == b"ok\n"
        stand.redis.send_signal(signal.SIGSTOP)
        wait_for(lambda: stand.ask("GET", "/healthz")[0] == 503, "it stays well")
        code, _, body = stand.ask("GET", "/healthz")
        assert (code, body) == (503, b"Redis is out of reach\n")
        time.sleep(0.11)
        found = parse(stand.get("/metrics"))
        assert value(found, "latchd_redis_up") == value(found, "latchd_ready") == 0
        assert stand.status()["health"] == "Redis is out of reach"
        stand.redis.send_signal(signal.SIGCONT)
        wait_for(lambda: stand.ask("GET", "/healthz")[0] == 200, "it does not recover")


def the_status_tells_who_holds_and_who_waits_and_why():
    with HttpStand(BINARY) as stand, stand.client() as client, stand.client() as second:
        for name in HOSTILE:
            stand.tell(client, "LOCK", name, "OWNER", "<b>ann</b>")
        first = list(HOSTILE)[0]
        second.sendall(words("LOCK", first, "WAIT", 600000, "OWNER", "bob"))
        wait_for(lambda: stand.status()["waits"], "nobody waits")
        s = stand.status()
        assert [h["name"] for h in s["holds"]] == [shown(name) for name in HOSTILE]
        hold, wait, = s["holds"][0], s["waits"][0]
        assert hold["owner"] == "<b>ann</b>" and 0 < hold["left_ms"] <= 30000
        host, port = client.getsockname()
        assert hold["from"] == f"{host}:{port}", hold
        assert wait["owner"] == "bob" and wait["held_by"] == "<b>ann</b>"
        assert wait["ahead"] == 0 and wait["name"] == shown(first)
        assert 0 < wait["left_ms"] <= 600000
        assert [(c["name"], c["waiting"]) for c in s["crowded"]] == [(shown(first), 1)]
        wait_for(lambda: len(stand.status()["history"]["held"]) >= 2, "no history")
        assert stand.status()["history"]["held"][-1] == len(HOSTILE)


def what_is_granted_from_memory_is_marked():
    with HttpStand(BINARY, "--local-window", "100ms") as stand, stand.client() as holder, \
            stand.client() as waiter:

        def marked():
            for _ in range(3):
                stand.tell(holder, "LOCK", "hot", "LOCAL")
                stand.tell(holder, "UNLOCK", "hot")
            stand.tell(holder, "LOCK", "hot", "LOCAL")
            waiter.sendall(words("LOCK", "hot", "LOCAL", "WAIT", 60000))
            wait_for(lambda: stand.name(b"hot")["waiting"] == 1, "nobody waits")
            seen = stand.name(b"hot")
            assert [h["token"] > 0 for h in seen["holders"]] == [True], seen
            assert [(w["local"], w["lent"]) for w in seen["waits"]] == [(True, seen["lent"])], seen
            stand.tell(holder, "UNLOCK", "hot")
            assert waiter.recv(100).startswith(b":")
            stand.tell(waiter, "UNLOCK", "hot")
            return seen["holders"][0]["local"] and seen["lent"]

        wait_for(marked, "no hold is from memory")
        stand.tell(holder, "LOCK", "once")
        once = stand.name(b"once")
        assert not once["lent"] and not once["holders"][0]["local"], once
        wait_for(lambda: stand.status()["now"]["lent"] == 0, "a name stays lent")
        assert stand.status()["total"]["local_grants"] > 0 < stand.status()["total"]["loans"]


def a_name_that_rests_is_held_by_nobody():
    with HttpStand(BINARY) as stand, stand.client() as holder:
        stand.tell(holder, "LOCK", "nightly", "WAIT", 0, "ATLEAST", 600000)
        held = stand.name(b"nightly")["holders"][0]
        assert not held["rests"] and 590000 < held["atleast_ms"] <= 600000, held
        stand.tell(holder, "UNLOCK", "nightly")
        rest = stand.name(b"nightly")["holders"][0]
        assert rest["rests"] and 590000 < rest["left_ms"] <= 600000, rest
        assert rest["token"] == held["token"] and rest["from"] is None, rest
        now = stand.status()["now"]
        assert (now["held"], now["resting"]) == (0, 1), now
        stand.tell(holder, "FORCEUNLOCK", "nightly", "ANY")
        wait_for(lambda: stand.status()["now"]["resting"] == 0, "it rests on")


def who_awaits_a_latch_is_shown_as_a_waiter_and_the_latch_as_held_by_nobody():
    with HttpStand(BINARY) as stand, stand.client() as asker, stand.client() as waiter:
        stand.tell(asker, "LATCH", "SET", "gate", 1)
        assert stand.name(b"gate")["latch"] is False
        waiter.sendall(words("LATCH", "AWAIT", "gate", "WAIT", 600000))
        wait_for(lambda: stand.status()["now"]["awaits"] == 1, "nobody waits")
        status = stand.status()
        assert status["now"]["waiting"] == status["now"]["held"] == 0, status["now"]
        assert [(w["name"], w["kind"], w["owner"], w["held_by"], w["ahead"])
                for w in status["waits"]] == [("gate", "latch", "", "", 0)], status["waits"]
        host, port = waiter.getsockname()
        assert status["waits"][0]["from"] == f"{host}:{port}", status["waits"]
        assert [(n["name"], n["waiting"], n["latch"]) for n in status["crowded"]] == [
            ("gate", 1, True)], status["crowded"]
        gate = stand.name(b"gate")
        assert (gate["latch"], gate["waiting"], gate["holds"], len(gate["waits"])) == (
            True, 1, 0, 1), gate
        assert found_by(stand, "ate") == ["gate"]
        stand.tell(asker, "LATCH", "COUNT", "gate")
        wait_for(lambda: stand.status()["waits"] == [], "it waits on")


def what_was_lost_is_told_with_who_when_and_why():
    with HttpStand(BINARY, "--watchdog-timeout", "600ms", "--redis-timeout", "200ms") as stand, \
            stand.client() as client, stand.client() as admin:
        assert stand.status()["losses"] == [] and stand.status()["lost_lately"] == 0
        stand.tell(client, "LOCK", "forced", "OWNER", "ann")
        stand.tell(admin, "FORCEUNLOCK", "forced", "ANY")
        stand.tell(client, "LOCK", "over", "OWNER", "bob", "LEASE", 100)
        wait_for(lambda: stand.status()["total"]["expired"] == 1, "the end of a LEASE is not told")
        stand.tell(client, "LOCK", "gone", "OWNER", "eve")
        stand.ask_redis("DEL", "gone")
        wait_for(lambda: len(stand.status()["losses"]) == 2, "a loss is not told")
        stand.tell(client, "LOCK", "taken", "OWNER", "eve")
        stand.ask_redis("DEL", "taken")
        stand.ask_redis("HSET", "taken", "joe", "1")
        stand.ask_redis("PEXPIRE", "taken", "60000")
        wait_for(lambda: len(stand.status()["losses"]) == 3, "a loss is not told")
        stand.tell(client, "LOCK", "unconfirmed", "OWNER", "pat")
        stand.redis.send_signal(signal.SIGSTOP)
        wait_for(lambda: len(stand.status()["losses"]) == 4, "a loss is not told")
        stand.redis.send_signal(signal.SIGCONT)
        s = stand.status()
        told = [(row["name"], row["owner"], row["cause"]) for row in s["losses"]]
        assert told == [("unconfirmed", "pat", "unconfirmed"), ("taken", "eve", "gone"),
                        ("gone", "eve", "gone"), ("forced", "ann", "forced")], told
        assert s["lost_lately"] == s["total"]["lost"] == 4
        expired, = stand.name(b"over")["expired"]
        assert expired["owner"] == "bob" and expired["ago_ms"] < 600000, expired
        forced = s["losses"][-1]
        host, port = admin.getsockname()
        assert forced["forced_from"] == f"{host}:{port}", forced
        assert forced["token"] > 1e15 and 0 < forced["ago_ms"] < 600000 and forced["client"] > 0


def found_by(stand, text):
    """The names that contain it, as they are shown, by all steps of the search."""
    names, cursor = [], "0"
    while True:
        code, _, body = stand.ask("GET", f"/names.json?find={quote(text)}&cursor={cursor}")
        if code == 503:
            continue  # that many steps in that little time
        assert code == 200, body
        step = json.loads(body)
        names += [row["name"] for row in step["names"]]
        assert len(step["names"]) < 60, "a step of that many names"
        cursor = step["cursor"]
        if cursor == "0":
            return names


def a_search_finds_every_name_with_the_text_and_no_other():
    with HttpStand(BINARY) as stand, stand.client() as client:
        for i in range(300):
            stand.tell(client, "LOCK", f"job:{i}")
        for name in HOSTILE:
            stand.tell(client, "LOCK", name)
        assert sorted(found_by(stand, b"job:")) == sorted(f"job:{i}" for i in range(300))
        assert found_by(stand, b":299") == ["job:299"]
        assert found_by(stand, b"JOB:") == [] == found_by(stand, b"x" * 512)
        assert len(found_by(stand, b"")) == 300 + len(HOSTILE)
        for name in HOSTILE:
            assert found_by(stand, name) == [shown(name)], name
        assert found_by(stand, b"\x00") == [shown(b"line\nbreak\x00nul")]


def one_name_is_told_with_holders_waiters_and_losses():
    with HttpStand(BINARY) as stand, stand.client() as client, stand.client() as second, \
            stand.client() as third:
        for name in HOSTILE:
            stand.tell(client, "LOCK", name, "OWNER", "ann")
            assert stand.name(name)["name"] == shown(name)
            assert stand.name(name)["holders"][0]["owner"] == "ann", name
        stand.tell(client, "LOCK", "job", "OWNER", "eve")
        stand.tell(client, "FORCEUNLOCK", "job", "ANY")
        stand.tell(client, "LOCK", "job", "OWNER", "bob")
        for i, conn in enumerate((second, third)):
            conn.sendall(words("LOCK", "job", "WAIT", 600000, "OWNER", f"w{i}"))
            wait_for(lambda: stand.name(b"job")["waiting"] == i + 1, "nobody waits")
        seen = stand.name(b"job")
        host, port = client.getsockname()
        holder, = seen["holders"]
        assert (holder["owner"], holder["from"]) == ("bob", f"{host}:{port}"), holder
        assert [(w["owner"], w["ahead"]) for w in seen["waits"]] == [("w0", 0), ("w1", 1)]
        loss, = seen["losses"]
        assert (loss["owner"], loss["cause"]) == ("eve", "forced") and seen["holds"] == 1
        for i in range(3):
            stand.tell(client, "LOCK", "page", "READ", "OWNER", f"r{i}")
        readers = stand.name(b"page")["holders"]
        assert [r["owner"] for r in readers] == ["r2", "r1", "r0"], readers
        nothing = stand.name(b"nobody's")
        assert (nothing["holds"], nothing["waiting"], nothing["holders"], nothing["waits"],
                nothing["losses"]) == (0, 0, [], [], [])


def what_can_be_no_name_is_refused():
    with HttpStand(BINARY) as stand:
        assert stand.ask("GET", "/name.json?name=" + "%ff" * 512)[0] == 200
        assert stand.ask("GET", "/names.json?find=" + "%ff" * 512)[0] == 200
        for path in ("/name.json", "/name.json?name=", "/name.json?name", "/name.json?find=job",
                     "/name.json?name=" + "%ff" * 513, "/names.json?find=" + "a" * 513,
                     "/names.json?cursor=-1", "/names.json?cursor=1x",
                     "/names.json?cursor=18446744073709551616"):
            assert stand.ask("GET", path)[0] == 400, path
        code, _, body = stand.ask("GET", "/names.json?cursor=18446744073709551615")
        assert code == 200 and json.loads(body)["names"] == []


def looking_at_names_is_bounded_in_time():
    with HttpStand(BINARY) as stand, stand.client() as client:
        stand.tell(client, "LOCK", "job")

        def refused():
            crowd = [stand.http_socket() for _ in range(30)]
            for c in crowd:
                c.sendall(b"GET /name.json?name=job HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answers = [c.recv(65536) for c in crowd]
            for c in crowd:
                c.close()
            return [a for a in answers if b"Retry-After: 1\r\n" in a]
        assert all(a.startswith(b"HTTP/1.1 503") for a in wait_for(refused, "none is refused"))
        wait_for(lambda: stand.ask("GET", "/name.json?name=job")[0] == 200, "for ever")
        assert stand.ask("GET", "/status.json")[0] == 200


def names_that_change_hands_are_found():
    with HttpStand(BINARY) as stand, stand.client() as client:
        def busy():
            for _ in range(20):
                stand.tell(client, "LOCK", "hot")
                stand.tell(client, "UNLOCK", "hot")
            return [b for b in stand.status()["busy"] if b["name"] == "hot"]
        assert wait_for(busy, "it is not found")[0]["rate_milli"] > 0


def garbage_ends_a_connection_and_nothing_else():
    with HttpStand(BINARY) as stand:
        for bytes_ in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\r\n\r\n\r\n", os.urandom(5000),
                       b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                       b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"b" * 100000 + b"\r\n\r\n",
                       b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
                       b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 1000,
                       b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                       words("LOCK", "job")):
            with stand.http_socket() as client:
                try:
                    client.sendall(bytes_)
                    client.shutdown(socket.SHUT_WR)
                except OSError:
                    pass  # it had enough before
                assert closed(client, PATIENCE_S), bytes_[:40]
            assert stand.ask("GET", "/healthz")[0] == 200, bytes_[:40]


def a_connection_gets_one_answer():
    with HttpStand(BINARY) as stand, stand.http_socket() as client:
        request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        client.sendall(request * 200)
        answer = b""
        try:
            while more := client.recv(65536):
                answer += more
        except ConnectionError:
            pass
        assert answer.count(b"HTTP/1.1 200") == 1, answer.count(b"HTTP/1.1")


def many_connections_hold_up_no_lock():
    with HttpStand(BINARY) as stand, stand.client() as client:
        crowd = [stand.http_socket() for _ in range(150)]
        for c in crowd:
            try:
                c.sendall(b"GET /status.json HT")
            except ConnectionError:
                pass  # one too many
        start = time.monotonic()
        for i in range(200):
            stand.tell(client, "LOCK", f"n{i}")
        assert time.monotonic() - start < 10
        for c in crowd:
            c.close()
        wait_for(lambda: is_well(stand), "it does not recover")


def slow_clients_are_cut():
    with HttpStand(BINARY) as stand, stand.http_socket() as idle, stand.http_socket() as slow:
        idle.sendall(b"GET / HTTP/1.1\r\n")
        end = time.monotonic() + PATIENCE_S
        try:
            while not closed(slow, 0.5):
                slow.sendall(b"x")
                assert time.monotonic() < end, "a byte now and then keeps it"
        except ConnectionError:
            pass
        assert closed(idle, PATIENCE_S)
        assert stand.ask("GET", "/healthz")[0] == 200


def who_does_not_read_is_cut_at_the_stop():
    with HttpStand(BINARY) as stand:
        clients = [stand.http_socket() for _ in range(20)]
        for c in clients[:10]:
            c.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for c in clients[10:]:
            c.sendall(b"GET /")
        stand.daemon.send_signal(signal.SIGTERM)
        assert stand.daemon.wait(PATIENCE_S) == 0
        for c in clients:
            assert closed(c, PATIENCE_S)
            c.close()


def a_stop_is_told_while_it_lasts():
    with HttpStand(BINARY, "--redis-timeout", "20s") as stand, stand.client() as client:
        stand.tell(client, "LOCK", "job")
        stand.redis.send_signal(signal.SIGSTOP)  # the last renewal is waited for
        stand.daemon.send_signal(signal.SIGTERM)
        wait_for(lambda: stand.ask("GET", "/healthz")[2] == b"stopping\n", "not told")
        assert stand.ask("GET", "/healthz")[0] == 503
        stand.redis.send_signal(signal.SIGCONT)
        assert stand.daemon.wait(PATIENCE_S) == 0


def what_cannot_be_listened_on_stops_the_start():
    with socket.create_server(("127.0.0.1", 0)) as taken, HttpStand(BINARY) as stand:
        port = taken.getsockname()[1]
        for args, text in ((["--http-port", port], "Address already in use"),
                           (["--http-port", "auto", "--http-bind", "localhost"],
                            "that is not an address in digits")):
            end = subprocess.run([BINARY, "--port", "0", "--redis", "unix:///none",
                                  *map(str, args)], capture_output=True, text=True,
                                 timeout=PATIENCE_S, check=False)
            assert end.returncode == 1 and text in end.stderr, end.stderr
        assert stand.daemon.poll() is None


CASES = [
    get_and_head_say_the_same,
    what_is_not_there_or_not_for_looking_is_refused,
    the_page_is_one_document_that_loads_nothing,
    only_our_own_names_are_answered,
    metrics_are_as_prometheus_wants_them,
    permits_are_counted,
    what_holders_say_of_themselves_is_shown_and_harmless,
    loans_are_counted_and_how_they_end,
    health_follows_redis,
    the_status_tells_who_holds_and_who_waits_and_why,
    what_is_granted_from_memory_is_marked,
    a_name_that_rests_is_held_by_nobody,
    who_awaits_a_latch_is_shown_as_a_waiter_and_the_latch_as_held_by_nobody,
    what_was_lost_is_told_with_who_when_and_why,
    a_search_finds_every_name_with_the_text_and_no_other,
    one_name_is_told_with_holders_waiters_and_losses,
    what_can_be_no_name_is_refused,
    looking_at_names_is_bounded_in_time,
    names_that_change_hands_are_found,
    garbage_ends_a_connection_and_nothing_else,
    a_connection_gets_one_answer,
    many_connections_hold_up_no_lock,
    slow_clients_are_cut,
    who_does_not_read_is_cut_at_the_stop,
    a_stop_is_told_while_it_lasts,
    what_cannot_be_listened_on_stops_the_start,
]

sys.exit(tap([(case.__name__, case) for case in CASES], at_once=3) != 0)
