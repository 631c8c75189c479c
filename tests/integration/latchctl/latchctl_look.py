#!/usr/bin/env python3
"""latchctl's subcommands that look at locks, and its completions: latchctl_look.py LATCHD
LATCHCTL COMPLETION... Prints TAP.
"""
import fcntl
import functools
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios

from latchctl_stand import CtlStand, expect, result, until
from resp import Wire
from stand import Skip, tap

SCRIPTS = sys.argv[3:]
PATIENCE_S = 60
COMMANDS = ["run", "lock", "unlock", "top", "why", "ls", "leader", "latch", "force"]
ODD = "odd \x1b[31m\"\\name\x01"


def told(stand, *words):
    got = stand.run(*words)
    expect(got.returncode == 0 and got.stderr == "", got)
    return got.stdout


def why_free(stand):
    got = told(stand, "why", "nobody's")
    expect(got == "nobody's is free: nobody holds it.\nNobody waits for it here.\n", got)


def why_held(stand):
    holder = stand.start_beat("held", "--lease", "20")
    waiters = []
    for options in [("--wait", "60"), ("--owner", "ann")]:
        waiters.append(stand.start("run", "held", *options, "--", "true"))
        until(lambda: stand.waiters("held") == len(waiters), "nobody waits")
    got = told(stand, "why", "held")
    for wanted in [r"^held is held by\n  request [0-9a-f-]{36}, connection \d+ from 127\.0\.0\.1:"
                   rf"\d+, named latchctl/{holder.pid}@\S+\n",
                   r"    with token \d+\n    since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d, for \d+",
                   r"    its lease ends in [12]\d\.\d s, unless its holder renews it\n",
                   r"2 wait for it here, in this order:\n  1\. request .* waits for another .*\n"
                   r"  2\. owner ann, plain, for .*\n",
                   r"\n  latchctl force held --token \d+\n$"]:
        expect(re.search(wanted, got), (wanted, got))
    advice = re.search(r"latchctl (force held --token \d+)", got).group(1).split()
    told(stand, *advice)
    expect(result(holder)[0] == 124)
    for waiter in waiters:
        expect(result(waiter)[0] == 0)


def why_watchdog(stand):
    token = stand.ask("LOCK", "bare", "OWNER", "ann")[1:].strip()
    got = told(stand, "why", "bare")
    expect("owner ann" in got and f"with token {token}" in got and "gone" in got, got)
    expect(stand.run("force", "bare", "--owner", "bob").returncode == 1)
    told(stand, "force", "bare", "--owner", "ann")
    expect(stand.is_free("bare"))


def why_rests(stand):
    token = stand.ask("LOCK", "nightly", "WAIT", "0", "ATLEAST", "600000")[1:].strip()
    got = told(stand, "why", "nightly")
    expect(re.search(r"    the name stays taken for another (9 min 5\d s|10 min), whatever ends "
                     r"the hold\n", got), got)
    expect(stand.ask("UNLOCK", "nightly", "TOKEN", token) == ":0\r\n")
    got = told(stand, "why", "nightly")
    expect(re.match(r"nightly rests: nobody is granted it for another 9 min 5\d s, as the hold with "
                    rf"token {token} was taken with ATLEAST\.\nNobody waits for it here\.\n", got),
           got)
    expect(got.endswith("If it should be granted sooner:\n"
                        f"  latchctl force nightly --token {token}\n"), got)
    got = told(stand, "top", "--once")
    expect(re.search(r"nightly .* nobody: it rests +\n", got), got)
    told(stand, "force", "nightly", "--token", token)
    expect(stand.is_free("nightly"))


def why_local(stand):
    """A name is lent for a moment only: so it is lent until somebody sees that."""
    address = ("127.0.0.1", stand.port)
    with Wire(address) as holder, Wire(address) as waiter:
        expect(holder.ask("CONFIG", "SET", "local-window", "100ms") == "OK")
        expect(holder.ask("CONFIG", "SET", "local-names", "lent-*") == "OK")

        def seen():
            for _ in range(3):
                holder.ask("LOCK", "lent-1")
                holder.ask("UNLOCK", "lent-1")
            token = holder.ask("LOCK", "lent-1")
            waiter.send("LOCK", "lent-1", "WAIT", "60000")
            got = told(stand, "why", "lent-1")
            holder.ask("UNLOCK", "lent-1")
            expect(waiter.receive() > token)
            waiter.ask("UNLOCK", "lent-1")
            expect(f"latchd:{token}, connection" in got, got)
            expect(re.search(r"\n  1\. a client without a name, plain, local, for \d+", got), got)
            return "    granted from memory: Redis has lent the name to this latchd\n" in got

        until(seen, "no hold from memory")


def why_redisson(stand):
    uuid = "01234567-89ab-cdef-0123-456789abcdef"
    stand.redis_cli("HSET", "theirs", uuid + ":7", "2")
    stand.redis_cli("PEXPIRE", "theirs", "30000")
    got = told(stand, "why", "theirs")
    expect(f"thread 7 of the Redisson application {uuid}, 2 times\n" in got, got)
    expect("another latchd, or Redisson" in got and "force theirs --any" in got, got)
    told(stand, "force", "theirs", "--any")
    expect(stand.is_free("theirs"))


def why_shared(stand):
    readers = [stand.start_beat("shared", "--read") for _ in range(2)]
    got = told(stand, "why", "shared")
    expect(got.count(", who reads, connection") == 2, got)
    for reader in readers:
        reader.terminate()
        result(reader)


def why_permits(stand):
    holders = [stand.start_beat("permits", "--permits", n, "--of", "4") for n in "21"]
    got = told(stand, "why", "permits")
    expect(got.startswith("permits is a semaphore of 4 permits, 1 of them free. "
                          "Permits have:\n  request "), got)
    for wanted in [", with 2 permits, connection", ", with 1 permit, connection",
                   "    its lease ends in ", "Nobody waits for it here.\n",
                   "first of them should not have them"]:
        expect(wanted in got, (wanted, got))
    waiter = stand.start("run", "permits", "--permits", "2", "true")
    until(lambda: stand.waiters("permits") == 1, "nobody waits")
    expect(re.search(r"\n  1\. request .*, permits, for ", told(stand, "why", "permits")))
    top = told(stand, "top", "--once")
    expect(re.search(r"\npermits +1 .* 2 holders of permits", top), top)
    for holder in holders:
        holder.terminate()
        result(holder)
    expect(result(waiter)[0] == 0)
    expect(told(stand, "why", "permits").startswith(
        "permits is a semaphore of 4 permits, 4 of them free.\nNobody waits"))


def why_permits_elsewhere(stand):
    """Redisson's are 16 bytes; no daemon renews them."""
    stand.redis_cli("SET", "permits-theirs", "1")
    stand.redis_cli("ZADD", "{permits-theirs}:timeout", "922337203685477", "0123456789abcdef")
    got = told(stand, "why", "permits-theirs")
    expect(got.startswith("permits-theirs is a semaphore of 2 permits, 1 of them free."), got)


def why_lost(stand):
    """Which hold, when, why and by whom."""
    holder = stand.start_beat("lost", "--owner", "ann")
    told(stand, "force", "lost", "--owner", "ann")
    expect(result(holder)[0] == 124)
    token = stand.ask("LOCK", "lost", "OWNER", "bob", "LEASE", "100")[1:].strip()
    until(lambda: token in stand.ask("LOCKINFO", "lost").partition("expired")[2],
          "the end is not told")
    until(lambda: stand.is_free("lost"), "Redis keeps it")  # some ms later
    got = told(stand, "why", "lost")
    expect(re.search(r"^lost is free.*\n.*\nLost lately, newest first:\n"
                     r"  .* ago, of owner ann, token \d+, connection \d+:\n"
                     r"    freed by force, by connection \d+ from 127\.0\.0\.1:\d+\n"
                     rf"Expired lately, .*:\n  .* ago, of owner bob, token {token}\n$", got), got)
    expect("Lost" not in told(stand, "why", "nobody's"))


def odd_names(stand):
    holder = stand.start_beat(ODD)
    got = told(stand, "why", ODD)
    expect("\x1b" not in got and "\x01" not in got, got)
    expect(got.startswith('"odd \\x1b[31m\\"\\\\name\\x01" is held by'), got)
    expect(told(stand, "ls", "--match", "odd*") == ODD + "\n")
    if shutil.which("bash") is not None:  # the advice is a line for the shell
        advice = got.splitlines()[-1].strip().replace("latchctl", "$L", 1)
        freed = subprocess.run(["bash", "-c", advice], check=False,
                               env={**stand.environment, "L": stand.latchctl})
        expect(freed.returncode == 0 and result(holder)[0] == 124, advice)
    else:
        holder.terminate()
        result(holder)


def ls(stand):
    names = [f"ls:{i}" for i in range(1500)]
    for name in names:
        stand.ask("LOCK", name, "LEASE", "60000") if name == names[0] else None
    with subprocess.Popen(["redis-cli", "-p", str(stand.port)], stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, text=True) as cli:
        cli.communicate("".join(f"LOCK {name} LEASE 60000\n" for name in names[1:]))
    expect(sorted(told(stand, "ls", "--match", "ls:*").split()) == sorted(names))
    expect(len(told(stand, "ls", "--count", "7").split()) == 7)


class Completion:
    """What a shell offers for a line. `scripts` ends in the script for the shell."""

    def __init__(self, stand, shell):
        if shutil.which(shell) is None:
            raise Skip(f"{shell} is not installed")
        folder = stand.folder / "path"
        folder.mkdir(exist_ok=True)
        if not (folder / "latchctl").exists():
            (folder / "latchctl").symlink_to(stand.latchctl)
        self.environment = {**stand.environment, "HOME": str(stand.folder),
                            "PATH": f"{folder}:{os.environ['PATH']}"}
        self.script, = (path for path in SCRIPTS if path.endswith(f".{shell}"))


class Bash(Completion):
    def __init__(self, stand):
        super().__init__(stand, "bash")

    def offers(self, *words, common=True):
        library = "/usr/share/bash-completion/bash_completion"
        line = " ".join(words)
        text = f"""
            {f'[ -e {library} ] && . {library}' if common else ''}
            . {self.script}
            COMP_WORDS=({' '.join("'" + w + "'" for w in words)})
            COMP_CWORD={len(words) - 1} COMP_LINE='{line}' COMP_POINT={len(line)}
            _latchctl
            printf '%s\\n' "${{COMPREPLY[@]}}" """
        got = subprocess.run(["bash", "--norc", "-c", text], env=self.environment, text=True,
                             capture_output=True, check=False)
        errors = [e for e in got.stderr.splitlines() if "compopt" not in e]
        expect(errors == [], errors)
        return [line.strip() for line in got.stdout.splitlines() if line.strip()]


class Fish(Completion):
    def __init__(self, stand):
        super().__init__(stand, "fish")

    def offers(self, line):
        got = subprocess.run(["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]",
                              self.script, line], env=self.environment, text=True, capture_output=True,
                             stdin=subprocess.DEVNULL, check=False, timeout=PATIENCE_S)
        expect(got.stderr == "", got.stderr)
        return [line.split("\t")[0] for line in got.stdout.splitlines()]


class Zsh(Completion):
    """At a terminal, as it has no other way to ask it. Tab lists what there is."""

    SETUP = """fpath=({folder} $fpath); PS1=; PS2=; unsetopt prompt_sp; LISTMAX=10000; zstyle ':completion:*' list-prompt ''
        autoload -Uz compinit; compinit -u -D; bindkey '^I' list-choices; bindkey '^U' kill-whole-line"""

    def __init__(self, stand):
        super().__init__(stand, "zsh")
        folder = stand.folder / "zsh"
        folder.mkdir(exist_ok=True)
        shutil.copy(self.script, folder / "_latchctl")
        self.terminal, ours = pty.openpty()
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 300, 0, 0))
        self.shell = subprocess.Popen(["zsh", "-f", "-i"], stdin=ours, stdout=ours, stderr=ours, close_fds=True,
                                      env={**self.environment, "TERM": "vt100"}, start_new_session=True)
        os.close(ours)
        for line in self.SETUP.format(folder=folder).splitlines():
            self.say(line.strip() + "\n")
        self.heard()

    def say(self, text):
        os.write(self.terminal, text.encode())

    def heard(self):
        """All that it shows before it does this."""
        self.say("print -r -- HE''RE\n")
        text = ""
        while "HERE" not in text:
            expect(select.select([self.terminal], [], [], PATIENCE_S)[0], f"zsh is silent: {text}")
            text += os.read(self.terminal, 1 << 16).decode(errors="replace").replace("\x00", "")
        return text.partition("HERE")[0]

    def offers(self, line):
        """The words of the list below the line, from where the cursor goes up again."""
        self.say(line + "\t\x15")
        _, _, below = self.heard().partition(line)[2].partition("\n")
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", " ", re.split(r"\x1b\[\d*A", below)[0])
        return re.findall(r"(?<!\S)(?:\\ |\S)+", shown)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.shell.kill()
        self.shell.wait()
        os.close(self.terminal)


def leader(stand):
    got = stand.run("leader", "primary")
    expect((got.returncode, got.stdout, got.stderr) == (1, "0\n", ""), got)
    run = stand.start_beat("primary", "--data", "10.0.0.7:5432 \x1b[31m\n")
    got = told(stand, "leader", "primary")
    expect(re.fullmatch(r"\d{16} latchd:id:[0-9a-f-]{36} .*10\.0\.0\.7:5432 .*31m.*\n", got), got)
    expect("\x1b" not in got and got.count("\n") == 1, got)
    got = told(stand, "why", "primary")
    expect("\n    says of itself: " in got and "10.0.0.7:5432" in got and "\x1b" not in got, got)
    run.send_signal(signal.SIGTERM)
    result(run)
    expect(stand.run("leader", "primary").returncode == 1)


def follow_leader(stand):
    """It goes on through a restart of latchd, and tells each leader once."""
    follower = stand.start("leader", "prime", "--follow")
    try:
        expect(follower.stdout.readline() == "0\n")
        token = stand.ask("LOCK", "prime", "LEASE", "60000", "OWNER", "ann", "DATA", "a")[1:].strip()
        expect(follower.stdout.readline() == f"{token} ann a\n")
        stand.kill_daemon()
        expect("; trying again" in follower.stderr.readline())
        stand.start_daemon()
        expect(stand.ask("UNLOCK", "prime", "OWNER", "ann") == ":0\r\n")
        expect(follower.stdout.readline() == "0\n")
        token = stand.ask("LOCK", "prime", "LEASE", "60000", "OWNER", "bob")[1:].strip()
        expect(follower.stdout.readline() == f"{token} bob\n")
    finally:
        follower.kill()
        follower.communicate()


def leader_of_a_semaphore(stand):
    stand.ask("LOCK", "permits", "PERMITS", "1", "OF", "1", "LEASE", "60000")
    for words in ["leader", "permits"], ["leader", "permits", "--follow"]:
        got = stand.run(*words)
        expect(got.returncode == 125 and "WRONGTYPE" in got.stderr, got)
    for words in ["leader"], ["leader", "x", "--data", "d"], ["run", "--read", "--data", "d", "x", "true"], \
            ["run", "--data", "d" * 4097, "x", "true"]:
        expect(stand.run(*words).returncode == 125)


def latch(stand):
    """It is set, counted and awaited; what is sent again counts once."""
    expect(stand.run("latch", "gate", "await").returncode == 125)
    expect(stand.run("latch", "gate", "set", "3").returncode == 0)
    expect(stand.run("latch", "gate", "set", "3").returncode == 1)
    expect(stand.run("latch", "--no-wait", "gate", "await").returncode == 1)
    expect(stand.run("latch", "gate", "await", "--wait", "100ms").returncode == 1)
    for _ in range(2):
        expect(told(stand, "latch", "gate", "count", "--id", "backup-of-tonight") == "2\n")
    expect(told(stand, "latch", "gate", "info") == "2 set 0\n")
    waiter = stand.start("latch", "gate", "await")
    until(lambda: told(stand, "latch", "gate", "info") == "2 set 1\n", "nobody waits")
    got = told(stand, "why", "gate")
    expect("gate is a latch" in got and "\n  2 to count" in got, got)
    expect(re.search(r"\n  1 waiting for that at this latchd:\n  1\. a client without a name, latch, for .*, "
                     r"waits for (ever|another .*), connection \d+ from .*\nTo count for", got), got)
    got = told(stand, "top", "--once")
    expect("  waiting 1  " in got, got)
    expect(re.search(r"\ngate +1 .* nobody: a latch +\n", got), got)
    expect(told(stand, "ls", "--match", "ga*") == "gate\n")
    expect(told(stand, "latch", "gate", "count") == "1\n")
    expect(told(stand, "latch", "gate", "count") == "0\n")
    expect(waiter.wait(60) == 0)
    waiter.communicate()
    expect(stand.run("latch", "gate", "await").returncode == 0)
    expect(stand.run("latch", "gate", "delete").returncode == 1)
    for words in ["latch"], ["latch", "gate"], ["latch", "gate", "set"], ["latch", "gate", "open"], \
            ["latch", "gate", "count", "2"], ["latch", "gate", "set", "0"], \
            ["latch", "gate", "set", "1", "x"], ["leader", "gate", "--id", "x"]:
        got = stand.run(*words)
        expect(got.returncode == 125 and got.stderr, (words, got))


def a_latch_is_awaited_through_a_restart(stand):
    expect(stand.run("latch", "gate2", "set", "1").returncode == 0)
    waiter = stand.start("latch", "gate2", "await")
    until(lambda: told(stand, "latch", "gate2", "info") == "1 set 1\n", "nobody waits")
    stand.kill_daemon()
    expect("; trying again" in waiter.stderr.readline())
    stand.start_daemon()
    expect(told(stand, "latch", "gate2", "count") == "0\n")
    expect(waiter.wait(60) == 0)
    waiter.communicate()


def take_odd_names(stand):
    for name in "alpha", "al*pine", "al\x1bien":
        stand.ask("LOCK", name, "WAIT", "0", "LEASE", "600000")


def completion(stand):
    c = Bash(stand)
    take_odd_names(stand)
    for common in (True, False):
        offers = functools.partial(c.offers, common=common)
        expect(offers("latchctl", "") == COMMANDS)
        expect(offers("latchctl", "w") == ["why"])
        expect(sorted(offers("latchctl", "why", "al")) == ["al\\*pine", "alpha"])
        expect(offers("latchctl", "why", "al*") == ["al\\*pine"])
        expect(offers("latchctl", "-p", str(stand.port), "run", "alp") == ["alpha"])
        expect(offers("latchctl", "run", "--wait", "5s", "alp") == ["alpha"])
        expect("--fair" in offers("latchctl", "run", "--") and
               "--fair" not in offers("latchctl", "why", "--"))
        expect("--kill-after" in offers("latchctl", "run", "alpha", "--k"))
        expect(offers("latchctl", "top", "--sort", "wa") == ["waiters", "wait"])
        expect("seq" in offers("latchctl", "run", "alpha", "--", "seq"))
        expect("seq" in offers("latchctl", "run", "alpha", "seq"))
        expect(offers("latchctl", "-p", "1", "run", "al") == [])
        expect(offers("latchctl", "--sni", "x", "run", "al") == [], "it needs --tls")
        expect(offers("latchctl", "--cacertdir", "/us") == ["/usr"])


def fish_completion(stand):
    offers = Fish(stand).offers
    take_odd_names(stand)
    expect(sorted(offers("latchctl ")) == sorted(COMMANDS))
    expect(offers("latchctl w") == ["why"])
    expect(sorted(offers("latchctl why al")) == ["al*pine", "alpha"])
    expect(offers("latchctl why al\\*p") == ["al*pine"])
    for line in f"latchctl -p {stand.port} run alp", f"latchctl --port={stand.port} run alp", \
            "latchctl run --wait 5s alp", "latchctl run --and alp":
        expect("alpha" in offers(line), line)
    expect("--fair" in offers("latchctl run --") and "--fair" not in offers("latchctl why --"))
    expect("--kill-after" in offers("latchctl run alpha --k"))
    expect(sorted(offers("latchctl top --sort wa")) == ["wait", "waiters"])
    for line in "latchctl run alpha -- seq", "latchctl run alpha seq":
        expect("seq" in offers(line), line)
    expect("--kill-after" not in offers("latchctl run alpha seq --k"))
    expect("count" in offers("latchctl latch gate ") and "count" not in offers("latchctl why gate "))
    expect(offers("latchctl -p 1 run al") == [])
    expect(offers("latchctl --cacertdir /us") == ["/usr/"])


def zsh_completion(stand):
    take_odd_names(stand)
    with Zsh(stand) as zsh:
        def shows(line, truth):
            until(lambda: truth(zsh.offers(line)), line)

        shows("latchctl ", lambda got: set(COMMANDS) <= set(got))
        shows("latchctl wh", lambda got: set(got) & set(COMMANDS) == {"why"})
        shows("latchctl why al", lambda got: sorted(got) == ["al\\*pine", "alpha"])
        shows("latchctl why al\\*", lambda got: got == ["al\\*pine"])
        for line in f"latchctl -p {stand.port} run alp", f"latchctl --port={stand.port} run alp", \
                "latchctl run --wait 5s alp", "latchctl run --and alp", "latchctl run --and=alp":
            shows(line, lambda got: got == ["alpha"])
        shows("latchctl run --", lambda got: "--fair" in got)
        shows("latchctl why --", lambda got: "--host" in got and "--fair" not in got)
        shows("latchctl run alpha --k", lambda got: "--kill-after" in got)
        shows("latchctl top --sort wa", lambda got: sorted(got) == ["wait", "waiters"])
        for line in "latchctl run alpha -- seq", "latchctl run alpha seq":
            shows(line, lambda got: "seq" in got)
        expect("--kill-after" not in zsh.offers("latchctl run alpha seq --k"))
        shows("latchctl latch gate ", lambda got: "count" in got)
        expect("count" not in zsh.offers("latchctl why gate "))
        expect("alpha" not in zsh.offers("latchctl -p 1 run al"))
        shows("latchctl --cacertdir /us", lambda got: "usr" in got)


def answer(stand, *words, code=0):
    """The JSON that a subcommand prints."""
    got = stand.run(*words, "--json")
    expect(got.returncode == code, got)
    expect(got.stdout.endswith("\n") and got.stdout.count("\n") == 1, got)
    return json.loads(got.stdout)


def json_everywhere(stand):
    lock = answer(stand, "lock", "j1", "--lease", "60")
    token = lock["token"]
    expect(sorted(lock) == ["id", "name", "token"] and token > 0 and len(lock["id"]) == 36, lock)
    expect(answer(stand, "lock", "j1", "--lease", "60", "-n", code=1)["token"] is None)
    waiter = stand.start("run", "j1", "--data", "of the waiter", "--", "sleep", "1000")
    until(lambda: stand.waiters("j1") == 1, "nobody waits")

    why = answer(stand, "why", "j1")
    expect(why["name"] == "j1" and why["latch"] is None, why)
    expect(why["lock"]["state"] == "held" and why["lock"]["waiting"] == 1, why)
    expect([h["token"] for h in why["lock"]["holds"]] == [token], why)
    expect(why["lock"]["losses"] == why["lock"]["expired"] == why["lock"]["queue"] == [], why)
    expect([w["kind"] for w in why["waiters"]] == ["plain"], why)
    top = answer(stand, "top", "--count", "100")
    row = [r for r in top["names"] if r["name"] == "j1"][0]
    expect(row["waiting"] == 1 and row["holder"]["token"] == token, row)
    expect(top["info"]["redis_link"] == "up" and top["info"]["waiters"] >= 1, top["info"])
    expect("j1" in answer(stand, "ls") and "j1" in answer(stand, "ls", "--all"))
    expect(answer(stand, "ls", "j1") == ["j1"])
    leads = answer(stand, "leader", "j1")
    expect(leads == {"name": "j1", "token": token, "owner": f"latchd:id:{lock['id']}",
                     "data": None}, leads)

    expect(answer(stand, "unlock", "j1", "--token", str(token)) == {"name": "j1", "released": True})
    until(lambda: answer(stand, "leader", "j1")["token"] > token, "the waiter gets nothing")
    expect(answer(stand, "leader", "j1")["data"] == "of the waiter")
    freed = answer(stand, "force", "--match", "j1", "--yes")
    expect([(f["name"], f["freed"], len(f["holds"])) for f in freed] == [("j1", True, 1)], freed)
    expect(result(waiter)[0] == 124)
    why = answer(stand, "why", "j1")
    expect([e["cause"] for e in why["lock"]["losses"]] == ["forced"], why)

    expect(answer(stand, "latch", "jgate", "set", "2") == {"name": "jgate", "set": True})
    expect(answer(stand, "latch", "jgate", "set", "2", code=1) == {"name": "jgate", "set": False})
    expect(answer(stand, "latch", "jgate", "await", "-n", code=1) == {"name": "jgate", "open": False})
    why = answer(stand, "why", "jgate")
    expect(why["lock"] is None and why["latch"]["left"] == 2 and why["waiters"] == [], why)
    expect(answer(stand, "latch", "jgate", "count") == {"name": "jgate", "left": 1})
    expect(answer(stand, "latch", "jgate", "info") ==
           {"name": "jgate", "left": 1, "state": "set", "waiting": 0})
    expect(answer(stand, "latch", "jgate", "count") == {"name": "jgate", "left": 0})
    expect(answer(stand, "latch", "jgate", "await") == {"name": "jgate", "open": True})
    expect(answer(stand, "latch", "jgate", "delete", code=1) == {"name": "jgate", "deleted": False})

    follower = stand.start("leader", "j2", "--follow", "--json")
    expect(json.loads(follower.stdout.readline())["token"] == 0)
    token = answer(stand, "lock", "j2", "--lease", "60", "--data", "x\ny")["token"]
    line = json.loads(follower.stdout.readline())
    expect(line["token"] == token and line["data"] == "x\\x0ay", line)
    follower.kill()
    result(follower)
    expect(answer(stand, "force", "j2", "--any") == {"name": "j2", "freed": True})
    expect(answer(stand, "force", "j2", "--any", code=1) == {"name": "j2", "freed": False})
    gone = answer(stand, "unlock", "j2", "--token", str(token), code=124)
    expect(gone == {"name": "j2", "released": False}, gone)
    for words in [("run", "j2", "true"), ("force", "--match", "j2")]:
        got = stand.run(*words, "--json") if words[0] != "run" else stand.run("--json", *words)
        expect(got.returncode == 125 and got.stdout == "" and "--json" in got.stderr, got)


def json_of_odd_names(stand):
    """A text says what the bytes are, with \\xNN for those that are no text."""
    name = "odd \x1b[31m\"\\\u00fc\udcff<"
    meant = "odd \\x1b[31m\"\\\\\u00fc\\xff<"
    lock = answer(stand, "lock", name, "--lease", "60")
    expect(lock["name"] == meant, lock)
    for words in [("ls",), ("ls", "--all")]:
        names = answer(stand, *words)
        expect(meant in names, (words, names))
    expect(answer(stand, "why", name)["lock"]["name"] == meant)
    top = answer(stand, "top", "--count", "100")["names"]
    expect(meant in [row["name"] for row in top], top)
    answer(stand, "unlock", name, "--token", str(lock["token"]))


def json_of_nothing(stand):
    expect(answer(stand, "ls", "jnobody*") == [])
    expect(answer(stand, "force", "--match", "jnobody*", "--yes", code=1) == [])
    leads = answer(stand, "leader", "jnobody", code=1)
    expect(leads == {"name": "jnobody", "token": 0, "owner": None, "data": None}, leads)
    why = answer(stand, "why", "jnobody")
    expect(why["lock"]["state"] == "free" and why["lock"]["holds"] == why["waiters"] == [], why)
    expect(answer(stand, "latch", "jnobody", "info")["state"] == "none")
    got = stand.run("-p", "1", "ls", "--json")
    expect(got.returncode == 125 and got.stdout == "", got)
    stand.ask("ACL", "SETUSER", "nothing", "on", "nopass")
    got = stand.run("-u", f"redis://nothing:x@127.0.0.1:{stand.port}", "ls", "--json")
    expect(got.returncode == 125 and got.stdout == "" and "NOPERM" in got.stderr, got)


def completion_is_complete(_):
    """They know the options that --help tells."""
    usage = subprocess.run([sys.argv[2], "--help"], capture_output=True, text=True,
                           check=True).stdout
    options = set(re.findall(r"--[a-z-]+", usage))
    expect(len(options) > 20, options)
    for path in SCRIPTS:
        script = pathlib.Path(path).read_text()
        for option in options:
            known = f" -l {option[2:]} " if path.endswith(".fish") else option
            expect(known in script, f"{path}: {option} is missing")


CASES = [
    ("why_of_a_free_name", why_free),
    ("why_tells_the_holder_the_waiters_and_what_to_do", why_held),
    ("why_tells_of_a_hold_that_nobody_renews", why_watchdog),
    ("why_tells_of_redisson", why_redisson),
    ("why_and_top_tell_of_a_name_that_rests", why_rests),
    ("why_tells_of_holds_from_memory", why_local),
    ("why_tells_all_readers", why_shared),
    ("why_tells_who_has_permits_and_what_is_free", why_permits),
    ("why_tells_of_permits_of_redisson", why_permits_elsewhere),
    ("why_tells_what_was_lost_and_by_whom", why_lost),
    ("leader_tells_who_leads_and_its_data", leader),
    ("leader_follows_through_a_restart", follow_leader),
    ("latch_sets_counts_and_awaits", latch),
    ("latch_awaits_through_a_restart", a_latch_is_awaited_through_a_restart),
    ("leader_needs_a_lock_that_one_alone_holds", leader_of_a_semaphore),
    ("odd_names_do_not_reach_the_terminal", odd_names),
    ("each_subcommand_prints_json", json_everywhere),
    ("json_is_valid_whatever_the_names_are", json_of_odd_names),
    ("json_of_nothing", json_of_nothing),
    ("ls_lists_all_names", ls),
    ("bash_completes_words_and_names", completion),
    ("zsh_completes_words_and_names", zsh_completion),
    ("fish_completes_words_and_names", fish_completion),
    ("the_completions_know_all_options", completion_is_complete),
]


def main():
    with CtlStand(sys.argv[1], sys.argv[2]) as stand:
        failed = tap([(name, functools.partial(case, stand)) for name, case in CASES])
    sys.exit(1 if failed else 0)


main()
