#!/usr/bin/env python3
"""Locks over HTTP: http_locks.py LATCHD. Prints TAP."""
import base64
import contextlib
import http.client
import itertools
import json
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from urllib.parse import quote, urlencode

from http_stand import HOSTILE, PATIENCE_S, HttpStand, wait_for
from children import die_with_parent
from stand import Skip, tap
from resp import Error, Wire

BINARY = sys.argv[1]
CALLS_MAX = 256  # HTTP_CALLS_MAX
BODY_MAX = 4096  # API_BODY_MAX
NAMES_MAX = 64   # API_NAMES_MAX
ROUNDS = 40      # of a race
WAITERS = 100

NUMBERS = itertools.count()


def new_id():
    return f"request-{next(NUMBERS):08}"


class Api(HttpStand):
    """A stand that serves locks over HTTP, with a client of each kind."""

    def __init__(self, *more):
        super().__init__(BINARY, "--http-api", "yes", *more)
        self.login = None  # (user, password)

    def headers(self):
        if self.login is None:
            return {}
        return {"Authorization": "Basic " + base64.b64encode(":".join(self.login).encode()).decode()}

    def call(self, method, name, body=None, **params):
        """Status, headers, and the JSON of the reply."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, PATIENCE_S)
        try:
            connection.request(method, path_of(name, params), body, self.headers())
            reply = connection.getresponse()
            return reply.status, reply.headers, json.loads(reply.read())
        finally:
            connection.close()

    def code(self, method, name, body=None, **params):
        return self.call(method, name, body, **params)[0]

    def take(self, name, request, **params):
        code, _, reply = self.call("PUT", name, id=request, **{"lease": 60, **params})
        assert code == 200, reply
        return reply

    def begin(self, method, name, **params):
        """A call that may take its time: the socket that it was sent over."""
        client = self.http_socket()
        client.sendall(f"{method} {path_of(name, params)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return client

    @contextlib.contextmanager
    def second(self):
        """Another daemon at the same Redis."""
        with tempfile.TemporaryFile() as log:
            daemon = subprocess.Popen(
                [BINARY, "--redis", f"unix://{self.redis_socket}", "--port", "0", "--unixsocket",
                 self.folder / "second.sock", "--http-port", "auto", "--http-api", "yes"],
                stderr=log, preexec_fn=die_with_parent)

            def said(text):
                log.seek(0)
                return re.search(text, log.read().decode())
            wait_for(lambda: said("server: ready"), "the second daemon does not start")
            other = Api()
            other.http_port = int(said(r"http: listening on \S+:(\d+)/")[1])
            try:
                yield other
            finally:
                daemon.terminate()
            assert daemon.wait(PATIENCE_S) == 0

    def ask_latchd(self, *words):
        with Wire(self.port) as wire:
            return wire.ask(*words)

    def waiters(self, name):
        return len(self.ask_latchd("WAITERS", name, "COUNT", 1000))

    def await_waiters(self, name, count):
        wait_for(lambda: self.waiters(name) == count, f"there are never {count} waiters")


def path_of(name, params):
    name = name if isinstance(name, str) and name.startswith("/") else "/v1/locks/" + quote(name, safe="")
    return name + ("?" + urlencode(params) if params else "")


def answer_of(client):
    reply = http.client.HTTPResponse(client)
    reply.begin()
    return reply.status, json.loads(reply.read())


def a_lock_is_taken_given_back_and_taken_by_others():
    with Api() as stand:
        first, second = new_id(), new_id()
        code, headers, reply = stand.call("PUT", "job", id=first, lease=60, data="me")
        assert code == 200 and headers["Content-Type"] == "application/json", (code, reply)
        assert reply["name"] == "job" and reply["id"] == first and reply["token"] > 0, reply
        assert 0 < reply["lease_ms"] <= 60000, reply
        code, _, told = stand.call("GET", "job")
        assert code == 200 and told["state"] == "held", told
        assert [(h["token"], h["data"], h["renewed"]) for h in told["holds"]] == [
            (reply["token"], "me", "fixed")], told
        code, _, refused = stand.call("PUT", "job", id=second, lease=60)
        assert code == 409 and refused["error"] == "HELD" and "waited_ms" in refused, refused
        assert stand.waiters("job") == 0, "who did not wait left a place"
        code, _, refused = stand.call("PUT", "job", id=second, lease=60, wait="100ms")
        assert code == 409 and refused["waited_ms"] >= 100, refused
        assert stand.code("DELETE", "job", id=second) == 404
        assert stand.code("DELETE", "job", id=first) == 200
        assert stand.code("DELETE", "job", id=first) == 200, "a release can be repeated"
        assert stand.ask_latchd("LOCKINFO", "job")[5] == "free"
        assert stand.code("PUT", "job", id=first, lease=60) == 410, "that request is over"
        third = stand.take("job", new_id())
        assert third["token"] > reply["token"]


def the_same_put_renews_with_the_lease_that_it_asks_for():
    with Api() as stand:
        request = new_id()
        first = stand.take("job", request, lease="5m")
        again = stand.take("job", request, lease="10m")
        assert again["token"] == first["token"], again
        assert first["lease_ms"] <= 300000 < again["lease_ms"] <= 600000, (first, again)
        shorter = stand.take("job", request, lease=30)
        assert shorter["lease_ms"] <= 30000, shorter
        assert stand.ask_latchd("FORCEUNLOCK", "job", "ANY") == 1
        code, _, lost = stand.call("PUT", "job", id=request, lease=30)
        assert code == 410 and lost["error"] == "NOTHELD", lost


def a_put_that_waits_has_the_lock_when_it_is_given_back():
    with Api() as stand:
        holder, requests = new_id(), [new_id() for _ in range(3)]
        stand.take("job", holder)
        clients = []
        for count, request in enumerate(requests, 1):
            clients.append(stand.begin("PUT", "job", id=request, lease=60, wait=600))
            stand.await_waiters("job", count)
        for client, request in zip(clients, requests):
            assert stand.code("DELETE", "job", id=holder) == 200
            code, reply = answer_of(client)
            assert code == 200 and reply["id"] == request, "granted in the order of arrival"
            holder = request
            client.close()


def a_client_that_leaves_gives_up_its_place():
    with Api() as stand:
        holder = new_id()
        stand.take("job", holder)
        gone = [stand.begin("PUT", "job", id=new_id(), lease=60, wait=600) for _ in range(3)]
        stand.await_waiters("job", 3)
        kept = stand.begin("PUT", "job", id=new_id(), lease=60, wait=600)
        stand.await_waiters("job", 4)
        gone[0].close()
        gone[1].shutdown(socket.SHUT_WR)  # a half close counts as a close
        gone[2].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        gone[2].close()
        stand.await_waiters("job", 1)
        assert stand.code("DELETE", "job", id=holder) == 200
        assert answer_of(kept)[0] == 200
        gone[1].close()
        kept.close()


def a_machine_that_vanishes_while_it_waits_is_noticed():
    """By TCP's probes: the kernel says that their timer runs."""
    with Api() as stand, stand.begin("GET", "job", after=0, wait=600) as client:
        ports = [f"0100007F:{port:04X}" for port in (stand.http_port, client.getsockname()[1])]

        def is_probed():
            with open("/proc/net/tcp", encoding="ascii") as table:
                return any(line.split()[1:3] == ports and line.split()[5].startswith("02:")
                           for line in table)
        wait_for(is_probed, "the connection is not probed")


def a_place_is_kept_for_who_asks_again():
    with Api() as stand:
        holder, patient = new_id(), new_id()
        stand.take("job", holder)
        assert stand.code("PUT", "job", id=patient, lease=60, wait=0, keep=30) == 409
        other = stand.begin("PUT", "job", id=new_id(), lease=60, wait=600)
        stand.await_waiters("job", 2)
        assert stand.code("DELETE", "job", id=holder) == 200
        stand.take("job", patient, wait=600, keep=30)
        assert stand.code("DELETE", "job", id=patient) == 200
        assert answer_of(other)[0] == 200
        other.close()
        assert stand.code("PUT", "place", id=holder + "-x", lease=60) == 200
        assert stand.code("PUT", "place", id=patient, lease=60, wait=0, keep=30) == 409
        assert stand.code("DELETE", "place", id=patient) == 200, "a place can be given back"
        assert stand.waiters("place") == 0


def a_grant_that_meets_a_client_on_its_way_out_is_not_lost():
    """It was given back, or the same PUT finds it."""
    with Api() as stand:
        for _ in range(ROUNDS):
            holder, leaver = new_id(), new_id()
            stand.take("job", holder)
            client = stand.begin("PUT", "job", id=leaver, lease=600, wait=600)
            stand.await_waiters("job", 1)
            release = threading.Thread(target=stand.code, args=("DELETE", "job"),
                                       kwargs={"id": holder})
            release.start()
            time.sleep(random.random() * 0.004)
            client.close()
            release.join()
            stand.await_waiters("job", 0)
            code, _, reply = stand.call("PUT", "job", id=leaver, lease=600, wait=60)
            if code == 200:
                assert reply["token"] == stand.ask_latchd("LEADER", "job")[0]
                assert stand.code("DELETE", "job", id=leaver) == 200
            else:
                assert code == 410, reply
                another = new_id()
                stand.take("job", another, wait=60)
                assert stand.code("DELETE", "job", id=another) == 200


def any_daemon_serves_any_request():
    with Api() as one, one.second() as two:
        request = new_id()
        token = one.take("job", request)["token"]
        assert two.code("PUT", "job", id=new_id(), lease=60) == 409
        waiting = two.begin("PUT", "job", id=new_id(), lease=60, wait=600)
        wait_for(lambda: two.call("GET", "job")[2]["waiting"] == 1, "it does not wait")
        for other in (two, one):
            assert other.take("job", request, lease="10m")["token"] == token
        for other in (two, one):
            assert other.code("DELETE", "job", id=request) == 200
            assert other.code("PUT", "job", id=request, lease=60) == 410
        code, reply = answer_of(waiting)
        assert code == 200 and reply["token"] > token, reply
        waiting.close()
        assert one.code("DELETE", "job", id=reply["id"]) == 200, "it has not seen that ID"


def what_can_be_no_request_is_400_and_says_why():
    cases = [
        ("PUT", {"id": "x" * 16}, "lease="),
        ("PUT", {"lease": 5}, "id="),
        ("PUT", {"lease": 5, "id": "short"}, "ID"),
        ("PUT", {"lease": 5, "id": "x" * 65}, "ID"),
        ("PUT", {"lease": "5 s", "id": "x" * 16}, "seconds"),
        ("PUT", {"lease": "1.5", "id": "x" * 16}, "seconds"),
        ("PUT", {"lease": "-5", "id": "x" * 16}, "seconds"),
        ("PUT", {"lease": "9" * 30, "id": "x" * 16}, "seconds"),
        ("PUT", {"lease": "99999999", "id": "x" * 16}, "LEASE"),
        ("PUT", {"lease": "1ms", "id": "x" * 16}, "LEASE"),
        ("PUT", {"leese": 5, "lease": 5, "id": "x" * 16}, "parameter"),
        ("PUT", {"after": 5, "lease": 5, "id": "x" * 16}, "parameter"),
        ("PUT", {"lease": 5, "id": "x" * 16, "kind": "odd"}, "kind="),
        ("PUT", {"lease": 5, "id": "x" * 16, "priority": 10}, "PRIORITY"),
        ("PUT", {"lease": 5, "id": "x" * 16, "permits": 1}, "semaphore"),
        ("DELETE", {}, "id="),
        ("DELETE", {"id": "x" * 16, "lease": 5}, "parameter"),
        ("GET", {"wait": 5}, "after="),
        ("GET", {"after": "x"}, "AFTER"),
        ("LOCK", {"lease": 5}, "body"),
    ]
    with Api() as stand:
        for method, params, why in cases:
            code, _, reply = stand.call(method, "job", **params)
            assert code == 400 and why in reply["message"], (method, params, code, reply)
        for path in ("?lease=5&id=" + "x" * 16 + "&lease=6", "%00?lease=5&id=" + "x" * 16):
            assert stand.code("PUT", "/v1/locks/job" + path) == 400, path
        assert stand.code("PUT", "/v1/locks/?lease=5&id=" + "x" * 16) == 400
        assert stand.code("GET", "/v1/events") == 400
        for method, path in (("POST", "/v1/locks/job"), ("PATCH", "/v1/locks/job"),
                             ("HEAD", "/v1/events"), ("PUT", "/v1/events"),
                             ("OPTIONS", "/v1/locks/job")):
            connection = http.client.HTTPConnection("127.0.0.1", stand.http_port, PATIENCE_S)
            connection.request(method, path)
            reply = connection.getresponse()
            assert reply.status == 405 and "GET" in reply.headers["Allow"], (method, path)
            assert "Access-Control-Allow-Origin" not in reply.headers
            connection.close()
        assert stand.ask_latchd("LOCKINFO", "job")[5] == "free"


def names_are_any_bytes_but_zero():
    with Api() as stand:
        for name in ["a/b", "a b+c", "100%", "größe/日本", "?x=y#z",
                     *(name for name in HOSTILE if b"\0" not in name)]:
            request = new_id()
            token = stand.take(name, request)["token"]
            assert stand.ask_latchd("LEADER", name)[0] == token, name
            assert stand.call("GET", name)[2]["holds"][0]["token"] == token, name
            assert stand.code("DELETE", name, id=request) == 200, name
        stand.take("x" * 512, new_id())
        assert stand.code("PUT", "x" * 513, id=new_id(), lease=5) == 400


def a_get_waits_until_another_has_the_lock():
    with Api() as stand:
        request = new_id()
        code, _, free = stand.call("GET", "job", after=0)
        assert code == 200 and free["token"] == 0, free
        client = stand.begin("GET", "job", after=0, wait=600)
        token = stand.take("job", request, data="here")["token"]
        code, reply = answer_of(client)
        client.close()
        assert code == 200 and (reply["token"], reply["data"]) == (token, "here"), reply
        client = stand.begin("GET", "job", after=token, wait=600)
        assert stand.code("DELETE", "job", id=request) == 200
        assert answer_of(client)[1]["token"] == 0
        client.close()


def other_kinds_of_locks_are_served():
    with Api() as stand:
        readers = [stand.take("doc", new_id(), kind="read") for _ in range(2)]
        assert stand.code("PUT", "doc", id=new_id(), lease=60, kind="write") == 409
        for reader in readers:
            assert stand.code("DELETE", "doc", id=reader["id"]) == 200
        stand.take("doc", new_id(), kind="write")
        stand.take("line", new_id(), kind="fair")
        for _ in range(2):
            stand.take("pool", new_id(), permits=1, of=2)
        assert stand.code("PUT", "pool", id=new_id(), lease=60, permits=1, of=2) == 409
        code, _, reply = stand.call("PUT", "doc", id=new_id(), lease=60)
        assert code == 409 and reply["error"] == "WRONGTYPE", reply


def users_passwords_and_rights_are_those_of_all_clients():
    with Api("--requirepass", "open") as stand:
        with Wire(stand.port) as admin:
            admin.ask("AUTH", "open")
            admin.ask("ACL", "SETUSER", "ann", "on", ">secret", "+@lock", "-@admin", "~app:*")
            admin.ask("ACL", "SETUSER", "bob", "on", ">secret", "+@lock", "-@admin", "~app:*")
            admin.ask("ACL", "SETUSER", "eve", "on", ">secret", "+lockinfo", "~app:*")
            code, headers, reply = stand.call("PUT", "app:1", id=new_id(), lease=60)
            assert code == 401 and reply["error"] == "NOAUTH", reply
            assert headers["WWW-Authenticate"].startswith("Basic"), headers
            for login in (("ann", "wrong"), ("nobody", "secret"), ("default", "")):
                stand.login = login
                code, _, reply = stand.call("PUT", "app:1", id=new_id(), lease=60)
                assert code == 401 and reply["error"] == "WRONGPASS", (login, reply)
            stand.login = "ann", "secret"
            mine = stand.take("app:1", new_id())
            for code, reply in (stand.call("PUT", "other", id=new_id(), lease=60)[::2],
                                stand.call("UNLOCK", "app:1")[::2]):
                assert code == 403 and reply["error"] == "NOPERM", reply
            stand.login = "eve", "secret"
            assert stand.code("GET", "app:1") == 200
            assert stand.code("PUT", "app:1", id=mine["id"], lease=60) == 403
            assert stand.code("DELETE", "app:1", id=mine["id"]) == 403
            stand.login = "bob", "secret"
            for method, params in (("PUT", {"lease": 60}), ("DELETE", {})):
                code, _, reply = stand.call(method, "app:1", id=mine["id"], **params)
                assert code == 403 and "another user's" in reply["message"], reply
            stand.login = "", "open"  # curl -u :password
            assert stand.code("GET", "app:1") == 200
        stand.login = None


def a_login_that_cannot_be_read_is_not_taken_for_none():
    with Api() as stand:
        for login in ("Bearer secret", "Basic", "Basic ", "Basic !!!!", "Basic YW5u", "x", ""):
            client = stand.http_socket()
            client.sendall(b"GET /v1/locks/job HTTP/1.1\r\nHost: localhost\r\n"
                           b"Authorization: %s\r\n\r\n" % login.encode())
            assert answer_of(client)[0] == 401, login
            client.close()
        assert stand.code("GET", "job") == 200


def a_call_is_a_client_with_the_address_of_its_peer():
    with Api() as stand:
        stand.take("job", new_id())
        client = stand.begin("PUT", "job", id=new_id(), lease=60, wait=600)
        stand.await_waiters("job", 1)
        lines = stand.ask_latchd("CLIENT", "LIST").splitlines()
        line = [line for line in lines if " name=http " in line]
        assert len(line) == 1 and f" addr=127.0.0.1:{client.getsockname()[1]} " in line[0], lines
        number = line[0].split()[0].split("=")[1]
        assert stand.ask_latchd("CLIENT", "KILL", "ID", number) == 1
        assert answer_of(client)[0] == 503
        client.close()


def one_connection_carries_many_calls():
    with Api() as stand:
        connection = http.client.HTTPConnection("127.0.0.1", stand.http_port, PATIENCE_S)
        for _ in range(5):
            request = new_id()
            for method, params in (("PUT", {"id": request, "lease": 60}), ("GET", {}),
                                   ("DELETE", {"id": request})):
                connection.request(method, path_of("job", params))
                reply = connection.getresponse()
                assert reply.status == 200, reply.read()
                reply.read()
        connection.close()


def calls_have_limits_and_those_who_look_are_served():
    with Api("--max-waiters", str(CALLS_MAX)) as stand:
        stand.take("job", new_id())
        clients = [stand.begin("PUT", "job", id=new_id(), lease=60, wait=600)
                   for _ in range(CALLS_MAX)]
        stand.await_waiters("job", CALLS_MAX)
        code, headers, reply = stand.call("PUT", "other", id=new_id(), lease=60)
        assert code == 503 and headers["Retry-After"] == "1", (code, reply)
        assert f"{CALLS_MAX} requests for locks wait" in stand.logged()
        assert stand.ask("GET", "/healthz")[0] == 200
        clients.pop().close()
        stand.await_waiters("job", CALLS_MAX - 1)
        stand.take("other", new_id())
        with Wire(stand.port) as wire, Wire(stand.port) as beyond:
            wire.send("LOCK", "job", "WAIT", "600000")
            stand.await_waiters("job", CALLS_MAX)
            try:
                beyond.ask("LOCK", "job", "WAIT", "600000")
                raise AssertionError("one waiter too many")
            except Error:
                pass
            code, headers, reply = stand.call("PUT", "job", id=new_id(), lease=60, wait=600)
            assert code == 429 and headers["Retry-After"] == "1", (code, reply)
        for client in clients:
            client.close()
        stand.await_waiters("job", 0)


def a_redis_out_of_reach_is_503():
    with Api("--redis-timeout", "1s") as stand:
        stand.redis.terminate()
        stand.redis.wait()
        code, headers, reply = stand.call("PUT", "job", id=new_id(), lease=60)
        assert code == 503 and reply["error"] == "BACKEND" and headers["Retry-After"], reply


def a_stop_answers_those_who_wait():
    with Api() as stand:
        stand.take("job", new_id())
        clients = [stand.begin("PUT", "job", id=new_id(), lease=60, wait=600) for _ in range(WAITERS)]
        stand.await_waiters("job", WAITERS)
        stand.daemon.terminate()
        for client in clients:
            code, reply = answer_of(client)
            assert code == 503 and reply["error"] == "GOAWAY", reply
            client.close()
        stand.daemon.wait()


def without_the_key_nothing_is_served():
    with HttpStand(BINARY) as stand:
        assert stand.ask("GET", "/v1/locks/job")[0] == 404
        assert stand.ask("PUT", "/v1/locks/job?lease=5&id=" + "x" * 16)[0] == 405


def other_names_of_this_machine_are_refused():
    with Api() as stand:
        for method in "GET", "PUT":
            assert stand.ask(method, f"/v1/locks/job?lease=5&id={new_id()}",
                             Host="evil.example")[0] == 403
        for headers in {"Origin": "null"}, {"Sec-Fetch-Site": "same-origin"}:
            assert stand.ask("PUT", f"/v1/locks/job?lease=5&id={new_id()}", **headers)[0] == 403
        assert stand.ask("GET", "/v1/locks/job", **{"Sec-Fetch-Site": "none"})[0] == 200
        assert stand.ask_latchd("LOCKINFO", "job")[5] == "free"


class Events:
    """A stream of server-sent events."""

    def __init__(self, stand, *params):
        self.connection = http.client.HTTPConnection("127.0.0.1", stand.http_port, PATIENCE_S)
        self.connection.request("GET", "/v1/events?" + urlencode(params), headers=stand.headers())
        self.reply = self.connection.getresponse()
        self.code = self.reply.status

    def next(self):
        """The name of the next event and its data; ("", "") at the end."""
        event = data = ""
        while (line := self.reply.readline().decode().rstrip("\n")) or not data:
            if line.startswith("event: "):
                event = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
            elif not line and self.reply.isclosed():
                return "", ""
        return event, data

    def close(self):
        self.connection.close()


def a_loss_is_told_to_those_who_listen():
    with Api() as stand:
        mine, other = new_id(), new_id()
        token = stand.take("job", mine)["token"]
        both = Events(stand, ("name", "job"), ("name", "log"))
        one = Events(stand, ("name", "job"), ("name", "log"), ("id", mine))
        assert both.code == one.code == 200
        assert both.reply.headers["Content-Type"] == "text/event-stream"
        for stream in (both, one):
            states = [stream.next() for _ in range(2)]
            assert [(event, told["name"], told["state"]) for event, told in states] == [
                ("state", "job", "held"), ("state", "log", "free")], states
        stand.take("log", other)
        assert stand.ask_latchd("FORCEUNLOCK", "log", "ANY") == 1
        assert stand.ask_latchd("FORCEUNLOCK", "job", "ANY") == 1
        event, told = both.next()
        assert (event, told["name"]) == ("lost", "log"), told
        for stream in (both, one):
            event, told = stream.next()
            assert (event, told["name"], told["token"]) == ("lost", "job", token), told
        stand.take("job", new_id(), lease="100ms")
        event, told = both.next()
        assert (event, told["name"]) == ("expired", "job"), told
        both.close()
        one.close()
        wait_for(lambda: " name=http " not in stand.ask_latchd("CLIENT", "LIST"),
                 "who left still listens")
        stream = Events(stand, *[("name", f"n{i}") for i in range(NAMES_MAX)])
        assert stream.code == 200
        assert Events(stand, *[("name", f"n{i}") for i in range(NAMES_MAX + 1)]).code == 400
        for _ in range(NAMES_MAX):
            stream.next()
        stand.daemon.terminate()
        assert stream.next() == ("", ""), "the stream ends with the daemon"
        stand.daemon.wait()


def a_stream_outlives_the_time_limit_of_silent_clients():
    with Api("--timeout", "1s") as stand:
        stand.take("job", new_id())
        events = Events(stand, ("name", "job"))
        assert events.next()[0] == "state"
        with stand.client() as silent:
            assert silent.recv(1) == b""
        stand.ask_latchd("FORCEUNLOCK", "job", "ANY")
        assert events.next()[0] == "lost"


def a_stream_that_begins_with_too_much_is_refused():
    with Api() as stand, Wire(stand.port) as holder:
        for i in range(NAMES_MAX):
            holder.ask("LOCK", f"n{i}", "DATA", "x" * 4096)
        events = Events(stand, *(("name", f"n{i}") for i in range(NAMES_MAX)))
        assert events.code == 503 and json.load(events.reply)["error"] == "LIMIT"


def who_may_not_hear_of_a_name_gets_no_stream():
    with Api("--requirepass", "open") as stand:
        with Wire(stand.port) as admin:
            admin.ask("AUTH", "open")
            admin.ask("ACL", "SETUSER", "ann", "on", ">secret", "+@lock", "+@pubsub", "~app:*",
                      "&lost:app:*", "&uncertain:app:*", "&expired:app:*")
        assert Events(stand, ("name", "app:1")).code == 401
        stand.login = "ann", "secret"
        assert Events(stand, ("name", "app:1")).code == 200
        assert Events(stand, ("name", "other")).code == 403


def lock_info(who):
    return json.dumps({"ID": str(uuid.uuid4()), "Operation": "OperationTypeApply", "Info": "",
                       "Who": who, "Version": "1.9.0", "Path": "",
                       "Created": "2026-11-28T12:00:00.000000000Z"})


def terraform_locks_and_unlocks():
    """As its http backend does it: any 2xx is good, 423 has who holds it in its body."""
    with Api() as stand:
        ann, bob = lock_info("ann@laptop"), lock_info("bob@ci \"}\" \\")
        code, _, reply = stand.call("LOCK", "tf/prod", ann, lease="2h")
        assert code == 200 and reply["id"] == json.loads(ann)["ID"], reply
        code, _, reply = stand.call("LOCK", "tf/prod", bob, lease="2h")
        assert code == 423 and reply == json.loads(ann), reply
        assert stand.code("UNLOCK", "tf/prod", bob) == 404, "that is another's"
        assert stand.code("UNLOCK", "tf/prod", ann) == 200
        assert stand.code("LOCK", "tf/prod", bob, lease="2h") == 200
        assert stand.call("LOCK", "tf/prod", lock_info("carl"), lease="2h")[2] == json.loads(bob)
        assert stand.code("UNLOCK", "tf/prod") == 200, "force-unlock sends no body"
        assert stand.code("UNLOCK", "tf/prod") == 404
        stand.take("tf/prod", new_id())
        code, _, reply = stand.call("LOCK", "tf/prod", lock_info("carl"), lease="2h")
        assert code == 423 and reply["ID"].startswith("latchd:id:"), reply


def bodies_are_bounded_and_read_as_they_are():
    with Api() as stand:
        full = json.dumps({"ID": str(uuid.uuid4()), "Info": ""})
        full = full.replace('""', '"' + "x" * (BODY_MAX - len(full)) + '"')
        assert len(full) == BODY_MAX
        assert stand.code("LOCK", "full", full, lease=60) == 200
        for body in (full + " ", "x" * 100000):
            assert stand.code("LOCK", "job", body, lease=60) == 413
        chunks = http.client.HTTPConnection("127.0.0.1", stand.http_port, PATIENCE_S)
        chunks.request("LOCK", "/v1/locks/job?lease=60", iter([b"x" * 5000] * 4), encode_chunked=True,
                       headers={"Transfer-Encoding": "chunked"})
        assert chunks.getresponse().status == 413
        chunks.close()
        for body in ("", "{", "{}", "[]", "{\"ID\"", "{\"ID\":", "{\"ID\":5}", "{\"ID\":\"\"}",
                     "{\"ID\":\"" + "x" * 65 + "\"}", "{\"ID\":\"0123456789\\u0041bcdef\"}",
                     "{\"a\":{\"ID\":\"0123456789abcdef\"}}", "{\"ID\":\"0123456789abcdef\"",
                     "{\"a\":[\"ID\",\"0123456789abcdef\"]}", "\"ID\""):
            assert stand.code("LOCK", "job", body, lease=60) == 400, body
        for body in (" { \"x\" : [ {\"a\":\"}\"} , 1 ] , \"ID\" : \"0123456789abcdef\" }",):
            assert stand.code("LOCK", "job", body, lease=60) == 200, body


def curl_does_it_all():
    curl = shutil.which("curl")
    if curl is None:
        raise Skip("curl is not installed")
    with Api("--requirepass", "open") as stand:
        def call(*args):
            done = subprocess.run([curl, "--silent", "--max-time", str(PATIENCE_S), "--fail",
                                   "--user", "default:open", *args], check=True,
                                  stdout=subprocess.PIPE)
            return json.loads(done.stdout)

        url = f"http://127.0.0.1:{stand.http_port}/v1/locks/deploy"
        request = new_id()
        token = call("-X", "PUT", f"{url}?lease=60&wait=10&id={request}")["token"]
        assert call(url)["holds"][0]["token"] == token
        assert call("-X", "DELETE", f"{url}?id={request}")["id"] == request
        assert call(f"{url}?after={token}")["token"] == 0


CASES = [
    a_lock_is_taken_given_back_and_taken_by_others,
    the_same_put_renews_with_the_lease_that_it_asks_for,
    a_put_that_waits_has_the_lock_when_it_is_given_back,
    a_client_that_leaves_gives_up_its_place,
    a_machine_that_vanishes_while_it_waits_is_noticed,
    a_place_is_kept_for_who_asks_again,
    a_grant_that_meets_a_client_on_its_way_out_is_not_lost,
    any_daemon_serves_any_request,
    what_can_be_no_request_is_400_and_says_why,
    names_are_any_bytes_but_zero,
    a_get_waits_until_another_has_the_lock,
    other_kinds_of_locks_are_served,
    users_passwords_and_rights_are_those_of_all_clients,
    a_login_that_cannot_be_read_is_not_taken_for_none,
    a_call_is_a_client_with_the_address_of_its_peer,
    one_connection_carries_many_calls,
    calls_have_limits_and_those_who_look_are_served,
    a_redis_out_of_reach_is_503,
    a_stop_answers_those_who_wait,
    without_the_key_nothing_is_served,
    other_names_of_this_machine_are_refused,
    a_loss_is_told_to_those_who_listen,
    a_stream_outlives_the_time_limit_of_silent_clients,
    a_stream_that_begins_with_too_much_is_refused,
    who_may_not_hear_of_a_name_gets_no_stream,
    terraform_locks_and_unlocks,
    bodies_are_bounded_and_read_as_they_are,
    curl_does_it_all,
]

sys.exit(tap([(case.__name__, case) for case in CASES], at_once=3) != 0)
