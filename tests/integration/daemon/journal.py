#!/usr/bin/env python3
"""latchd under systemd: journal.py LATCHD UNIT. What it writes for journald, and what
`systemctl reload` does with a file that is wrong. Prints TAP.

journald is a pipe here, and systemd the few lines that run ExecReload.
"""
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import tap
from children import DEADLINE_S, die_with_parent, until

TIME = re.compile(r"\d{4}-\d\d-\d\dT")
NO_REDIS = ["--port", "0", "--redis", "unix:///nonexistent/redis.sock"]


class Daemon:
    """A latchd whose standard error is the journal, or something else that is a pipe."""

    def __init__(self, *words, is_journal=True):
        self.out, end = os.pipe()
        os.set_blocking(self.out, False)
        st = os.fstat(end)
        inode = st.st_ino if is_journal else st.st_ino + 1
        self.said = ""
        self.process = subprocess.Popen(
            [LATCHD, *words], stderr=end, preexec_fn=die_with_parent,
            env={**os.environ, "JOURNAL_STREAM": f"{st.st_dev}:{inode}"})
        os.close(end)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(DEADLINE_S)
        os.close(self.out)

    def log(self):
        while True:
            try:
                data = os.read(self.out, 65536)
            except BlockingIOError:
                break
            if not data:
                break
            self.said += data.decode()
        return self.said

    def says(self, words):
        until(lambda: words in self.log(), words)

    def lines(self):
        return self.log().splitlines()


def lines_have_a_priority_and_no_time_of_their_own():
    with Daemon(*NO_REDIS) as daemon:
        daemon.says("redis: ")
        lines = daemon.lines()
    for line in lines:
        found = re.match(r"<(\d)>(\w+) [\w-]+: ", line)
        assert found, line
        assert {"notice": "5", "warning": "4", "error": "3"}[found[2]] == found[1], line
    assert any(line.startswith("<5>notice server: listening on") for line in lines), lines
    assert any(line.startswith("<4>warning redis") for line in lines), lines


def json_lines_have_one_and_are_as_they_were():
    with Daemon(*NO_REDIS, "--log-format", "json") as daemon:
        daemon.says("nonexistent")
        lines = daemon.lines()
    for line in lines:
        found = json.loads(re.sub(r"^<[345]>", "", line))
        assert line[0] == "<" and TIME.match(found["time"]), line


def a_wrong_configuration_is_an_error_in_every_line():
    with Daemon(*NO_REDIS, "--bind", "here", "--redis-timeout", "x") as daemon:
        assert daemon.process.wait(DEADLINE_S) == 2
        lines = daemon.lines()
    assert len(lines) == 2 and all(x.startswith("<3>latchd: ") for x in lines), lines


def what_is_not_the_journal_gets_lines_as_ever():
    with Daemon(*NO_REDIS, is_journal=False) as daemon:
        daemon.says("redis: ")
        lines = daemon.lines()
    assert all(TIME.match(line) for line in lines), lines


def reload_as_systemd_does(pid, conf):
    """The commands of ExecReload, one after the other, until one fails: its exit code."""
    for line in re.findall(r"^ExecReload=(.*)$", UNIT.read_text(), re.M):
        words = [word.replace("$MAINPID", str(pid)) for word in shlex.split(line)]
        if words[0].endswith("/latchd"):
            words = [LATCHD, *(conf if w.endswith("latchd.conf") else w
                               for w in words[1:])]
        done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S,
                              check=False)
        if done.returncode != 0:
            return done.returncode, done.stderr
    return 0, ""


def reload_fails_with_a_wrong_file_and_nothing_is_changed():
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        conf = pathlib.Path(folder) / "latchd.conf"
        conf.write_text("timeout 5s\n")
        with Daemon(*NO_REDIS, "--config", str(conf)) as daemon:
            daemon.says("listening on")
            for text in ("timeout 6s\ntimout 7s\n", "timeout 6s\nbind here\n",
                         "timeout 6s\naclfile /nonexistent\n"):
                conf.write_text(text)
                code, why = reload_as_systemd_does(daemon.process.pid, str(conf))
                assert code == 2 and "latchd: " in why, (code, why)
            conf.write_text("timeout 8s\n")
            code, why = reload_as_systemd_does(daemon.process.pid, str(conf))
            assert code == 0, why
            daemon.says("reload: 1 key changed")
            assert "timeout is now 8s" in daemon.log() and "6s" not in daemon.log()


def hangup_with_a_wrong_file_tells_all_that_is_wrong():
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        conf = pathlib.Path(folder) / "latchd.conf"
        conf.write_text("timeout 5s\n")
        with Daemon(*NO_REDIS, "--config", str(conf)) as daemon:
            daemon.says("listening on")
            conf.write_text("timeout 6s\ntimout 7s\nbind here\n")
            daemon.process.send_signal(signal.SIGHUP)
            for why in ("latchd.conf:2: unknown key 'timout', did you mean 'timeout'?",
                        "bind: must be IPv4 or IPv6 addresses"):
                daemon.says(f"<3>error server: reload: nothing is changed, correct this "
                            f"first: {'' if 'bind' in why else folder + '/'}{why}\n")
            assert "6s" not in daemon.log()


CASES = [
    lines_have_a_priority_and_no_time_of_their_own,
    json_lines_have_one_and_are_as_they_were,
    a_wrong_configuration_is_an_error_in_every_line,
    what_is_not_the_journal_gets_lines_as_ever,
    reload_fails_with_a_wrong_file_and_nothing_is_changed,
    hangup_with_a_wrong_file_tells_all_that_is_wrong,
]

LATCHD, UNIT = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
sys.exit(1 if tap([(case.__name__, case) for case in CASES]) else 0)
