"""A machine that has no more: files, memory, room for the log."""
import fcntl
import os
import resource
import signal
import tempfile
import time

from children import until
from floods import MIB, Peer, Target, close_all, encode, is_sanitized, limit_files, rage
from resp import Error, Wire
from stand import Skip

AT_REST = 0.5  # of a processor


class Restartable(Target):
    """One that may end before its time."""

    def __exit__(self, *exception):
        self.admin.close()
        self.daemon.kill()
        self.daemon.wait()
        self.redis.kill()
        self.redis.wait()
        for listener in self.listeners:
            listener.close()
        self.scratch.cleanup()


def files_that_run_out_are_no_end(program):
    """Whoever has a connection goes on; who comes is turned away, and nothing spins."""
    with Target(program, level="error") as target:
        def starve(_):
            soft, _ = resource.prlimit(target.daemon.pid, resource.RLIMIT_NOFILE)
            limit_files(target.daemon.pid, target.fds() + 20)
            peers = [Peer(target.port, b"PING\r\n") for _ in range(100)]
            rage(peers, 60, lambda: sum(peer.over for peer in peers) >= 70)
            assert sum(peer.over for peer in peers) >= 70
            start, used = time.monotonic(), target.cpu_s()
            time.sleep(0.5)
            share = (target.cpu_s() - used) / (time.monotonic() - start)
            assert share < AT_REST, f"it spins: {share:.2f} of a processor"
            close_all(peers)
            limit_files(target.daemon.pid, soft)

        target.attacked(starve, 16)
        with Wire(target.port) as wire:
            assert wire.ask("PING") == "PONG"


def without_a_file_for_redis_it_comes_back(program):
    """The link to Redis breaks when there is no file for another one."""
    with Target(program, "--redis-timeout", "300ms", level="error") as target:
        before = target.state()
        soft, _ = resource.prlimit(target.daemon.pid, resource.RLIMIT_NOFILE)
        token = target.admin.ask("LOCK", "held")
        limit_files(target.daemon.pid, target.fds())
        peers = [Peer(target.port) for _ in range(50)]
        with Wire(target.redis_socket) as redis:
            redis.ask("CLIENT", "KILL", "TYPE", "pubsub")
            redis.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        target.daemon.send_signal(signal.SIGHUP)  # needs files as well
        start, used = time.monotonic(), target.cpu_s()
        try:
            target.admin.ask("LOCK", "other", "WAIT", 0)
        except Error as error:
            assert str(error).startswith("BACKEND "), error
        time.sleep(0.5)
        share = (target.cpu_s() - used) / (time.monotonic() - start)
        assert share < AT_REST, f"it spins: {share:.2f} of a processor"
        close_all(peers)
        limit_files(target.daemon.pid, soft)
        assert target.admin.ask("LOCK", "another", "WAIT", 30000) > token
        for name in ("another", "held"):
            assert target.admin.ask("UNLOCK", name) == 0
        try:
            target.admin.ask("UNLOCK", "other")
        except Error as error:
            assert str(error).startswith(("NOTHELD ", "ERR TOKEN")), error
        until(lambda: target.state() == before, f"{before}, not {target.state()}")


def without_memory_it_ends_and_says_so(program):
    """What it held stays in Redis for its lease, and is found by who comes after it."""
    if is_sanitized(program):
        raise Skip("AddressSanitizer needs all addresses")
    with Restartable(program, "--output-buffer-limit", "1gb", level="error") as target:
        token = target.admin.ask("LOCK", "held", "LEASE", 60000)
        target.log = tempfile.TemporaryFile()
        target.daemon.send_signal(signal.SIGTERM)
        target.daemon.wait()
        target.start_daemon()
        with Wire(target.port) as wire:
            assert wire.ask("RENEW", "held", "TOKEN", token, "LEASE", 60000) > 0
        size = int(open(f"/proc/{target.daemon.pid}/statm").read().split()[0])
        room = size * resource.getpagesize() + 64 * MIB
        resource.prlimit(target.daemon.pid, resource.RLIMIT_AS, (room, room))
        peer = Peer(target.port, encode("COMMAND", "DOCS") * 200, reads=False, small=True)
        rage([peer], 60)
        code = target.daemon.wait(60)
        assert code == -signal.SIGABRT, code
        target.log.seek(0)
        said = target.log.read()
        assert b"latchd: out of memory" in said, said
        target.start_daemon()
        with Wire(target.port) as wire:
            assert wire.ask("LOCK", "held", "WAIT", 0) is None
            assert wire.ask("UNLOCK", "held", "TOKEN", token) == 0


def a_log_that_nobody_reads_holds_up_nobody(program):
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    with os.fdopen(write, "wb") as log, os.fdopen(read, "rb") as reader:
        target = Target(program, level="debug")
        target.log = log
        with target:
            def chatter(_):
                for _ in range(300):
                    Peer(target.port).close()
            target.attacked(chatter, 16)
            os.set_blocking(reader.fileno(), False)
            reader.read()
            with Wire(target.port) as wire:
                wire.ask("PING")
            said = until(reader.read, "it writes again")
            assert b" lines could not be written" in said, said


CASES = [
    files_that_run_out_are_no_end,
    without_a_file_for_redis_it_comes_back,
    without_memory_it_ends_and_says_so,
    a_log_that_nobody_reads_holds_up_nobody,
]
