"""What there is to see when a lock that many want stands still, or a check of it fails: for
whoever has only the log, and is to find out why. All of it goes to standard error, as the
runner shows that, and not what is beside the results.
"""
import collections
import contextlib
import re
import socket
import subprocess
import sys
import threading
import time

from peers import Call

LOOK_S = 0.01
IDLE_S = 2.0  # everybody waits for a lock that is free: somebody was not woken
STILL_S = 8.0  # nobody changed what it guards: somebody has it and does not know
RECORDED = 4 << 20  # bytes of what Redis was asked last
CHUNK = 1 << 16
LINES, WIDTH = 200, 200
LOOKS = re.compile(r'lua\] "([LP]?TTL|[HL]LEN|HM?GET|ZSCORE|ZCARD|EXISTS|HEXISTS|TIME)"|'
                   r'\] "(GET|EXISTS)" ', re.IGNORECASE)
FRAMES = 14


def tell(text):
    for line in str(text).splitlines() or [""]:
        print(f"# {line}", file=sys.stderr, flush=True)


class Recording:
    """The last that Redis was asked, and by whom."""

    def __init__(self, address):
        self.chunks, self.size = collections.deque(), 0
        self.socket = socket.create_connection(address)
        self.socket.sendall(b"MONITOR\r\n")
        threading.Thread(target=self.record, daemon=True).start()

    def record(self):
        with contextlib.suppress(OSError):
            while chunk := self.socket.recv(CHUNK):
                self.chunks.append(chunk)
                self.size += len(chunk)
                while self.size > RECORDED:
                    self.size -= len(self.chunks.popleft())

    def tell(self, name):
        """What concerns `name`, without who only looks."""
        lines = b"".join(self.chunks).decode(errors="replace").splitlines()
        found = [line[:WIDTH] for line in lines
                 if name in line and not LOOKS.search(line)]
        tell(f"last asked of Redis ({len(found)} lines):")
        for line in found[-LINES:]:
            tell(f"  {line}")

    def stop(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def stacks(pid):
    """Of a JVM's threads, those that run our own classes."""
    try:
        done = subprocess.run(["jstack", str(pid)], capture_output=True, text=True,
                              check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"no stacks: {error}"]
    return ["\n".join(block.splitlines()[:FRAMES]) for block in done.stdout.split("\n\n")
            if "at RedissonPeer" in block]


class Scene:
    """A name that is contended for, with all who take part. Looks at it all the time: for
    how long at a stretch was it free, and when did anybody last get on?"""

    def __init__(self, world, goal, latchds, ours):
        self.world, self.ours, self.value = world, ours, goal.value
        self.name = goal.name.split(",", maxsplit=1)[0]
        self.latchds = {latchd.socket: latchd for latchd in latchds}.values()
        self.longest_s = 0.0
        self.told = False
        self.over = threading.Event()
        self.call = self.recording = None

    def __enter__(self):
        self.recording = Recording(self.world.redis.address_of(self.name))
        self.call = Call(self.look)
        return self

    def __exit__(self, kind, error, trace):
        self.over.set()
        try:
            self.call.done()
            if error is not None:
                self.tell(f"{kind.__name__}: {error}")
        finally:
            self.recording.stop()

    def look(self):
        with self.world.redis.connect() as redis:
            moved = time.monotonic()
            free, before = None, ""
            while not self.over.wait(LOOK_S):
                now = time.monotonic()
                value = redis.ask("GET", self.value)
                if value != before:
                    moved, before = now, value
                free = None if redis.ask("EXISTS", self.name) else free or now
                self.longest_s = max(self.longest_s, now - (free or now))
                if self.longest_s > IDLE_S or now - moved > STILL_S:
                    self.tell(f"free for up to {self.longest_s:.1f} s, the same for "
                              f"{now - moved:.1f} s")

    def tell(self, why):
        """Once is enough, and the first time tells most."""
        if self.told:
            return
        self.told = True
        tell(f"--- {self.name}: {why}")
        try:
            with self.world.redis.connect() as redis:
                self.tell_redis(redis)
            for latchd in self.latchds:
                self.tell_latchd(latchd)
            for contender in self.ours:
                tell(f"{contender.me}: {contender.changes} changes")
            for stack in stacks(self.world.jvm.pid):
                tell(stack)
        except Exception as error:  # pylint: disable=broad-except
            tell(f"no more to be had: {error!r}")
        self.recording.tell(self.name)

    def tell_redis(self, redis):
        tags = "redisson_lock_%s:{" + self.name + "}"
        for command in (("TIME",), ("GET", self.value), ("HGETALL", self.name),
                        ("PTTL", self.name), ("LRANGE", tags % "queue", 0, -1),
                        ("ZRANGE", tags % "timeout", 0, -1, "WITHSCORES"),
                        ("HGETALL", "latchd:fair:{%s}" % self.name)):
            tell(f"{command[0]} {command[1:]}: {redis.ask(*command)}")
        for channel in redis.ask("PUBSUB", "CHANNELS", "*{%s}*" % self.name):
            tell(f"NUMSUB {redis.ask('PUBSUB', 'NUMSUB', channel)}")

    def tell_latchd(self, latchd):
        with latchd.connect(5) as connection:
            for command in "LOCKINFO", "WAITERS":
                tell(f"{latchd.log.name} {command}: {connection.ask(command, self.name)}")
        tell(f"{latchd.log.name}: {latchd.said()[-600:]}")
