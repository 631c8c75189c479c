#!/usr/bin/env python3
"""What latchd says of unsafe settings, and that it leaves no core: careful.py LATCHD.

Prints TAP.
"""
import functools
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from stand import Skip, is_sanitized, tap
from children import die_with_parent

ROOT = "latchd runs as root"
NO_PASSWORD = "there is no password, and protected-mode is no"
IN_THE_CLEAR = "passwords of clients from other machines cross the network"
OPEN_SOCKET = "can write to"
IN_A_FILE = "can read the secrets in"
IN_ARGUMENTS = "in the list of processes"
ALL = (NO_PASSWORD, IN_THE_CLEAR, OPEN_SOCKET, IN_A_FILE, IN_ARGUMENTS)

FAR = ["--bind", "0.0.0.0"]
SECRET_FILE = "requirepass s3cret-word\n"

# Arguments, the text and permissions of a file (or none), what is said, the environment.
SETTINGS = {
    "the_defaults_are_safe": ([], None, 0, []),
    "everybody_may_come_in": ([*FAR, "--protected-mode", "no"], None, 0, [NO_PASSWORD]),
    "protected_mode_is_enough": (FAR, None, 0, []),
    "passwords_without_tls": (FAR, SECRET_FILE, 0o600, [IN_THE_CLEAR]),
    "a_file_for_all_to_read": ([], SECRET_FILE, 0o644, [IN_A_FILE]),
    "a_file_without_secrets_is_for_all": ([], "maxclients 100\n", 0o644, []),
    "a_password_of_redis_in_a_file":
        ([], "redis redis://:s3cret-word@127.0.0.1:1\n", 0o644, [IN_A_FILE]),
    "a_password_in_the_arguments":
        (["--requirepass=s3cret-word"], "maxclients 100\n", 0o644, [IN_ARGUMENTS]),
    "a_password_in_the_environment":
        ([], "maxclients 100\n", 0o644, [], {"LATCHD_REQUIREPASS": "s3cret-word"}),
    "a_socket_for_all": (["--unixsocket", "SOCKET", "--unixsocketperm", "777"], None, 0,
                         [OPEN_SOCKET]),
}


def daemon(program, folder, *words, **how):
    """Started, and listening: the process and its log so far."""
    child = subprocess.Popen(
        [program, "--port", "0", "--state-dir", folder, *words], stderr=subprocess.PIPE,
        text=True, **{"preexec_fn": die_with_parent, **how})
    log = ""
    for line in child.stderr:
        log += line
        if "listening on" in line:
            return child, log
    raise AssertionError(log)


def end(child, signum=signal.SIGTERM):
    child.send_signal(signum)
    log = child.communicate(timeout=60)[1]
    return child.returncode, log


def says(program, words, text, mode, wanted, variables=None):
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        words = [w.replace("SOCKET", f"{folder}/socket") for w in words]
        file = pathlib.Path(folder) / "latchd.conf"
        if text is not None:
            file.write_text(text)
            file.chmod(mode)
            words += ["--config", file]
        if text is None or "redis" not in text:
            words += ["--redis", "unix:///nonexistent/redis.sock"]
        child, log = daemon(program, folder, *map(str, words),
                            env={**os.environ, **(variables or {})})
        code, more = end(child)
        log += more
    assert code == 0, log
    assert "s3cret-word" not in log, log
    said = [what for what in ALL if what in log]
    assert said == wanted, log
    assert (ROOT in log) == (os.geteuid() == 0), log


def limit_nothing():
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)


def a_crash_leaves_no_core(program):
    """Whereas another program that is killed so leaves one."""
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        raise Skip("core dumps are limited here")
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        def crash(child):
            os.kill(child.pid, signal.SIGSEGV)
            return os.WCOREDUMP(os.waitpid(child.pid, 0)[1])

        sleeper = subprocess.Popen(["sleep", "60"], cwd=folder, preexec_fn=limit_nothing)
        if not crash(sleeper):
            raise Skip("nobody leaves a core here")
        child, log = daemon(program, folder, "--redis", "unix:///nonexistent/redis.sock",
                            cwd=folder, preexec_fn=limit_nothing)
        assert not crash(child), log


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    cases = [(name, functools.partial(says, program, *row)) for name, row in SETTINGS.items()]
    if not is_sanitized(program):
        cases.append(("a_crash_leaves_no_core", lambda: a_crash_leaves_no_core(program)))
    return 1 if tap(cases) else 0


sys.exit(main())
