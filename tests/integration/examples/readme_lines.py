#!/usr/bin/env python3
"""The lines of the README and of "Install" as a user pastes them, one after the other:
readme_lines.py LATCHD LATCHCTL README OPERATIONS. Prints TAP.

What installs packages and builds is run on a bare Debian, by tests/package/readme.sh.
"""
import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import snippets
from stand import DEADLINE_S, Skip, python_with_redis, run, tap

LATCHD, LATCHCTL, README, OPERATIONS = (pathlib.Path(path).absolute() for path in sys.argv[1:])
ROOT = README.parent


def blocks(page, title):
    """Language and text of each block of that section."""
    return snippets.BLOCK.findall(dict(snippets.SECTION.findall(page.read_text()))[title])


def clone():
    """A folder in which the paths of the README lead to what was built, wherever that is."""
    folder = tempfile.TemporaryDirectory(prefix="latchd-test-")
    source = pathlib.Path(folder.name)
    (source / "build/src/latchctl").mkdir(parents=True)
    (source / "build/src/latchd").symlink_to(LATCHD)
    (source / "build/src/latchctl/latchctl").symlink_to(LATCHCTL)
    (source / "clients").symlink_to(ROOT / "clients")
    return folder


@contextlib.contextmanager
def running(folder):
    """latchd as the first line of "Run it" starts it, but on a port of the kernel's choice."""
    program = blocks(README, "Run it")[0][1].split("&&")[-1].strip()
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        fd = listener.fileno()
        with subprocess.Popen(
                ["sh", "-c", f"LISTEN_PID=$$ LISTEN_FDS=1 exec {program} 3<&{fd}"], cwd=folder,
                env={**os.environ, "HOME": folder}, pass_fds=[fd],
                stderr=subprocess.DEVNULL) as daemon:
            try:
                yield listener.getsockname()[1]
            finally:
                daemon.send_signal(signal.SIGTERM)
                daemon.wait(DEADLINE_S)


def pasted_in_order():
    if shutil.which("redis-cli") is None:
        raise Skip("redis-cli is not installed")
    (_, _), *tried = blocks(README, "Run it")
    lines = ""
    for language, text in tried + blocks(README, "Use it"):
        if language == "python":
            lines += f"{python_with_redis()} <<'END'\n{text}END\n"
        elif language == "sh":
            lines += text
    with clone() as folder, running(folder) as port:
        got = subprocess.run(
            ["bash", "-eu"], input=lines.replace("5625", str(port)), cwd=folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE_S, check=False,
            env={**os.environ, "HOME": folder, "LATCHD_URL": f"redis://127.0.0.1:{port}"})
    works = r"working with fencing token \d{16}\n"
    if got.returncode != 0 or not re.fullmatch(rf"\n0\n{works}{works}", got.stdout):
        raise AssertionError(got.stdout)


def configured(*texts):
    """Where the files of a build would go that those lines configured, in that order."""
    if shutil.which("meson") is None:
        raise Skip("meson is not installed")
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        for text in texts:
            configures = [part for part in text.replace("\n", " && ").split("&&")
                          if part.strip().startswith("meson ")]
            assert configures, text
            line = re.sub(r"\bbuild\b", f"{folder}/build", " && ".join(configures))
            done = run(["sh", "-euc", line], ROOT)
            assert done.returncode == 0, done.stdout
        done = run(["ninja", "-C", f"{folder}/build", "build.ninja"])  # as ninja does first
        assert done.returncode == 0, done.stdout
        told = run(["meson", "introspect", "--installed", f"{folder}/build"])
        return set(json.loads(told.stdout).values())


def installed(*titles):
    pages = {"Run it": README, "Install": OPERATIONS}
    files = configured(*(blocks(pages[title], title)[0][1] for title in titles))
    assert {"/usr/sbin/latchd", "/usr/bin/latchctl", "/etc/latchd/latchd.conf"} <= files, files
    assert not [path for path in files if path.startswith("/usr/local")], files


sys.exit(1 if tap([
    ("the lines of the README work when pasted in order", pasted_in_order),
    ("install after run it installs where the page says",
     functools.partial(installed, "Run it", "Install")),
    ("run it after install changes nothing about that",
     functools.partial(installed, "Install", "Run it")),
]) else 0)
