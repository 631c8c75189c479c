#!/usr/bin/env python3
"""Users on the wire: acl.py LATCHD.

The same words are said to latchd and to a redis-server, and the replies compared byte by
byte; then what only latchd has: whose a lock is, and the file of users. Prints TAP.
"""
import contextlib
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from children import until
from stand import Stand, start_redis, tap
from resp import Link

HASH_OF_X = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
READ_S = 20


class Wire(Link):
    """One connection; replies as the bytes that came."""

    def __init__(self, address):
        super().__init__(address, READ_S)

    def reply(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind in b"$=!" and rest != b"-1":
            line += self.file.read(int(rest) + 2)
        elif kind in b"*~>%" and rest != b"-1":
            for _ in range(int(rest) * (2 if kind == b"%" else 1)):
                line += self.reply()
        return line

    def ask(self, *words):
        self.send(*words)
        return self.reply()

    def is_closed(self):
        return self.file.read(1) == b""


def text_of(reply):
    return reply.decode()


def expect(reply, start):
    if not text_of(reply).startswith(start):
        raise AssertionError(f"wanted {start!r}, got {reply!r}")


class Both:
    """latchd and a redis-server, each with a file of users."""

    def __init__(self, latchd):
        self.latchd = latchd

    def __enter__(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="latchd-test-")
        self.folder = pathlib.Path(self.scratch.name)
        self.files = [self.folder / "ours.acl", self.folder / "redis.acl"]
        for file in self.files:
            file.write_text("")
        self.path = self.folder / "other.sock"
        self.redis = start_redis(self.path, "--aclfile", self.files[1])
        self.stand = Stand(self.latchd, "--aclfile", str(self.files[0]), level="error")
        self.stand.__enter__()
        Wire(self.stand.port).ask("PING")  # it has read its file
        return self

    def __exit__(self, *exception):
        self.redis.kill()
        self.redis.wait()
        self.stand.__exit__(*exception)
        self.scratch.cleanup()

    def pair(self):
        return Wire(self.stand.port), Wire(self.path)


def plain(reply, both):
    """Without what cannot be the same: ages, connections, and paths."""
    for file in both.files:
        reply = reply.replace(str(file).encode(), b"FILE")
    reply = re.sub(rb"^(%7|\*14)\r\n\$6\r\nserver.*", b"HELLO", reply, flags=re.S)
    # Which rule of a line is meant, Redis tells only sometimes.
    reply = re.sub(rb"Error in applying operation '[^']*': ", b"", reply)
    reply = re.sub(rb"age-seconds\r\n(\$\d+\r\n|,)[^\r]*\r\n", b"AGE", reply)
    return re.sub(rb"client-info\r\n\$\d+\r\n[^\r]*\r\n", b"INFO", reply)


def same(latchd, sessions):
    """Each line is `who: words`; who are connections, made when they first speak."""
    with Both(latchd) as both:
        pairs = {}
        for line in sessions.strip().splitlines():
            who, words = line.strip().split(": ", 1)
            ours, theirs = pairs.setdefault(who, None) or both.pair()
            pairs[who] = (ours, theirs)
            words = [word.replace("_", " ") for word in words.split(" ")]
            got, wanted = (plain(wire.ask(*words), both) for wire in (ours, theirs))
            if got != wanted:
                raise AssertionError(f"{line.strip()}\nlatchd {got!r}\nRedis  {wanted!r}")


RULES = f"""
a: ACL LIST
a: ACL USERS
a: ACL WHOAMI
a: ACL GETUSER default
a: ACL GETUSER nobody
a: ACL SETUSER ann
a: ACL LIST
a: ACL GETUSER ann
a: ACL SETUSER ann on >x ~a* %R~b* %W~c* %RW~d &ch* +client|kill
a: ACL LIST
a: ACL GETUSER ann
a: ACL SETUSER ann +@all -ping
a: ACL LIST
a: ACL SETUSER ann #{HASH_OF_X} >x >y
a: ACL LIST
a: ACL SETUSER ann <y !{HASH_OF_X}
a: ACL LIST
a: ACL SETUSER ann nopass resetkeys allkeys allchannels allcommands
a: ACL LIST
a: ACL GETUSER ann
a: ACL SETUSER ann >x
a: ACL LIST
a: ACL SETUSER ann resetpass resetchannels resetkeys nocommands off
a: ACL LIST
a: ACL SETUSER ann skip-sanitize-payload
a: ACL LIST
a: ACL GETUSER ann
a: ACL SETUSER ann sanitize-payload
a: ACL LIST
a: ACL SETUSER ann on nopass +get reset
a: ACL GETUSER ann
a: ACL LIST
a: ACL SETUSER bob ON NOPASS ALLKEYS +GET
a: ACL LIST
a: ACL SETUSER bob ~*
a: ACL SETUSER eve resetkeys %R~x %W~x ~y ~y
a: ACL LIST
a: ACL USERS
a: ACL SETUSER eve +client -client|kill
a: ACL LIST
a: ACL SETUSER eve clearselectors
a: HELLO 3
a: ACL GETUSER eve
a: ACL GETUSER nobody
a: ACL LIST
a: ACL DELUSER eve nobody bob
a: ACL USERS
"""

MISTAKES = "".join(f"a: ACL SETUSER ann {rule}\n" for rule in [
    "+nosuch", "+@nosuch", "-@nosuch", "foo", "client|kill", "+client|nosuch",
    "-client|nosuch", "+client|", "+get|x|y", "-get|x", "#abc", "!abc", "<nopw", "%X~a",
    "%~a", "%RR~x", "on_off", "+", "-", "+@", "~a_b", f"!{HASH_OF_X}", "~*_~x", "&a_b"]) + """\
a: ACL SETUSER ann ~* ~x
a: ACL SETUSER ann &* &x
a: ACL LIST
a: ACL SETUSER a_b on
a: ACL SETUSER
a: ACL DELUSER default
a: ACL DELUSER
a: ACL GETUSER
a: ACL CAT nosuch
a: ACL CAT a b
a: ACL GENPASS 0
a: ACL GENPASS 5000
a: ACL GENPASS x
a: ACL GENPASS 1 2
a: ACL LOG x
a: ACL LOG -1
a: ACL LOG
a: ACL LOG RESET
a: ACL WHOAMI x
a: ACL
a: ACL nosuch
a: CLIENT KILL USER nobody
"""

LOGINS = """
a: AUTH x
a: AUTH default x
a: AUTH
a: AUTH a b c
a: AUTH nobody x
a: ACL SETUSER ann on >pw +get +@connection ~a*
b: AUTH ann pw
b: ACL WHOAMI
b: GET a1
b: GET b1
b: CONFIG GET port
b: HELLO 3 AUTH ann bad
b: HELLO 2 AUTH nobody pw
b: HELLO 2 AUTH ann
b: AUTH ann bad
b: PING
b: RESET
b: ACL WHOAMI
a: ACL SETUSER default >secret
c: PING
c: NOSUCH
c: AUTH secre
c: AUTH secret
c: PING
c: ACL SETUSER default resetpass off
d: PING
d: AUTH default secret
d: AUTH ann pw
d: PING
"""

REFUSALS = """
a: ACL SETUSER ann on nopass ~a* %R~r* %W~w* &ch* +@all -config -client|list
b: AUTH ann x
b: GET a
b: GET r
b: GET w
b: GET x
b: EVAL s 1 w
b: EVAL s 2 a r
b: EVALSHA s 1 w
b: EVALSHA s 1 x
a: ACL DRYRUN ann eval s 1 a
a: ACL DRYRUN ann eval s 2 a r
a: ACL DRYRUN ann eval s 1 w
b: CONFIG GET port
b: CONFIG
b: CONFIG nosuch
b: CLIENT LIST
b: CLIENT ID x
b: MULTI
b: CLIENT LIST
b: EXEC
b: MULTI
b: GET x
b: EXEC
b: MULTI
b: ECHO x
b: PING
a: ACL SETUSER ann -echo
b: EXEC
a: ACL SETUSER ann +echo
b: MULTI
b: GET a
a: ACL SETUSER ann resetkeys
b: EXEC
c: AUTH ann x
c: SUBSCRIBE ch1 ch2
d: AUTH ann x
d: SUBSCRIBE x
d: PSUBSCRIBE ch1*
d: PSUBSCRIBE ch*
a: ACL LOG 3
a: ACL LOG RESET
a: ACL LOG
a: ACL DRYRUN ann get x
a: ACL DRYRUN ann get
a: ACL DRYRUN ann config get x
a: ACL DRYRUN ann subscribe x
a: ACL DRYRUN ann nosuch
a: ACL DRYRUN nobody get x
a: ACL DRYRUN ann echo x
a: HELLO 3
a: ACL DRYRUN ann echo x
a: ACL LOG
"""


def files_are_read_as_redis_does(latchd):
    texts = ["foo\n", "user\n", "user a on +nosuch\nuser b\nuser b on\n",
             "user a on\nuser a off\n", "user a on ~* ~x\n", "user a #abc\n",
             "user a on +get ~a*\nuser default on nopass ~* &* +@all\n", "",
             f"  \n\tuser b on #{HASH_OF_X} &a +ping \r\n"]
    with Both(latchd) as both:
        wires = both.pair()
        for text in texts:
            for file in both.files:
                file.write_text(text)
            for words in (["ACL", "LOAD"], ["ACL", "LIST"]):
                got, wanted = (plain(wire.ask(*words), both) for wire in wires)
                if got != wanted:
                    raise AssertionError(f"{text!r} {words}\nlatchd {got!r}\n"
                                         f"Redis  {wanted!r}")
        for wire in wires:
            expect(wire.ask("ACL", "SAVE"), "+OK")
        if both.files[0].read_text() != both.files[1].read_text():
            raise AssertionError(both.files[0].read_text())
        if both.files[0].stat().st_mode & 0o777 != 0o600:
            raise AssertionError("others may read the file")


def deleted_users_are_disconnected(latchd):
    with Both(latchd) as both:
        admin, ann, bob = (Wire(both.stand.port) for _ in range(3))
        for user, wire in (("ann", ann), ("bob", bob)):
            expect(admin.ask("ACL", "SETUSER", user, "on", "nopass", "+@all", "~*"), "+OK")
            expect(wire.ask("AUTH", user, ""), "+OK")
        expect(ann.ask("LOCK", "job", "GRACE", "0"), ":")
        ann.send("LOCK", "job", "WAIT", "60000")
        bob.send("LOCK", "job", "WAIT", "60000")
        both.files[0].write_text("user bob on nopass ~* +@all\n")
        expect(admin.ask("ACL", "LOAD"), "+OK")
        if not ann.is_closed():
            raise AssertionError("ann is still there")
        expect(bob.reply(), ":")


def a_bad_file_stops_the_start(latchd):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "users.acl"
        file.write_text("user ann on\nuser bob +nosuch <s3cret\n")
        for arguments in (["--check-config"], []):
            done = subprocess.run(
                [latchd, "--port", "0", "--state-dir", folder, "--aclfile", file,
                 *arguments], capture_output=True, text=True, timeout=60, check=False)
            if done.returncode == 0 or f"{file}:2: Error in applying" not in done.stderr:
                raise AssertionError(done.stderr)
            if "s3cret" in done.stderr:
                raise AssertionError("a password is in the log")


def sighup_reads_the_file_again(latchd):
    with Both(latchd) as both:
        wire = Wire(both.stand.port)
        both.files[0].write_text("user ann on\n")
        both.stand.daemon.send_signal(signal.SIGHUP)
        until(lambda: b"ann" in wire.ask("ACL", "USERS"), "the file is read")
        ann = Wire(both.stand.port)
        expect(wire.ask("ACL", "SETUSER", "ann", "nopass", "~*", "+@all"), "+OK")
        expect(ann.ask("AUTH", "ann", ""), "+OK")
        ann.send("LEADER", "job", "AFTER", "0")
        until(lambda: b"\nfollowers:1\r\n" in wire.ask("INFO"), "the follower is counted")
        both.stand.daemon.send_signal(signal.SIGHUP)
        expect(ann.reply(), "-NOPERM ")


@contextlib.contextmanager
def ann_and_bob(latchd):
    with Stand(latchd, level="error") as stand:
        admin, ann, bob = (Wire(stand.port) for _ in range(3))
        for name, wire in (("ann", ann), ("bob", bob)):
            expect(admin.ask("ACL", "SETUSER", name, "on", f">{name}", "+@lock", "-@admin",
                             "~*"), "+OK")
            expect(wire.ask("AUTH", name, name), "+OK")
        yield stand, admin, ann, bob


def what_is_anns_is_not_bobs(latchd):
    request = "0123456789abcdef"
    with ann_and_bob(latchd) as (_, admin, ann, bob):
        token = text_of(ann.ask("LOCK", "job", "ID", request, "LEASE", "60000"))[1:-2]
        for words in (["LOCK", "job", "ID", request, "LEASE", "60000"],
                      ["UNLOCK", "job", "ID", request], ["UNLOCK", "job", "TOKEN", token],
                      ["RENEW", "job", "TOKEN", token],
                      ["FORCEUNLOCK", "job", "TOKEN", token]):
            expect(bob.ask(*words), "-NOPERM ")
        ann.send("LOCK", "job", "OWNER", "ann", "ID", request + "1")
        until(lambda: admin.ask("WAITERS", "job") != b"*0\r\n", "it waits")
        expect(bob.ask("CANCEL", "job", "OWNER", "ann"), "-NOPERM ")
        expect(bob.ask("CANCEL", "job", "ID", request + "1"), "-NOPERM ")
        expect(admin.ask("CANCEL", "job", "OWNER", "ann"), ":1")
        expect(ann.reply(), "$-1")
        expect(admin.ask("RENEW", "job", "TOKEN", token), ":")
        expect(ann.ask("UNLOCK", "job", "ID", request), ":0")
        expect(bob.ask("UNLOCK", "job", "ID", request), "-NOPERM ")


def owners_are_their_users_own(latchd):
    with ann_and_bob(latchd) as (_, admin, ann, bob):
        expect(ann.ask("LOCK", "job", "OWNER", "o"), ":")
        expect(bob.ask("LOCK", "job", "OWNER", "o", "WAIT", "0"), "-NOPERM ")
        expect(bob.ask("MLOCK", "2", "job", "other", "OWNER", "o"), "-NOPERM ")
        expect(bob.ask("UNLOCK", "job", "OWNER", "o"), "-NOPERM ")
        expect(bob.ask("LOCK", "other", "OWNER", "o", "WAIT", "0"), ":")
        expect(admin.ask("UNLOCK", "job", "OWNER", "o"), ":0")


def waits_of(wire, name):
    return text_of(wire.ask("WAITERS", name)).count("waited")


def what_lockinfo_refuses_nothing_tells(latchd):
    with Stand(latchd, level="error") as stand:
        admin, eve, ear, boss = (Wire(stand.port) for _ in range(4))
        expect(admin.ask("ACL", "SETUSER", "eve", "on", ">x", "+@all", "-@admin", "&*",
                         "%R~seen:*", "%W~secret:*"), "+OK")
        for wire in (eve, ear):
            expect(wire.ask("AUTH", "eve", "x"), "+OK")
        token = text_of(admin.ask("LOCK", "secret:1"))[1:-2].encode()
        expect(admin.ask("SET", "seen:lib", "v", "NX", "PX", "60000"), "+OK")
        seen = text_of(admin.ask("LOCK", "seen:own"))[1:-2].encode()

        for words in (["LOCKINFO", "secret:1"], ["LEADER", "secret:1"],
                      ["WAITERS", "secret:1"], ["GET", "secret:1"], ["PTTL", "secret:1"],
                      ["SUBSCRIBE", "leader:secret:1"],
                      ["EVAL", "return redis.call('get', KEYS[1])", "1", "secret:1"],
                      ["EVAL", "return redis.call('pttl', KEYS[1])", "1", "secret:1"]):
            expect(eve.ask(*words), "-NOPERM ")
        library = next(part.split()[0] for part in admin.ask("LOCKINFO", "seen:lib").split(
            b"\r\ntoken\r\n:")[1:])
        told = b"".join(eve.ask(*words) for words in (
            ["LOCKS"], ["LOCKS", "TOP", "10"], ["LOCKINFO", "seen:lib"], ["LEADER", "seen:lib"],
            ["LOCKINFO", "seen:own"], ["LEADER", "seen:own"]))
        for word in (b"secret:1", token, library):
            if word in told:
                raise AssertionError(f"{word!r} is told: {told!r}")
        if told.count(seen) < 3 or told.count(b"seen:lib") < 3:
            raise AssertionError(f"too little is told: {told!r}")
        if library not in admin.ask("LOCKS", "TOP", "10"):
            raise AssertionError("the token of a library's hold is hidden from the admin")

        waits = Wire(stand.port)  # the holder of one waits for the other
        for wire, name, owner in ((eve, "secret:7", "eve"), (admin, "secret:8", "boss")):
            expect(wire.ask("LOCK", name, "OWNER", owner), ":")
        waits.send("LOCK", "secret:7", "OWNER", "boss")
        until(lambda: waits_of(admin, "secret:7") == 1, "it waits")
        told = eve.ask("LOCK", "secret:8", "OWNER", "eve")
        expect(told, "-DEADLOCK somebody waits for a name that you may not inspect")
        if b"boss" in told:
            raise AssertionError(f"an owner is told: {told!r}")
        expect(admin.ask("CANCEL", "secret:7", "OWNER", "boss"), ":1")
        expect(waits.reply(), "$-1")
        waits.send("LOCK", "secret:8", "OWNER", "eve")  # the admin is told all
        until(lambda: waits_of(admin, "secret:8") == 1, "it waits")
        expect(admin.ask("LOCK", "secret:7", "OWNER", "boss"),
               "-DEADLOCK boss waits for secret:7 held by eve")
        expect(admin.ask("CANCEL", "secret:8", "OWNER", "eve"), ":1")
        expect(waits.reply(), "$-1")

        names = ("secret:2", "seen:3", "seen:4", "secret:5")
        for wire in (ear, boss):
            wire.send("SUBSCRIBE", *(f"granted:{name}" for name in names))
            for _ in names:
                expect(wire.reply(), "*3\r\n$9\r\nsubscribe")
        expect(admin.ask("LOCK", "secret:2"), ":")
        expect(admin.ask("LOCK", "seen:3"), ":")
        expect(admin.ask("SET", "seen:4", "v", "NX", "PX", "60000"), "+OK")
        expect(eve.ask("LOCK", "secret:5"), ":")
        for name in names[1:]:  # the last one is of eve's own hold
            message = ear.reply()
            if f"granted:{name}".encode() not in message:
                raise AssertionError(f"not of {name}: {message!r}")
            if message.endswith(b" 0\r\n") != (name == "seen:4"):
                raise AssertionError(f"a token is hidden, or not: {message!r}")
        for name in names:
            message = boss.reply()
            if f"granted:{name}".encode() not in message or message.endswith(b" 0\r\n"):
                raise AssertionError(f"not all of {name}: {message!r}")


def local_needs_no_more_than_lock(latchd):
    with Stand(latchd, level="error") as stand:
        admin, ann, bob = (Wire(stand.port) for _ in range(3))
        for name, wire in (("ann", ann), ("bob", bob)):
            expect(admin.ask("ACL", "SETUSER", name, "on", f">{name}", "+lock", "+unlock",
                             "+lockinfo", "~hot:*"), "+OK")
            expect(wire.ask("AUTH", name, name), "+OK")
        expect(admin.ask("CONFIG", "SET", "local-window", "100ms"), "+OK")
        expect(admin.ask("CONFIG", "SET", "local-names", "*"), "+OK")

        def from_memory(*local):
            """Ann holds it, from memory, as LOCKINFO has just shown."""
            for _ in range(3):
                expect(ann.ask("LOCK", "hot:1", *local), ":")
                expect(ann.ask("UNLOCK", "hot:1"), ":0")
            token = text_of(ann.ask("LOCK", "hot:1", *local))[1:-2]
            expect(bob.ask("UNLOCK", "hot:1", "TOKEN", token), "-NOPERM ")
            expect(ann.ask("LOCK", "cold", *local), "-NOPERM ")
            local_one = b"$5\r\nlocal\r\n:1\r\n" in ann.ask("LOCKINFO", "hot:1")
            expect(ann.ask("UNLOCK", "hot:1", "TOKEN", token), ":0")
            expect(ann.ask("UNLOCK", "hot:1", "TOKEN", token), ":0")
            expect(bob.ask("LOCK", "hot:1", *local), ":")
            expect(bob.ask("UNLOCK", "hot:1"), ":0")
            return local_one

        until(lambda: from_memory("LOCAL"), "it is lent")
        until(from_memory, "it is lent without the word")


def waits_end_with_the_right_to_them(latchd):
    """Of each kind of wait one for a name that is taken away, and one for a name that stays."""
    with Stand(latchd, level="error") as stand:
        admin, pipelined = Wire(stand.port), Wire(stand.port)
        rules = ["on", "nopass", "+@lock", "~*"]
        expect(admin.ask("ACL", "SETUSER", "ann", *rules), "+OK")
        expect(pipelined.ask("AUTH", "ann", ""), "+OK")
        token = text_of(admin.ask("LOCK", "gone:job"))[1:-2]
        stays = text_of(admin.ask("LOCK", "stays:job"))[1:-2]
        expect(admin.ask("LATCH", "SET", "gone:latch", "1"), ":1")
        expect(admin.ask("LATCH", "SET", "stays:latch", "1"), ":1")
        waits = {}
        for name, of in (("gone", token), ("stays", stays)):
            for words in (["LOCK", f"{name}:job", "ID", "0123456789abcdef"],
                          ["MLOCK", "2", f"{name}:free", f"{name}:job"],
                          ["LEADER", f"{name}:job", "AFTER", of],
                          ["LATCH", "AWAIT", f"{name}:latch"]):
                wire = waits[name, words[0]] = Wire(stand.port)
                expect(wire.ask("AUTH", "ann", ""), "+OK")
                wire.send(*words)
        pipelined.send("LEADER", "stays:job", "AFTER", stays)
        pipelined.send("LEADER", "gone:job", "AFTER", token)
        until(lambda: all(admin.ask("WAITERS", f"{name}:job").startswith(b"*2\r\n")
                          for name in ("gone", "stays"))
              and re.search(rb"\nfollowers:[34]\r\n(.*\n)*awaits:2\r\n", admin.ask("INFO")), "all wait")
        expect(admin.ask("ACL", "SETUSER", "ann", "resetkeys", "~stays:*"), "+OK")
        for (name, verb), wire in waits.items():
            if name == "gone":
                expect(wire.reply(), "-NOPERM this user may not wait for that any more")
        expect(admin.ask("LOCK", "gone:free", "WAIT", "20000"), ":")  # MLOCK gives it back
        expect(admin.ask("UNLOCK", "gone:job", "TOKEN", token), ":0")
        expect(admin.ask("UNLOCK", "stays:job", "TOKEN", stays), ":0")
        expect(admin.ask("LATCH", "COUNT", "stays:latch"), ":0")
        expect(waits["stays", "LOCK"].reply(), ":")
        expect(waits["stays", "LEADER"].reply(), "*3")
        expect(waits["stays", "LATCH"].reply(), ":1")
        expect(pipelined.reply(), "*3")
        expect(pipelined.reply(), "-NOPERM ")
        expect(admin.ask("ACL", "SETUSER", "ann", "-mlock"), "+OK")
        expect(waits["stays", "MLOCK"].reply(), "-NOPERM ")


def secrets_are_nowhere(latchd):
    with tempfile.TemporaryFile("w+") as log:
        stand = Stand(latchd, "--requirepass", "s3cret1", level="debug")
        stand.log = log
        with stand:
            wire, monitor = Wire(stand.port), Wire(stand.port)
            for one in (wire, monitor):
                expect(one.ask("AUTH", "s3cret1"), "+OK")
            expect(wire.ask("CONFIG", "SET", "slowlog-log-slower-than", "0"), "+OK")
            expect(monitor.ask("MONITOR"), "+OK")
            expect(wire.ask("ACL", "SETUSER", "ann", "on", ">s3cret2", "+@all"), "+OK")
            expect(wire.ask("AUTH", "ann", "s3cret3"), "-WRONGPASS")
            expect(wire.ask("AUTH", "s3cret4", "ann"), "-WRONGPASS")
            expect(wire.ask("HELLO", "2", "AUTH", "ann", "s3cret2"), "*14")
            expect(wire.ask("CONFIG", "SET", "requirepass", "s3cret5"), "+OK")
            told = b"".join(wire.ask(*words) for words in (
                ["CONFIG", "GET", "*"], ["INFO", "everything"], ["SLOWLOG", "GET", "100"],
                ["ACL", "LOG"], ["ACL", "LIST"], ["CLIENT", "LIST"]))
            expect(wire.ask("ECHO", "last"), "$4")
            while b"last" not in told:
                told += monitor.file.readline()
        log.seek(0)
        told += log.read().encode()
        if b"s3cret" in told:
            raise AssertionError(told[told.index(b"s3cret") - 200:][:400])


def main():
    latchd = sys.argv[1]
    cases = [(f"the same as Redis: {name}", lambda text=text: same(latchd, text))
             for name, text in (("rules", RULES), ("mistakes", MISTAKES),
                                ("logins", LOGINS), ("refusals", REFUSALS))]
    cases += [(test.__name__.replace("_", " "), lambda test=test: test(latchd))
              for test in (files_are_read_as_redis_does, deleted_users_are_disconnected,
                           a_bad_file_stops_the_start, sighup_reads_the_file_again,
                           what_is_anns_is_not_bobs,
                           what_lockinfo_refuses_nothing_tells,
                           owners_are_their_users_own,
                           local_needs_no_more_than_lock,
                           waits_end_with_the_right_to_them, secrets_are_nowhere)]
    sys.exit(1 if tap(cases) else 0)


main()
