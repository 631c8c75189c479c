#!/usr/bin/env python3
"""latchctl over TLS: latchctl_tls.py LATCHD LATCHCTL. Prints TAP."""
import functools
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from latchctl_stand import CtlStand, expect, now, result, until
from stand import Certs, Skip, tap

LEASE_S = 3


class TlsStand(CtlStand):
    """The stand of latchctl, with a second port that speaks TLS."""

    def __init__(self, binary, latchctl, certs):
        super().__init__(binary, latchctl)
        self.certs = certs
        self.more += ["--tls-cert-file", certs.path("server.pem"), "--tls-key-file",
                      certs.path("server.key"), "--tls-ca-cert-file", certs.path("ca.pem"),
                      "--watchdog-timeout", f"{LEASE_S}s"]

    def __enter__(self):
        super().__enter__()
        self.environment["LATCHD_URL"] = f"rediss://127.0.0.1:{self.tls_port}"
        return self

    def tls(self, *words, ca="ca.pem"):
        """Its options, with the authority that signed the certificate."""
        return ["--cacert", self.certs.path(ca), *words]

    def refused(self, wanted, *words):
        got = self.run(*words, "why", "name")
        expect(got.returncode == 125 and wanted in got.stderr, got)


def each_subcommand_speaks_it(stand):
    script = "echo $LATCHD_TOKEN"
    got = stand.run(*stand.tls(), "run", "tls", "--", "sh", "-c", script)
    expect(got.returncode == 0 and int(got.stdout) > 0, got)
    beat = stand.start_beat("tls", *stand.tls())
    expect(" tls=TLSv1.3 " in stand.ask("CLIENT", "LIST"), "plain")
    for words in (["ls"], ["why", "tls"], ["top", "--once"]):
        got = stand.run(*stand.tls(), *words)
        expect(got.returncode == 0 and "tls" in got.stdout, got)
    got = stand.run(*stand.tls(), "force", "tls", "--any")
    expect(got.returncode == 0, got)
    expect(result(beat)[0] == 124, "it was told of the loss")


def options_are_those_of_redis_cli(stand):
    port, host = str(stand.tls_port), ["-h", "127.0.0.1"]
    folder = stand.folder / "authorities"
    folder.mkdir()
    (folder / "ca.pem").write_text(pathlib.Path(stand.certs.path("ca.pem")).read_text())
    stand.certs.openssl("rehash", str(folder))
    del stand.environment["LATCHD_URL"]
    try:
        for words in (["--tls", "-p", port, *host, *stand.tls()],
                      ["--tls", "-p", port, *host, "--cacertdir", str(folder)],
                      ["--tls", "-p", port, *host, "--insecure"],
                      ["-u", f"rediss://localhost:{port}", *stand.tls()],
                      ["--tls", "-p", port, *stand.tls("--sni", "localhost")]):
            got = stand.run(*words, "ls")
            expect(got.returncode == 0, (words, got))
    finally:
        stand.environment["LATCHD_URL"] = f"rediss://127.0.0.1:{port}"


def certificates_are_checked(stand):
    stand.certs.authority("stranger")
    refused = "its certificate is refused"
    stand.refused(refused)  # the system's authorities do not know it
    stand.refused(refused, *stand.tls(ca="stranger.pem"))
    stand.refused("mismatch", *stand.tls("--sni", "elsewhere"))
    got = stand.run(*stand.tls(ca="stranger.pem"), "run", "tls", "true")
    expect(got.returncode == 125 and refused in got.stderr, got)
    expect(stand.run(*stand.tls("--insecure", ca="stranger.pem"), "ls").returncode == 0)


def mistakes_are_named(stand):
    path = stand.certs.path
    for words, wanted in (
            (["--cacert", "/nonexistent"], "--cacert /nonexistent: No such file"),
            (["--cacertdir", path("ca.pem")], "--cacertdir"),
            (stand.tls("--cert", path("ca.key")), "--cert"),
            (stand.tls("--key", path("server.key")), "--key is nothing without --cert"),
            (stand.tls("--cert", path("server.pem"), "--key", path("ca.key")),
             "does not fit the certificate of --cert"),
            (stand.tls("--sni", ""), "--sni"),
            (stand.tls("--tls", "-s", "/tmp/socket"), "unix socket"),
            (["-s", "/nonexistent/socket"], "No such file"),
            (["--tls", "-u", f"redis://127.0.0.1:{stand.tls_port}"], "is refused"),
            (["-u", f"redis://127.0.0.1:{stand.port}", *stand.tls()], "need --tls"),
            (["-u", f"rediss://127.0.0.1:{stand.port}", *stand.tls()], "that is not TLS"),
            (["-u", f"redis://127.0.0.1:{stand.tls_port}"], "closed the connection"),
    ):
        stand.refused(wanted, *words)


def latchd_may_ask_for_a_certificate(stand):
    stand.certs.make("ann", "ann")
    ours = stand.tls("--cert", stand.certs.path("ann.pem"), "--key",
                     stand.certs.path("ann.key"))
    expect(stand.ask("CONFIG", "SET", "tls-auth-clients", "yes") == "+OK\r\n")
    try:
        expect(stand.run(*ours, "run", "tls", "true").returncode == 0)
        stand.refused("certificate required", *stand.tls())
        got = stand.run(*stand.tls(), "run", "tls", "true")
        expect(got.returncode == 125 and "certificate required" in got.stderr, got)
    finally:
        stand.ask("CONFIG", "SET", "tls-auth-clients", "no")


def the_lock_is_kept_through_a_restart(stand):
    """Renewed, and taken up again by a connection with a handshake of its own."""
    beat = stand.start_beat("kept", *stand.tls("--lease", str(LEASE_S)))
    for _ in range(2):
        before = now()
        stand.kill_daemon()
        stand.start_daemon()
        until(lambda: now() > before + LEASE_S + 1, "time does not pass")
        beat.beat.goes_on()
        expect(not stand.is_free("kept"))
    beat.send_signal(signal.SIGTERM)
    expect(result(beat) == (143, "", ""))
    expect(stand.is_free("kept"))


def a_certificate_is_replaced_while_the_lock_is_held(stand):
    """Its files are read again with each connection."""
    beat = stand.start_beat("kept", *stand.tls("--lease", "20"))
    with tempfile.TemporaryDirectory(dir=stand.folder) as folder:
        others = Certs(folder)
        for name in ("ca.pem", "server.pem", "server.key"):
            shutil.copy(others.path(name), stand.certs.path(name))
    stand.kill_daemon()
    stand.start_daemon()
    until(lambda: " tls=TLSv1.3 " in stand.ask("CLIENT", "LIST"), "it does not come back")
    beat.send_signal(signal.SIGTERM)
    expect(result(beat)[0] == 143)


def whoever_waits_comes_in_over_it(stand):
    beat = stand.start_beat("queue", *stand.tls())
    waiter = stand.start(*stand.tls(), "run", "queue", "--fair", "--", "echo", "in")
    until(lambda: stand.waiters("queue") == 1, "nobody waits")
    beat.send_signal(signal.SIGTERM)
    result(beat)
    expect(result(waiter)[:2] == (0, "in\n"))


def long_answers_arrive_whole(stand):
    """Of many records, which come in pieces."""
    names = [f"long-{number}-" + "x" * 200 for number in range(1000)]
    with socket.create_connection(("127.0.0.1", stand.port)) as conn:
        conn.sendall("".join(f"LOCK {name} LEASE 60000\r\n" for name in names).encode())
        got = b""
        while got.count(b"\r\n") < len(names):
            got += conn.recv(65536)
    out = stand.run(*stand.tls(), "ls", "--match", "long-*").stdout
    expect(all(name in out for name in names), len(out))


def a_server_that_never_shakes_hands_is_given_up(stand):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]  # which takes connections, and reads nothing
        got = subprocess.run(
            [stand.latchctl, "-u", f"rediss://127.0.0.1:{port}", "run", "--wait", "1",
             "deaf", "true"], capture_output=True, text=True, timeout=120, check=False)
    expect(got.returncode == 125 and "no answer in time" in got.stderr, got)


CASES = [
    each_subcommand_speaks_it, options_are_those_of_redis_cli, certificates_are_checked,
    mistakes_are_named, latchd_may_ask_for_a_certificate,
    the_lock_is_kept_through_a_restart, whoever_waits_comes_in_over_it,
    long_answers_arrive_whole, a_server_that_never_shakes_hands_is_given_up,
    a_certificate_is_replaced_while_the_lock_is_held,
]


def without_tls(latchctl):
    """A build without it says so."""
    got = subprocess.run([latchctl, "--tls", "ls"], capture_output=True, text=True,
                         check=False)
    expect(got.returncode == 125 and "built without" in got.stderr, got)


def main():
    version = subprocess.run([sys.argv[1], "--version"], capture_output=True, text=True,
                             check=True).stdout
    if "+tls" not in version:
        return 1 if tap([("a_build_without_it_says_so",
                          lambda: without_tls(sys.argv[2]))]) else 0
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        try:
            certs = Certs(folder)
        except Skip as why:
            print(f"1..0 # SKIP {why}")
            return 0
        with TlsStand(sys.argv[1], sys.argv[2], certs) as stand:
            cases = [(c.__name__, functools.partial(c, stand)) for c in CASES]
            return 1 if tap(cases) else 0


sys.exit(main())
