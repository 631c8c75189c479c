#!/usr/bin/env python3
"""Spans, as collectors get them: traces.py LATCHD [BUILD_DIR]. Prints TAP.

With a folder for what registries give, only the cases that need that. With COLLECTOR set,
the receiver of a real collector is one of them, which Go builds in a minute.
"""
import base64
import contextlib
import functools
import http.client
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2] / "support"), str(HERE.parents[2] / "clients")]
from children import Child, until  # noqa: E402
from stand import Skip, run, tap  # noqa: E402
from servers import PORTS, Latchd, Rack, Redis  # noqa: E402
import kits  # noqa: E402

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"
NO_PARENT = f"00-{TRACE.upper()}-{PARENT}-01"  # W3C has small letters
NAME, REQUEST = b"job\xff<", "0123456789abcdef"
HOUR_MS = 3_600_000
QUEUE_MAX = 2048
MANY = 3 * QUEUE_MAX
PATIENCE_S = 60


class Collector:
    """Keeps what is posted to it. `status`: of its answers; None: it never answers."""

    def __init__(self, port, status=200):
        self.status, self.posts = status, []
        self.over = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.posts.append((self.path, dict(self.headers), body))
                if outer.status is None:
                    outer.over.wait()
                    return
                self.send_response(outer.status)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def spans(self):
        return [span for _, _, body in self.posts for span in spans_of(body)]


def spans_of(body):
    (resource,) = json.loads(body)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    return scope["spans"]


def attributes(of):
    return {a["key"]: next(iter(a["value"].values())) for a in of["attributes"]}


@contextlib.contextmanager
def daemon(program, port, least="10ms", *options):
    """The lock by which it shows that it serves is none of those that are traced."""
    with tempfile.TemporaryDirectory() as scratch, Rack(scratch) as rack:
        redis = rack.keep(Redis(rack.folder)).ready()
        latchd = rack.keep(Latchd(program, rack.folder, "latchd", redis.url,
                                  "--traces-min", least, *options)).ready()
        until(lambda: latchd.info("holds") == "0", "nobody holds", PATIENCE_S)
        with latchd.wire() as wire:
            wire.ask("CONFIG", "SET", "traces-url", f"http://127.0.0.1:{port}/v1/traces")
        yield latchd


def waited_ms(wire, name):
    """By its only waiter."""
    return max((row[row.index("waited") + 1] for row in wire.ask("WAITERS", name)), default=0)


def three_spans(latchd, name=NAME, least="10ms"):
    """A wait that ends with null, one that is granted, and the hold before it. On a busy
    machine the first LOCK is a wait of that length, too, which is not to be told."""
    with latchd.wire() as one, latchd.wire() as other:
        one.ask("CONFIG", "SET", "traces-min", "1h")
        token = one.ask("LOCK", name, "TRACE", SAMPLED)
        one.ask("CONFIG", "SET", "traces-min", least)
        assert other.ask("LOCK", name, "WAIT", 20, "OWNER", "ann", "TRACE", NO_PARENT) is None
        assert other.ask("LOCK", name, "WAIT", 20, "TRACE", UNSAMPLED) is None
        other.send("LOCK", name, "ID", REQUEST, "LEASE", HOUR_MS, "TRACE", SAMPLED)
        until(lambda: waited_ms(one, name) >= 20, "a wait is long enough to be told")
        assert one.ask("UNLOCK", name, "TOKEN", token) == 0
        granted = other.reply()
        assert granted > token
        return token, granted


def a_span_tells_of_its_wait_or_hold(program):
    with Collector(PORTS.take()) as collector, \
            daemon(program, collector.server.server_port) as latchd:
        began = time.time_ns()
        token, granted = three_spans(latchd)
        until(lambda: latchd.info("traces_sent") == "3", "three spans are sent", PATIENCE_S)
        ended = time.time_ns()
        null, wait, hold = by_kind(collector.spans())
        for span in (null, wait, hold):
            took = int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])
            assert took >= 10_000_000 and int(span["endTimeUnixNano"]) <= ended, span
            assert int(span["startTimeUnixNano"]) >= began - 10_000_000, span
            known = attributes(span)
            assert known["latchd.lock.name"] == "job\\xff<" and known["latchd.lock.kind"] == "plain"
        assert len({s["spanId"] for s in (null, wait, hold)}) == 3
        for span in (wait, hold):
            assert (span["traceId"], span["parentSpanId"]) == (TRACE, PARENT), span
        assert null["traceId"] != TRACE and "parentSpanId" not in null, null
        assert null["status"] == {"message": "not granted in time", "code": 2}, null
        assert wait["status"] == hold["status"] == {"code": 1}, (wait, hold)
        assert attributes(null)["latchd.owner"] == "ann"
        assert attributes(wait)["latchd.request.id"] == REQUEST
        assert attributes(wait)["latchd.token"] == str(granted)
        assert attributes(hold)["latchd.token"] == str(token)
        assert attributes(hold)["client.address"] == f"unix:{latchd.socket}", hold
        path, headers, _ = collector.posts[0]
        assert path == "/v1/traces" and headers["Content-Type"] == "application/json", headers


def by_kind(spans):
    (hold,) = [s for s in spans if s["name"] == "hold"]
    (null,) = [s for s in spans if attributes(s)["latchd.outcome"] == "null"]
    (wait,) = [s for s in spans if attributes(s)["latchd.outcome"] == "granted"]
    return null, wait, hold


CHECK = """
import sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
json_format.Parse(sys.stdin.read(), trace_service_pb2.ExportTraceServiceRequest())
"""


def what_is_posted_is_a_request_of_otlp(program, build):
    """Protobuf refuses a field that the schema does not have, or has with another type."""
    try:
        kit = kits.make("otlp", build)
    except kits.Missing as why:
        raise Skip(why) from why
    with Collector(PORTS.take()) as collector, \
            daemon(program, collector.server.server_port) as latchd:
        three_spans(latchd)
        until(lambda: latchd.info("traces_sent") == "3", "three spans are sent", PATIENCE_S)
        for _, _, body in collector.posts:
            request = json.loads(body)
            for span in spans_of(body):
                assert len(span["traceId"]) == 32 and len(span["spanId"]) == 16, span
            for span in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
                for key in {"traceId", "spanId", "parentSpanId"} & set(span):
                    # OTLP has hex where the JSON of Protobuf has base64.
                    span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
            done = subprocess.run([sys.executable, "-c", CHECK], input=json.dumps(request),
                                  env={**os.environ, "PYTHONPATH": str(kit)}, text=True,
                                  check=False, capture_output=True)
            assert done.returncode == 0, done.stderr


def hold_many(wire):
    """Holds whose leases end together."""
    for i in range(MANY):
        wire.send("LOCK", f"n{i}", "LEASE", 100)
    assert all(wire.reply() for _ in range(MANY))


def told(latchd):
    return [int(latchd.info(f"traces_{word}")) for word in ("sent", "dropped", "queued")]


def a_collector_that_does_not_answer_costs_no_lock(program):
    with Collector(PORTS.take(), status=None) as collector, \
            daemon(program, collector.server.server_port, "1ms") as latchd, \
            latchd.wire() as wire:
        hold_many(wire)
        until(lambda: sum(told(latchd)) >= MANY, "all spans are counted", PATIENCE_S)
        sent, dropped, queued = told(latchd)
        assert sent == 0 and queued <= 2 * QUEUE_MAX and dropped >= MANY - 2 * QUEUE_MAX
        until(lambda: collector.posts, "a post", PATIENCE_S)
        assert wire.ask("LOCK", NAME, "LEASE", HOUR_MS) > 0
        latchd.leave()  # it does not wait for the collector


def spans_wait_for_a_collector_that_is_down(program):
    port = PORTS.take()
    with daemon(program, port) as latchd:
        three_spans(latchd)
        until(lambda: "does not take spans: connection refused" in latchd.said(), "it is said",
              PATIENCE_S)
        with Collector(port, status=503) as busy:
            until(lambda: busy.posts, "it is tried again", PATIENCE_S)
            until(lambda: "does not take spans: HTTP status 503" in latchd.said(), "it is said",
                  PATIENCE_S)
            assert told(latchd) == [0, 0, 3]
            busy.status = 200
            until(lambda: told(latchd) == [3, 0, 0], "the spans are sent", PATIENCE_S)
            until(lambda: "takes spans again" in latchd.said(), "that is said, too", PATIENCE_S)
            assert len(by_kind(spans_of(busy.posts[-1][2]))) == 3


def what_a_collector_refuses_is_dropped(program):
    with Collector(PORTS.take(), status=400) as collector, \
            daemon(program, collector.server.server_port) as latchd:
        three_spans(latchd)
        until(lambda: told(latchd) == [0, 3, 0], "they are dropped", PATIENCE_S)
        assert "HTTP status 400: correct traces-url" in latchd.said()


def the_keys_change_while_it_runs(program):
    with Collector(PORTS.take()) as first, Collector(PORTS.take()) as second, \
            daemon(program, first.server.server_port, "10m") as latchd, \
            latchd.wire() as wire:
        three_spans(latchd, least="10m")
        url = f"http://localhost:{second.server.server_port}"
        wire.ask("CONFIG", "SET", "traces-url", url)
        three_spans(latchd, "b")
        until(lambda: told(latchd) == [3, 0, 0], "they are sent", PATIENCE_S)
        assert not first.posts and second.posts[0][0] == "/"
        wire.ask("CONFIG", "SET", "traces-url", "")
        three_spans(latchd, "c")
        assert told(latchd) == [3, 0, 0]


def a_real_collector_takes_them(program, build):
    if "COLLECTOR" not in os.environ:
        raise Skip("COLLECTOR is not set")
    try:
        kit = kits.make("collector", build)
    except kits.Missing as why:
        raise Skip(why) from why
    port = PORTS.take()
    with daemon(program, port) as latchd, \
            Child([kit / "collector", f"127.0.0.1:{port}"], latchd.socket.with_suffix(".got")) as real:
        until(lambda: "ready" in real.said(), "it is ready", PATIENCE_S)
        token, _ = three_spans(latchd)
        until(lambda: told(latchd) == [3, 0, 0], "they are sent", PATIENCE_S)
        got = [line for line in real.said().splitlines() if line.startswith("{")]
        null, wait, hold = by_kind([s for line in got for s in spans_of(line)])
        assert wait["parentSpanId"] == hold["parentSpanId"] == PARENT
        assert null["status"]["code"] == 2 and attributes(hold)["latchd.token"] == str(token)


def a_header_of_http_is_the_parent(program):
    if "+http" not in run([program, "--version"]).stdout:
        raise Skip("built without HTTP")
    with Collector(PORTS.take()) as collector:
        port = PORTS.take()
        with daemon(program, collector.server.server_port, "10ms", "--http-port", port,
                    "--http-api", "yes") as latchd:
            for header in (SAMPLED, NO_PARENT, "nonsense"):
                web = http.client.HTTPConnection("127.0.0.1", port, PATIENCE_S)
                web.request("PUT", f"/v1/locks/{header}?lease=2s&id={REQUEST}",
                            headers={"traceparent": header})
                assert web.getresponse().status == 200, header
                web.close()

            def ended():
                return [s for s in collector.spans() if s["name"] == "hold"]
            until(lambda: len(ended()) == 3, "they are sent", PATIENCE_S)
            for span in ended():
                known = attributes(span)
                is_child = span.get("parentSpanId") == PARENT and span["traceId"] == TRACE
                assert is_child == (known["latchd.lock.name"] == SAMPLED), span
                assert known["latchd.outcome"] == "expired" and span["status"] == {}, span


def main():
    program, *build = sys.argv[1:]
    cases = [a_span_tells_of_its_wait_or_hold, a_collector_that_does_not_answer_costs_no_lock,
             spans_wait_for_a_collector_that_is_down, what_a_collector_refuses_is_dropped,
             the_keys_change_while_it_runs, a_header_of_http_is_the_parent]
    with_build = [what_is_posted_is_a_request_of_otlp, a_real_collector_takes_them]
    sys.exit(1 if tap(
        [(case.__name__.replace("_", " "),
          functools.partial(case, program, *(pathlib.Path(b).resolve() for b in build)))
         for case in (with_build if build else cases)], 4) else 0)


if __name__ == "__main__":
    main()
