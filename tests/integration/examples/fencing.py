#!/usr/bin/env python3
"""The guards of conf/fencing, with tokens of a real latchd: fencing.py LATCHD FENCING.

For each guard: a holder that lost its lock while it stood still is refused; and without
any lock, many who change a count in any order, each with a token of its own, lose none of
the changes that were accepted. Prints TAP.
"""
import itertools
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import Skip, Stand, run, tap
from resp import Error, Wire

MANY = 24  # who change the count
AT_ONCE = 6
PATIENCE_S = 60
SERIAL = itertools.count()  # nobody's data is another one's


class Redis:
    """Its data in the Redis below latchd; a connection of its own for each thread."""

    def __init__(self, stand, fencing):
        self.path = stand.redis_socket
        self.script = (fencing / "redis.lua").read_text()
        self.name = f"data-{next(SERIAL)}"

    def eval(self, keys, *args):
        with Wire(self.path) as wire:
            try:
                wire.ask("EVAL", self.script, len(keys), *keys, *args)
                return True
            except Error as why:
                if not str(why).startswith("FENCED "):
                    raise
                return False

    def claim(self, token):
        return self.eval([f"fence:{self.name}"], token)

    def write(self, token, text):
        return self.eval([f"fence:{self.name}", self.name], token, "SET", self.name, text)

    def read(self):
        with Wire(self.path) as wire:
            return wire.ask("GET", self.name)

    def nonsense_is_refused(self):
        for token in ("", "x", "nan", "-1", "0"):
            try:
                self.eval([f"fence:{self.name}"], token)
            except Error as why:
                assert str(why).startswith("ERR a token"), why
            else:
                raise AssertionError(f"token {token!r}")


class Database:
    """SQLite, each act a transaction as the file says."""

    def __init__(self, stand, fencing):
        self.path = stand.folder / f"fence-{next(SERIAL)}.db"
        text = re.sub(r"--.*", "", (fencing / "database.sql").read_text())
        create, insert, self.guard = (s.strip() for s in text.split(";")[:3])
        with self.connect() as db:
            db.execute(create)
            db.execute(insert, {"name": "report"})
            db.execute(insert, {"name": "report"})
            db.execute("CREATE TABLE report (body TEXT)")
            db.execute("INSERT INTO report VALUES (NULL)")

    def connect(self):
        return sqlite3.connect(self.path, timeout=PATIENCE_S, isolation_level=None)

    def act(self, token, *statement):
        db = self.connect()
        try:
            db.execute("BEGIN")
            let_in = db.execute(self.guard, {"name": "report", "token": token}).rowcount == 1
            if let_in and statement:
                db.execute(*statement)
            db.execute("COMMIT" if let_in else "ROLLBACK")
            return let_in
        finally:
            db.close()

    def claim(self, token):
        return self.act(token)

    def write(self, token, text):
        return self.act(token, "UPDATE report SET body = ?", (text,))

    def read(self):
        return self.connect().execute("SELECT body FROM report").fetchone()[0]


class File:
    """A file, each act a process."""

    def __init__(self, stand, fencing):
        if shutil.which("flock") is None:
            raise Skip("flock is not installed")
        self.program = str(fencing / "file.sh")
        self.path = stand.folder / f"report-{next(SERIAL)}"

    def act(self, verb, token, text=""):
        done = subprocess.run([self.program, verb, self.path, str(token)], input=text,
                              text=True, timeout=PATIENCE_S, capture_output=True, check=False)
        assert done.returncode in (0, 3), done
        return done.returncode == 0

    def claim(self, token):
        return self.act("claim", token)

    def write(self, token, text):
        return self.act("write", token, text)

    def read(self):
        return self.path.read_text() if self.path.exists() else None

    def nonsense_is_refused(self):
        for token in ("", "x", "-1", "1 2"):
            done = run([self.program, "claim", str(self.path), token])
            assert done.returncode == 2, done
        pathlib.Path(f"{self.path}.fence").write_text("")  # a memory that was lost
        done = run([self.program, "claim", str(self.path), "1"])
        assert done.returncode == 2, done


def a_late_holder_is_refused(guard, stand):
    with Wire(stand.port) as late, Wire(stand.port) as other:
        first = late.ask("LOCK", "report", "LEASE", 100)
        assert guard.claim(first) and guard.write(first, "by the first")
        second = other.ask("LOCK", "report")  # as soon as the lease of the first is over
        assert guard.claim(second) and guard.read() == "by the first"
        assert not guard.write(first, "too late")
        assert not guard.claim(first)
        assert guard.read() == "by the first"
        assert guard.write(second, "by the second") and guard.write(second, "and again")
        assert guard.read() == "and again"
        other.ask("UNLOCK", "report", "TOKEN", second)


def no_change_that_was_accepted_is_lost(guard, _):
    """Claim, read, write, by many at once, with no lock at all."""
    tokens = [10 ** 15 + i for i in range(MANY)]
    random.Random(1).shuffle(tokens)
    accepted, failures, mutex = [], [], threading.Lock()
    assert guard.claim(10 ** 15 - 1) and guard.write(10 ** 15 - 1, "0")

    def change():
        try:
            while True:
                with mutex:
                    if not tokens:
                        return
                    token = tokens.pop()
                if guard.claim(token) and guard.write(token, str(int(guard.read()) + 1)):
                    with mutex:
                        accepted.append(token)
        except Exception as why:  # pylint: disable=broad-except
            failures.append(why)

    threads = [threading.Thread(target=change) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert 10 ** 15 + MANY - 1 in accepted, "the last one was refused"
    assert int(guard.read()) == len(accepted), (guard.read(), len(accepted))


def main():
    fencing = pathlib.Path(sys.argv[2])
    with Stand(sys.argv[1]) as stand:
        cases = []
        for kind in (Redis, Database, File):
            name = kind.__name__.lower()
            for check in (a_late_holder_is_refused, no_change_that_was_accepted_is_lost):
                cases.append((f"{name}: {check.__name__}",
                              lambda k=kind, c=check: c(k(stand, fencing), stand)))
            if hasattr(kind, "nonsense_is_refused"):
                cases.append((f"{name}: nonsense_is_refused",
                              lambda k=kind: k(stand, fencing).nonsense_is_refused()))
        return 1 if tap(cases) else 0


sys.exit(main())
