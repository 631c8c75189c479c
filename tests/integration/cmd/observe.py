#!/usr/bin/env python3
"""What an operator sees: observe.py LATCHD MAN-PAGE.

The log of a lively run, with names that try to forge it; and the commands for looking,
next to those of a real redis-server. Prints TAP.
"""
import functools
import json
import pathlib
import re
import signal
import socket
import struct
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from children import until
from stand import Stand, tap
import resp

DEADLINE_S = 20

HOSTILE = [b"a\nerror redis: gone", b'x","level":"error","y":"', b"\x00\xff\xfe\x1b[2J",
           "grün\u2028\u202e".encode(), b"\\", b"'$(reboot)`", b"n" * 512]


class Client(resp.Wire):
    """One connection: commands as lists, replies as Python values."""

    raw = True

    def __init__(self, where):
        until(lambda: self.opened(where), f"a connection to {where}")

    def opened(self, where):
        try:
            super().__init__(where, DEADLINE_S)
            return True
        except OSError:
            return False

    def read(self):
        return self.receive()

    def __call__(self, *words):
        self.send(*words)
        return self.read()

    def reset(self):
        """Closes so that the other side gets a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()


def shape(value):
    """What kinds of values a reply is made of."""
    if isinstance(value, list):
        return [shape(v) for v in value]
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    return type(value).__name__


# --- the log -----------------------------------------------------------------------------


def lively(stand):
    """Everything that is logged happens once or more."""
    where = ("127.0.0.1", stand.port)
    admin, other, third = Client(where), Client(where), Client(where)
    redis = Client(str(stand.folder / "redis.sock"))
    admin("CLIENT", "SETINFO", "LIB-NAME", "observe.py")
    admin("CLIENT", "SETINFO", "LIB-VER", "1.0")
    admin("CLIENT", "SETNAME", "the-operator")
    for name in HOSTILE:
        token = other("LOCK", name)
        assert isinstance(token, int), token
        assert admin("FORCEUNLOCK", name, "TOKEN", token) == 1
        assert isinstance(other("LOCK", name, "OWNER", 'o"=\\'), int)
        redis("DEL", name)
    assert admin("CONFIG", "SET", "requirepass", "sesame\n", "max-wait", "7s") == "OK"
    assert admin("CONFIG", "SET", "requirepass", "") == "OK"
    third.socket.sendall(b"*1\r\n$x\r\n\x1b[2J\r\n")
    third.read()
    Client(where).reset()
    Client(where).close()
    stopped = Client(where)
    assert admin("CLIENT", "KILL", "ID", stopped("CLIENT", "ID")) == 1
    guest, guesser = Client(where), Client(where)
    assert admin("ACL", "SETUSER", "guest", "on", "nopass", "+@all", "~*", "&*") == "OK"
    assert guest("AUTH", "guest", "") == "OK"
    assert admin("ACL", "DELUSER", "guest") == 1
    for _ in range(10):
        assert isinstance(guesser("AUTH", "guest", "sesame"), Exception)
    for name in HOSTILE:  # until each loss was noticed
        until(lambda n=name: isinstance(other("UNLOCK", n, "OWNER", 'o"=\\'), Exception),
                   "a loss")
    for _ in range(150):
        Client(where).close()
    return admin


def run_lively(binary, log_format, check):
    stand = Stand(binary, "--log-format", log_format, "--watchdog-timeout", "600ms",
                  level="debug")
    with tempfile.NamedTemporaryFile() as stand.log, stand:
        log = pathlib.Path(stand.log.name)
        admin = lively(stand)
        until(lambda: b"left out" in log.read_bytes(), "the limit in the log")
        admin.send("SHUTDOWN")
        stand.daemon.wait(DEADLINE_S)
        check(log.read_text(errors="backslashreplace").splitlines())


def check_json(lines):
    seen = [json.loads(line) for line in lines]
    for line in seen:
        assert set(line) >= {"time", "level", "module", "pid", "message"}, line
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]), line
        assert line["level"] in ("debug", "info", "notice", "warning", "error"), line
    losses = [s for s in seen if "is lost" in s["message"] and s["owner"].startswith("o")]
    assert {s["name"] for s in losses} >= {"grün\\u{2028}\\u{202e}", "\\\\", "n" * 512}, losses
    assert all(s["owner"] == 'o"=\\\\' and s["token"] > 0 and s["client"] > 0
               for s in losses), losses
    forced = [s for s in seen if s["message"].startswith("FORCEUNLOCK")]
    assert len(forced) == len(HOSTILE), forced
    assert all(s["client_name"] == "the-operator" and s["library"] == "observe.py 1.0"
               and s["address"].startswith("127.0.0.1:") for s in forced), forced
    messages = [s["message"] for s in seen if "client" in s]
    for part in ("connected", "closed: its client closed it", "closed: the connection broke",
                 "closed: CLIENT KILL", "closed: its user was changed or deleted",
                 "closed: failed to log in too often", "closed: protocol error", "CLIENT KILL closes 1 ",
                 "CONFIG SET requirepass (redacted)", "CONFIG SET max-wait 7s", "SHUTDOWN"):
        assert any(m.startswith(part) for m in messages), part
    assert not any("sesame" in line for line in lines)


def check_text(lines):
    for line in lines:
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
                        r"(debug|info|notice|warning|error) [a-z-]+: \S", line), line
        assert line.isprintable(), line
    assert any(' name="a\\nerror redis: gone"' in line for line in lines)
    assert not any("sesame" in line for line in lines)


# --- commands next to those of Redis -----------------------------------------------------


def both(stand):
    return (Client(str(stand.folder / "redis.sock")), Client(("127.0.0.1", stand.port)))


def slowlog_has_the_shape_of_redis(stand):
    seen = []
    for client in both(stand):
        client("CONFIG", "SET", "slowlog-log-slower-than", "0")
        client("SLOWLOG", "RESET")
        client("CLIENT", "SETNAME", "joe")
        client("ECHO", "x" * 300)
        client("EXISTS", *range(40))
        client("CONFIG", "SET", "slowlog-log-slower-than", "10000")
        entries = client("SLOWLOG", "GET", "-1")
        errors = [str(client("SLOWLOG", *words)) for words in
                  (["GET", "x"], ["GET", "-2"], ["GET", "1", "2"], ["NONSENSE"], [])]
        seen.append(([shape(e) for e in entries], [e[3] for e in entries], client("SLOWLOG", "LEN"),
                     client("SLOWLOG", "GET", "0"), errors, client("SLOWLOG", "RESET")))
        client.close()
    for theirs, ours in zip(*seen):
        assert theirs == ours, f"{theirs} and {ours}"


def monitor_has_the_shape_of_redis(stand):
    asked = (["PING", "y"], ["ECHO", b"\"\\\n\r\t\a\b\x00\xff~"], ["CONFIG", "GET", "port"],
             ["AUTH", "default", "pass"], ["HELLO", "2", "AUTH", "default", "pass"],
             ["EXISTS", "a", ""], ["NONSENSE"], ["ECHO"], ["MULTI"], ["PING", "x"], ["EXEC"])
    seen = []
    for client, other in zip(both(stand), both(stand)):
        lines = [client("MONITOR")]
        for words in asked:
            other(*words)
        other("ECHO", "end")
        while "end" not in lines[-1]:
            lines.append(client.read())
        assert client("RESET") == "RESET"
        lines = [re.sub(r"^\d{10}\.\d{6} \[0 [^]]+\]", "TIME", line) for line in lines]
        # latchd is a client of that Redis, too: now and then it sends TIME, PING and others.
        names = {words[0] for words in asked}
        seen.append([line for line in lines if '"' not in line or
                     (line.split('"')[1] in names and line != 'TIME "PING"')])
        other.close()
        client.close()
    # latchd runs what was queued after EXEC, which may take many turns.
    assert sorted(seen[0]) == sorted(seen[1]), f"{seen[0]} and {seen[1]}"


def latency_has_the_shape_of_redis(stand):
    seen = []
    for client in both(stand):
        client("LATENCY", "RESET")
        replies = [client("LATENCY", *words) for words in
                   (["LATEST"], ["HISTORY", "x"], ["RESET", "x"], ["RESET"])]
        errors = [str(client("LATENCY", *words)) for words in
                  (["NONSENSE"], [], ["HISTORY"], ["LATEST", "x"])]
        seen.append((shape(replies), errors))
        client.close()
    assert seen[0] == seen[1], f"{seen[0]} and {seen[1]}"


def a_late_redis_is_an_event(stand):
    client, other = both(stand)[1], both(stand)[1]
    client("CONFIG", "SET", "latency-monitor-threshold", "20")
    stand.redis.send_signal(signal.SIGSTOP)
    try:
        client.send("LOCK", "late")
        until(lambda: b" flags=b " in other("CLIENT", "LIST"), "it asks Redis")
        time.sleep(0.1)  # how late it is to be
    finally:
        stand.redis.send_signal(signal.SIGCONT)
    assert client.read() > 0
    event = until(lambda: [e for e in client("LATENCY", "LATEST") if e[0] == b"redis"],
                       "an event")[0]
    assert event[3] >= 100 and client("LATENCY", "HISTORY", "redis")[-1][1] >= 100, event
    assert client("LATENCY", "RESET", "redis") == 1
    client.close()
    other.close()


def long_waits_are_told_apart(stand):
    client, other = both(stand)[1], both(stand)[1]
    client("CONFIG", "SET", "slowlog-waits-longer-than", "50ms")
    client("SLOWLOG", "RESET")
    token = client("LOCK", "slow")
    assert other("LOCK", "slow", "WAIT", "100", "OWNER", "ann") is None
    other.send("LOCK", "slow")
    until(lambda: client("WAITERS", "slow"), "a waiter")
    time.sleep(0.1)  # how long it is to wait
    assert client("UNLOCK", "slow", "TOKEN", token) == 0
    assert other.read() > token
    client("HELLO", "3")
    granted, null = client("SLOWLOG", "WAITS")
    assert granted[b"outcome"] == b"granted" and null[b"outcome"] == b"null", (granted, null)
    assert null[b"owner"] == b"ann" and 100 <= null[b"waited"] < 10000, null
    assert granted[b"name"] == b"slow" and granted[b"kind"] == b"plain", granted
    assert granted[b"client"] == other("CLIENT", "ID"), granted
    assert client("SLOWLOG", "LEN") == 0 and client("SLOWLOG", "WAITS", "1") == [granted]
    client.close()
    other.close()


def info_has_fields_of_redis_or_documented_ones(page, stand):
    seen = []
    for client in both(stand):
        client("LOCK", "a")
        client("NONSENSE")
        client("INFO")  # counted when the next one looks; latchd asks Redis for it as well
        text = client("INFO", "everything").decode()
        fields = dict(line.split(":", 1) for line in text.split("\r\n")
                      if line and not line.startswith("#"))
        seen.append((fields, re.findall("^# (.*)", text, re.M), client("INFO", "nonsense")))
        client.close()
    theirs, ours = seen
    known = set(" ".join(re.findall(r"^\.It Cm (.*)", page.read_text(), re.M)).split())
    for field, value in ours[0].items():
        if field in theirs[0]:
            same = all(re.fullmatch(r"[\d.]+", v) for v in (value, theirs[0][field]))
            assert same or not re.fullmatch(r"[\d.]+", theirs[0][field]), (field, value)
        elif not re.match("cmdstat_|errorstat_|latency_.*percentiles_usec_|db0", field):
            assert field in known, f"{field} is not in the man page"
    assert set(theirs[1]) - {"Modules\r"} <= set(ours[1]), f"{theirs[1]} {ours[1]}"
    assert theirs[2] == ours[2] == b""
    for field in ("cmdstat_nonsense", "cmdstat_info", "errorstat_ERR"):
        assert (field in ours[0]) == (field in theirs[0]), field


def on_one_stand(binary, tests):
    """The cases, on one pair of servers."""
    stand = Stand(binary)
    return ([("both servers start", stand.__enter__)] +
            [(test.__name__.replace("_", " "), functools.partial(test, stand)) for test in tests] +
            [("and end", lambda: stand.__exit__(None, None, None))])


def main():
    binary = sys.argv[1]
    cases = [("every line of the log is JSON",
              lambda: run_lively(binary, "json", check_json)),
             ("no line of the log can be forged",
              lambda: run_lively(binary, "text", check_text))]
    page = pathlib.Path(sys.argv[2])
    info = functools.partial(info_has_fields_of_redis_or_documented_ones, page)
    functools.update_wrapper(info, info.func)
    cases += on_one_stand(binary, [info, long_waits_are_told_apart, slowlog_has_the_shape_of_redis,
                                   monitor_has_the_shape_of_redis,
                                   latency_has_the_shape_of_redis, a_late_redis_is_an_event])
    sys.exit(1 if tap(cases) else 0)


main()
