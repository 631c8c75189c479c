#!/usr/bin/env python3
"""Protected mode, in a network of its own where there is an address that is not the
loopback's: protected.py LATCHD. Prints TAP; skipped where such a network cannot be had.
"""
import ctypes
import fcntl
import pathlib
import socket
import struct
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import Skip, run, tap
from children import Child, until
from resp import Wire
from servers import Redis

CLONE_NEWNET = 0x40000000
SIOCSIFADDR, SIOCSIFFLAGS = 0x8916, 0x8914
IFF_UP, IFF_RUNNING = 0x1, 0x40
ELSEWHERE = "192.0.2.7"  # for documentation: nobody's
DEADLINE_S = 20


def network():
    """From here on this process has no other: 127.0.0.1 and ELSEWHERE."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP | IFF_RUNNING))
        fcntl.ioctl(s, SIOCSIFADDR,
                    struct.pack("16sHH4s16x", b"lo:1", socket.AF_INET, 0,
                                socket.inet_aton(ELSEWHERE)))


class Stand:
    """Two daemons that can be reached from elsewhere. The second one has a socket of
    systemd, for IPv4 and IPv6, where clients of IPv4 have addresses of IPv6."""

    def __init__(self, program, folder):
        self.folder = folder
        self.redis = Redis(folder).ready()
        self.both = socket.create_server(("::", 5626), family=socket.AF_INET6,
                                         dualstack_ipv6=True)
        handed = f"exec 3<&{self.both.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\""
        self.has_http = "+http" in run([program, "--version"]).stdout
        http = ["--http-bind", "0.0.0.0", "--http-port", "5680", "--http-api", "yes"]
        self.daemons = [
            self.daemon(5625, program, "--bind", f"127.0.0.1 {ELSEWHERE}", "--port", 5625,
                        "--unixsocket", folder / "5625.sock", *(http if self.has_http else [])),
            self.daemon(5626, "sh", "-c", handed, program, pass_fds=[self.both.fileno()])]
        for daemon in self.daemons:
            until(lambda d=daemon: "server: ready" in d.said(), "latchd is ready")

    def daemon(self, port, *words, **how):
        return Child([*words, "--redis", self.redis.url], self.folder / f"{port}.log", **how)

    def __enter__(self):
        return self

    def __exit__(self, *what):
        for child in (*self.daemons, self.redis):
            child.stop()
        self.both.close()

    def wire(self):
        return Wire(self.folder / "5625.sock")

    def set(self, *words):
        with self.wire() as wire:
            assert wire.ask("CONFIG", "SET", *words) == "OK"


def hears(address, line=b"PING\r\n", port=5625):
    """What a client of that address, which is the server's as well, is told."""
    with socket.create_connection((address, port), DEADLINE_S) as s:
        s.sendall(line)
        return s.makefile("rb").readline().decode()


def others_are_told_what_to_do(stand):
    for daemon, port in zip(stand.daemons, (5625, 5626)):
        for _ in range(2):
            got = hears(ELSEWHERE, port=port)
            assert got.startswith("-DENIED latchd is in protected mode"), got
            assert "requirepass" in got and "protected-mode no" in got, got
        assert daemon.said().count("protected mode: ") == 1  # not once for each
    with stand.wire() as wire:
        assert wire.info("rejected_connections") == "2"


def this_machine_is_served(stand):
    for port in (5625, 5626):
        assert hears("127.0.0.1", port=port) == "+PONG\r\n"
    with stand.wire() as wire:
        assert wire.ask("PING") == "PONG"


def a_password_ends_it(stand):
    stand.set("requirepass", "secret")
    assert hears(ELSEWHERE) == "-NOAUTH Authentication required.\r\n"
    assert hears(ELSEWHERE, b"AUTH secret\r\n") == "+OK\r\n"
    with stand.wire() as wire:
        wire.ask("AUTH", "secret")
        wire.ask("CONFIG", "SET", "requirepass", "")
    assert hears(ELSEWHERE).startswith("-DENIED")


def it_can_be_turned_off(stand):
    stand.set("protected-mode", "no")
    assert hears(ELSEWHERE) == "+PONG\r\n"
    stand.set("protected-mode", "yes")
    assert hears(ELSEWHERE).startswith("-DENIED")


def it_counts_for_http_as_well(stand):
    if not stand.has_http:
        raise Skip("built without HTTP")
    ask = b"GET /v1/locks/job HTTP/1.1\r\nHost: latchd\r\n\r\n"
    assert hears(ELSEWHERE, ask, 5680) == "HTTP/1.1 403 Forbidden\r\n"
    assert hears("127.0.0.1", ask, 5680) == "HTTP/1.1 200 OK\r\n"
    assert "http-api sends passwords" in stand.daemons[0].said()
    stand.set("requirepass", "secret")
    assert hears(ELSEWHERE, ask, 5680) == "HTTP/1.1 401 Unauthorized\r\n"
    ask = ask.replace(b"\r\n\r\n", b"\r\nAuthorization: Basic OnNlY3JldA==\r\n\r\n")
    assert hears(ELSEWHERE, ask, 5680) == "HTTP/1.1 200 OK\r\n"


CASES = [others_are_told_what_to_do, this_machine_is_served, a_password_ends_it,
         it_can_be_turned_off, it_counts_for_http_as_well]


def main():
    try:
        network()
    except OSError as why:
        print(f"1..0 # SKIP no network of our own: {why}")
        return 0
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder, \
            Stand(sys.argv[1], pathlib.Path(folder)) as stand:
        return 1 if tap([(c.__name__, lambda c=c: c(stand)) for c in CASES]) else 0


sys.exit(main())
