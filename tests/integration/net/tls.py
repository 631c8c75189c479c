#!/usr/bin/env python3
"""TLS on the wire, with Python's ssl, openssl s_client and redis-cli: tls.py LATCHD.

Prints TAP. What streams do by themselves is in tests/unit/io/test_stream_tls.c.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from children import until
from stand import Certs, Skip, Stand, run, tap

HANDSHAKE_S = 10  # TLS_HANDSHAKE_MS
DEADLINE_S = 20
PIPELINE = 20000


def need(tool):
    if shutil.which(tool) is None:
        raise Skip(f"{tool} is not installed")


def expect(good, got):
    if not good:
        raise AssertionError(f"unexpected: {got!r}")


def context(stand, ca="ca.pem", cert=None, version=None):
    ctx = ssl.create_default_context(cafile=stand.certs.path(ca))
    if cert is not None:
        ctx.load_cert_chain(stand.certs.path(f"{cert}.pem"), stand.certs.path(f"{cert}.key"))
    if version is not None:
        ctx.minimum_version = ctx.maximum_version = version
    return ctx


def raw(port):
    return socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)


def connect(stand, **how):
    return context(stand, **how).wrap_socket(raw(stand.tls_port), server_hostname="localhost",
                                             suppress_ragged_eofs=False)


def read(conn, count=1):
    """So many replies of one line."""
    data = b""
    while data.count(b"\r\n") < count:
        more = conn.recv(65536)
        if not more:
            raise AssertionError(f"the end after {data!r}")
        data += more
    return data


def ask(conn, line):
    conn.sendall(line.encode() + b"\r\n")
    return read(conn).decode().strip()


def comes_in(stand, **how):
    """Whether the server talks to it: with TLS 1.3 it says no after our handshake."""
    try:
        with connect(stand, **how) as conn:
            return ask(conn, "PING") == "+PONG"
    except (ssl.SSLError, ConnectionError, AssertionError):
        return False


def info(stand, field):
    with connect_plain(stand) as conn:
        conn.sendall(b"INFO\r\n")
        text = conn.recv(1 << 20).decode()
    line = next(x for x in text.splitlines() if x.startswith(field + ":"))
    return int(line.split(":")[1])


def connect_plain(stand):
    return raw(stand.port)


def cli(stand, *words):
    need("redis-cli")
    return run(["redis-cli", "--tls", "--cacert", stand.certs.path("ca.pem"), "-p",
                str(stand.tls_port), *words]).stdout.strip()


def redis_cli_locks_over_tls(stand):
    expect(cli(stand, "LOCK", "cli", "LEASE", "60000").isdigit(), "no token")
    expect(cli(stand, "LOCK", "cli", "WAIT", "0") == "", "granted twice")
    got = cli(stand, "CLIENT", "INFO")
    expect(" tls=TLSv1.3 " in got, got)
    with connect_plain(stand) as conn:
        conn.sendall(b"CLIENT INFO\r\n")
        got = read(conn, 2)
        expect(b" tls= " in got, got)
    got = run(["redis-cli", "--tls", "-p", str(stand.tls_port), "PING"]).stdout
    expect("certificate verify failed" in got, got)
    expect(info(stand, "tls_handshakes") > 0 and info(stand, "tls_port") == 0, "INFO")


def both_versions_speak(stand):
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with connect(stand, version=version) as conn:
            expect(ask(conn, "PING") == "+PONG", version)


def sessions_are_resumed(stand):
    version = ssl.TLSVersion.TLSv1_2
    ctx = context(stand, version=version)
    with ctx.wrap_socket(raw(stand.tls_port), server_hostname="localhost") as conn:
        ask(conn, "PING")
        session = conn.session
    with ctx.wrap_socket(raw(stand.tls_port), server_hostname="localhost",
                         session=session) as conn:
        expect(conn.session_reused, "a new session")
        expect(ask(conn, "PING") == "+PONG", "no reply")


def s_client_cannot_renegotiate_or_use_old_versions(stand):
    base = ["openssl", "s_client", "-connect", f"127.0.0.1:{stand.tls_port}", "-CAfile",
            stand.certs.path("ca.pem")]
    done = subprocess.run([*base, "-tls1_1", "-cipher", "ALL@SECLEVEL=0"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=DEADLINE_S, check=False)
    expect(done.returncode != 0, done.stdout)
    done = subprocess.run([*base, "-tls1_2"], input="R\n", capture_output=True, text=True,
                          timeout=DEADLINE_S, check=False)
    expect("no renegotiation" in done.stderr + done.stdout, done.stderr)


def what_is_not_tls_is_closed(stand):
    failed = info(stand, "tls_handshakes_failed")
    for words in (b"PING\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", os.urandom(512),
                  b"\x16\x03\x01" + bytes(600)):
        with raw(stand.tls_port) as conn:
            conn.sendall(words)
            conn.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                got = conn.recv(1 << 16)
                expect(b"PONG" not in got and b"ERR" not in got, got)
                while conn.recv(1 << 16):
                    pass
    until(lambda: info(stand, "tls_handshakes_failed") == failed + 4, "failures counted")


def tls_on_the_plain_port_is_told_at_once(stand):
    start = time.monotonic()
    try:
        context(stand).wrap_socket(raw(stand.port), server_hostname="localhost")
    except ssl.SSLError:
        expect(time.monotonic() - start < 5, "slow")
    else:
        raise AssertionError("the plain port speaks TLS")


def config_set(stand, *words):
    with connect_plain(stand) as conn:
        return ask(conn, "CONFIG SET " + " ".join(words))


def certificates_of_clients_are_checked(stand):
    certs = stand.certs
    certs.authority("stranger")
    certs.make("ann", "ann")
    certs.make("old", "old", days=-1)
    certs.make("wrong", "ann", authority="stranger")
    try:
        expect(comes_in(stand), "nobody needs one yet")
        expect(config_set(stand, "tls-auth-clients", "yes") == "+OK", "CONFIG SET")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            expect(comes_in(stand, cert="ann", version=version), version)
            for cert in (None, "old", "wrong"):
                expect(not comes_in(stand, cert=cert, version=version), (cert, version))
        expect(config_set(stand, "tls-auth-clients", "optional") == "+OK", "CONFIG SET")
        expect(comes_in(stand) and comes_in(stand, cert="ann"), "optional")
        expect(not comes_in(stand, cert="wrong"), "a wrong one")
        got = config_set(stand, "tls-ca-cert-file", '""')
        expect("tls-auth-clients needs tls-ca-cert-file" in got, got)
    finally:
        config_set(stand, "tls-auth-clients", "no")


def who(stand, cert=None):
    with connect(stand, cert=cert) as conn:
        conn.sendall(b"ACL WHOAMI\r\n")
        return read(conn, 2).split(b"\r\n")[1].decode()


def a_certificate_says_who_its_client_is(stand):
    stand.certs.make("bob", "bob")
    stand.certs.make("eve", "eve")
    with connect_plain(stand) as admin:
        for line in ("ACL SETUSER bob on +acl|whoami", "CONFIG SET tls-auth-clients optional",
                     "CONFIG SET tls-ca-cert-file " + stand.certs.path("ca.pem")):
            expect(ask(admin, line) == "+OK", line)
        try:
            expect(who(stand, "bob") == "default", "off")
            expect(ask(admin, "CONFIG SET tls-auth-clients-user cn") == "+OK", "CONFIG SET")
            expect(who(stand, "bob") == "bob", "bob")
            expect(who(stand, "eve") == "default", "there is no such user")
            expect(who(stand) == "default", "no certificate")
        finally:
            for line in ("CONFIG SET tls-auth-clients-user off", "ACL DELUSER bob",
                         "CONFIG SET tls-auth-clients no"):
                ask(admin, line)


def serial(conn):
    return conn.getpeercert()["serialNumber"]


def a_certificate_is_replaced_while_clients_stay(stand):
    with connect(stand) as before:
        stand.certs.make("server", "localhost")
        stand.daemon.send_signal(signal.SIGHUP)

        def is_new():
            with connect(stand) as now:
                return serial(now) != serial(before)
        until(is_new, "the new certificate")
        expect(ask(before, "PING") == "+PONG", "the old connection")
        got = config_set(stand, "tls-key-file", stand.certs.path("ca.key"))
        expect("does not fit the certificate" in got, got)
        got = config_set(stand, "tls-cert-file", "/nonexistent")
        expect("No such file" in got, got)
        expect(comes_in(stand), "after a refused change")


def a_long_pipeline_is_answered_in_order(stand):
    with connect(stand) as conn:
        conn.settimeout(DEADLINE_S)
        asked = b"".join(b"ECHO %d\r\n" % i for i in range(PIPELINE))
        wanted = b"".join(b"$%d\r\n%d\r\n" % (len(str(i)), i) for i in range(PIPELINE))
        got = b""
        at = 0
        while len(got) < len(wanted):
            at += conn.send(asked[at:at + 50000]) if at < len(asked) else 0
            got += conn.recv(1 << 16)
        expect(got == wanted, "something else")


def a_large_request_and_reply(stand):
    text = os.urandom(500000)
    with connect(stand) as conn:
        conn.sendall(b"*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n" % (len(text), text))
        wanted = b"$%d\r\n%s\r\n" % (len(text), text)
        got = b""
        while len(got) < len(wanted):
            more = conn.recv(1 << 16)
            expect(more, "the end")
            got += more
        expect(got == wanted, "something else")


def too_large_a_request_is_refused(stand):
    with connect(stand) as conn:
        conn.sendall(b"*2\r\n$4\r\nECHO\r\n$2000000\r\n")
        got = read(conn)
        expect(got.startswith(b"-ERR Protocol error"), got)


def many_at_once_come_in(stand):
    ctx = context(stand)
    conns = []
    for _ in range(100):
        conn = ctx.wrap_socket(raw(stand.tls_port), server_hostname="localhost",
                               do_handshake_on_connect=False)
        conn.setblocking(False)
        conns.append(conn)
    waiting = list(conns)

    def all_are_in():
        for conn in list(waiting):
            with contextlib.suppress(ssl.SSLWantReadError):
                conn.do_handshake()
                waiting.remove(conn)
        return not waiting
    until(all_are_in, "all handshakes end")
    until(lambda: info(stand, "tls_clients") >= 100, "they are counted")
    for conn in conns:
        conn.close()
    until(lambda: info(stand, "tls_clients") == 0, "they are gone")


def who_leaves_the_queue_is_out(stand):
    with connect(stand) as holder, connect(stand) as third:
        token = ask(holder, "LOCK queue")
        for polite in (True, False):
            waiter = connect(stand)
            waiter.sendall(b"LOCK queue\r\n")
            until(lambda: waiting(stand, "queue") == 1, "it waits")
            if polite:
                waiter.settimeout(DEADLINE_S)
                with contextlib.suppress(ssl.SSLError):
                    waiter.unwrap()
            waiter.close()
            until(lambda: waiting(stand, "queue") == 0, "it is out")
        expect(ask(holder, f"UNLOCK queue TOKEN {token[1:]}") == ":0", "UNLOCK")
        expect(ask(third, "LOCK queue WAIT 0")[0] == ":", "still held")


def waiting(stand, name):
    with connect_plain(stand) as conn:
        conn.sendall(b"WAITERS %s\r\n" % name.encode())
        return int(read(conn).split(b"\r\n")[0][1:])


def a_grant_that_nobody_reads_is_taken_back(stand):
    """The waiter is gone, and the daemon, which slept, grants before it sees that."""
    with connect_plain(stand) as holder, connect_plain(stand) as third:
        for _ in range(5):
            ask(holder, "LOCK lost")
            waiter = connect(stand)
            waiter.sendall(b"LOCK lost\r\n")
            until(lambda: waiting(stand, "lost") == 1, "it waits")
            stand.daemon.send_signal(signal.SIGSTOP)
            holder.sendall(b"UNLOCK lost\r\n")
            waiter.close()
            stand.daemon.send_signal(signal.SIGCONT)
            expect(read(holder) == b":0\r\n", "UNLOCK")
            expect(ask(third, "LOCK lost WAIT 5000")[0] == ":", "nobody took it back")
            expect(ask(third, "UNLOCK lost") == ":0", "UNLOCK")


def half_an_end_is_answered(stand):
    need("socat")
    done = subprocess.run(
        ["socat", "-t", str(DEADLINE_S), "-",
         f"OPENSSL:127.0.0.1:{stand.tls_port},cafile={stand.certs.path('ca.pem')}"],
        input=b"PING\r\nECHO x\r\n", capture_output=True, timeout=DEADLINE_S, check=False)
    expect(done.stdout == b"+PONG\r\n$1\r\nx\r\n", done)


def the_end_is_said(stand):
    with connect(stand) as conn:
        conn.sendall(b"QUIT\r\n")
        expect(read(conn) == b"+OK\r\n", "QUIT")
        expect(conn.recv(1) == b"", "not the end")  # a cut-off one would raise


def mistakes_are_named(binary, certs):
    def check(*words):
        done = run([binary, "--check-config", *words])
        return done.returncode, done.stdout

    good = ["--tls-port", "auto", "--tls-cert-file", certs.path("server.pem"),
            "--tls-key-file", certs.path("server.key")]
    expect(check(*good) == (0, "The configuration is right.\n"), check(*good))
    for words, wanted in [
            (["--tls-port", "1"], "tls-cert-file is missing"),
            (good[:4], "holds no private key"),
            ([*good[:5], certs.path("ca.key")], "does not fit the certificate"),
            ([*good, "--tls-auth-clients", "yes"], "needs tls-ca-cert-file"),
            ([*good, "--tls-auth-clients", "maybe"], "must be one of: no yes optional"),
            ([*good, "--tls-ca-cert-file", "/nonexistent"], "No such file")]:
        code, text = check(*words)
        expect(code == 2 and wanted in text, text)


def the_kernel_may_choose_the_port(binary, certs):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        daemon = subprocess.Popen(
            [binary, "--port", "0", "--tls-port", "auto", "--bind", "127.0.0.1",
             "--state-dir", folder, "--tls-cert-file", certs.path("server.pem"),
             "--tls-key-file", certs.path("server.key"), "--log-format", "text"],
            stderr=subprocess.PIPE, text=True)
        log = ""
        for line in daemon.stderr:
            log += line
            if "server: ready" in line:
                break
        port = int(log.split("listening on 127.0.0.1:")[1].split(" with TLS")[0])
        ctx = ssl.create_default_context(cafile=certs.path("ca.pem"))
        with ctx.wrap_socket(raw(port), server_hostname="localhost") as conn:
            got = ask(conn, "PING")
        daemon.terminate()
        daemon.communicate(timeout=DEADLINE_S)
        expect(got == "+PONG" and log.count("listening on") == 1, log)
        expect(daemon.returncode == 0, daemon.returncode)


class Slow:
    """Handshakes that never end, begun before everything else."""

    def __init__(self, stand):
        self.start = time.monotonic()
        self.conns = [raw(stand.tls_port) for _ in range(3)]
        self.conns[1].sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        self.trickle = self.conns[2]
        self.trickle.sendall(b"\x16")

    def are_ended(self):
        for conn in self.conns:
            conn.settimeout(HANDSHAKE_S + 10)
            with contextlib.suppress(ConnectionError):
                expect(conn.recv(1) == b"", "bytes")
        took = time.monotonic() - self.start
        expect(took >= HANDSHAKE_S - 0.5, took)


CASES = [
    redis_cli_locks_over_tls, both_versions_speak, sessions_are_resumed,
    s_client_cannot_renegotiate_or_use_old_versions, what_is_not_tls_is_closed,
    tls_on_the_plain_port_is_told_at_once, certificates_of_clients_are_checked,
    a_certificate_says_who_its_client_is, a_certificate_is_replaced_while_clients_stay,
    a_long_pipeline_is_answered_in_order, a_large_request_and_reply,
    too_large_a_request_is_refused, many_at_once_come_in, who_leaves_the_queue_is_out,
    a_grant_that_nobody_reads_is_taken_back, half_an_end_is_answered, the_end_is_said,
]


def main():
    binary = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        try:
            if "+tls" not in run([binary, "--version"]).stdout:
                raise Skip("this latchd was built without TLS")
            certs = Certs(folder)
        except Skip as why:
            print(f"1..0 # SKIP {why}")
            return 0
        with Stand(binary, certs=certs) as stand:
            slow = Slow(stand)
            cases = [(c.__name__, lambda c=c: c(stand)) for c in CASES]
            cases += [(c.__name__, lambda c=c: c(binary, certs))
                      for c in (mistakes_are_named, the_kernel_may_choose_the_port)]
            cases.append(("slow_handshakes_are_ended", slow.are_ended))
            return 1 if tap(cases) else 0


sys.exit(main())
