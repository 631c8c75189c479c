"""Contenders that take a lock with redis-py's Lock, through latchd and straight at Redis, and with
the helper for Python."""
import pathlib
import subprocess
import sys
import time

from contenders import LEASE_MS, WAIT_MS, Contender, Guarded
from peers import DEADLINE_S, RespError, until
from children import die_with_parent

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, whoever runs this

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "clients/python"))

try:
    import redis
    from latchd import Latchd as Helper
except ImportError:
    redis = None

DOOMED_S = 1  # the lease of who is killed
LOOK_S = 0.005
ENTRIES_A_KILL = 400

HOLDER = """if True:
    import sys
    sys.path.append("/usr/lib/python3/dist-packages")
    import redis
    where, name, lease_s = eval(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    lock = redis.Redis(**where).lock(name, timeout=lease_s)
    lock.acquire()
    print(lock.local.token.decode(), flush=True)
    sys.stdin.read()
"""


class ThroughLatchd(Contender):
    """Its tokens are in one sequence with those of LOCK."""

    client = None

    def where(self):
        return {"unix_socket_path": self.daemon.socket}

    def fence(self, lock):
        self.goal.tokens.next(self.client.execute_command(
            "RENEW", lock.name, "VALUE", lock.local.token, "LEASE", LEASE_MS))

    def enter(self, turn):
        self.client = self.client or redis.Redis(**self.where())
        lock, began = self.client.lock(self.goal.name, timeout=LEASE_MS / 1000), time.monotonic()
        if not lock.acquire(blocking_timeout=WAIT_MS / 1000):
            raise AssertionError(f"not got in {WAIT_MS} ms")
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        self.fence(lock)
        if turn % 3 == 1:
            lock.extend(LEASE_MS / 1000, replace_ttl=True)
        more = self.counted(self.guarded.change())
        lock.release()
        return more


class Patient(Contender):
    """LOCK is refused by an error while the name is a string at Redis, and is sent again."""

    def take(self, *words):
        while True:
            try:
                return super().take(*words)
            except RespError as error:
                if not str(error).startswith("WRONGTYPE"):
                    raise
                time.sleep(LOOK_S)


class Helped(Contender):
    """A program that has moved to the helper."""

    client = None

    def enter(self, turn):
        self.client = self.client or Helper(f"unix://{self.daemon.socket}")
        kind = {"fair": True} if "FAIR" in self.goal.words[0] else {}
        began = time.monotonic()
        with self.client.lock(self.goal.name, wait=WAIT_MS / 1000, **kind) as lock:
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.goal.tokens.next(lock.token)
            return self.counted(self.guarded.change())


class Straight(ThroughLatchd):
    """As before the move to latchd."""

    def where(self):
        return {"port": self.backing.port}

    def fence(self, lock):
        """There is no token."""


class Killed(ThroughLatchd):
    """Takes it in a process of its own that is killed with -9; nobody comes in before its lease
    is over."""

    def run(self):
        with self.backing.connect() as data:
            guarded = Guarded(data, self.goal, self.me)
            for _ in range(2 + self.goal.target // ENTRIES_A_KILL):
                self.hold_and_die(data, guarded)

    def hold_and_die(self, data, guarded):
        command = [sys.executable, "-c", HOLDER, repr(self.where()), self.goal.name, str(DOOMED_S)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              preexec_fn=die_with_parent) as holder:
            value = holder.stdout.readline().strip().decode()
            before = data.ask("GET", guarded.value)
            holder.kill()
        if not value:
            raise AssertionError("it died before it held")
        self.watch(data, guarded, value, before)

    def watch(self, data, guarded, value, before):
        until(lambda: self.is_over(data, value, guarded, before), "the lease of the dead is over",
              DEADLINE_S, LOOK_S)

    def is_over(self, data, value, guarded, before):
        """First what the lock guards, then whether it was still held."""
        now = data.ask("GET", guarded.value)
        try:
            if not self.holds(data, value):
                return True
        except RespError as error:  # the name is of the other kind by now
            if not str(error).startswith("WRONGTYPE"):
                raise
            return True
        guarded.expect("free-", before[:5])
        guarded.expect(before, now)
        return False

    def holds(self, data, value):
        return any(field.endswith(f":{value}") for field in data.ask("HKEYS", self.goal.name))


class KilledStraight(Straight, Killed):
    """The same, straight at Redis."""

    def holds(self, data, value):
        return data.ask("GET", self.goal.name) == value
