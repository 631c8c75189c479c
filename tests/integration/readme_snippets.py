#!/usr/bin/env python3
"""Runs every example of README.md against a real daemon: readme_snippets.py README LATCHD.

An example whose tool chain, or whose client library, is not on this machine is skipped;
nothing is downloaded. Prints TAP.
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

DEADLINE_S = 250
BLOCK = re.compile(r"^### (\w+)\n.*?^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Skip(Exception):
    """The reason why an example cannot run here."""


def tool(name):
    path = shutil.which(name)
    if path is None:
        raise Skip(f"{name} is not installed")
    return path


def run(args, folder, **more):
    return subprocess.run(args, cwd=folder, stdin=subprocess.DEVNULL, timeout=DEADLINE_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)


def python(code, folder):
    for name in ("/usr/bin/python3", sys.executable):
        if run([name, "-c", "import redis"], folder).returncode == 0:
            (folder / "example.py").write_text(code)
            return run([name, "example.py"], folder)
    raise Skip("the redis module is not installed")


def node(code, folder):
    if run([tool("node"), "-e", "require('redis')"], folder).returncode != 0:
        raise Skip("the redis package is not installed")
    (folder / "example.js").write_text(code)
    return run(["node", "example.js"], folder)


def golang(code, folder):
    cache = run([tool("go"), "env", "GOMODCACHE"], folder).stdout.strip()
    wanted = {"github.com/redis/go-redis": "v9@*", "github.com/google": "uuid@*"}
    lines = ["module example", "go 1.21"]
    for host, pattern in wanted.items():
        found = sorted(pathlib.Path(cache, host).glob(pattern))
        if not found:
            raise Skip(f"{host} is not in the module cache")
        lines.append("require {}/{}".format(host, found[-1].name.replace("@", " ")))
    (folder / "go.mod").write_text("\n".join(lines) + "\n")
    (folder / "main.go").write_text(code)
    if run(["go", "mod", "tidy"], folder).returncode != 0:
        raise Skip("the modules of the example are not all in the cache")
    return run(["go", "run", "."], folder)


def java(code, folder):
    tool("javac")
    jars = []
    for pattern in ("redis/clients/jedis/*/jedis-*.jar", "org/slf4j/slf4j-api/*/slf4j*.jar",
                    "org/apache/commons/commons-pool2/*/commons-pool2-*.jar"):
        found = sorted(pathlib.Path.home().glob(".m2/repository/" + pattern))
        if not found:
            raise Skip(f"{pattern.rsplit('/', maxsplit=1)[-1]} is not installed")
        jars.append(str(found[-1]))
    path = ":".join([".", *jars])
    (folder / "Example.java").write_text(code)
    built = run(["javac", "-cp", path, "Example.java"], folder)
    return built if built.returncode else run(["java", "-cp", path, "Example"], folder)


def shell(code, folder):
    tool("redis-cli")
    return run(["sh", "-euc", code], folder)


LANGUAGES = {"python": python, "js": node, "go": golang, "java": java, "sh": shell}


def start_redis(folder):
    path = folder / "redis.sock"
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--dir",
                               folder, "--save", "", "--appendonly", "no"],
                              stdout=subprocess.DEVNULL)
    end = time.monotonic() + DEADLINE_S
    while not path.exists():
        if time.monotonic() > end or server.poll() is not None:
            sys.exit("redis-server does not start")
        time.sleep(0.01)
    return server, path


def start_daemon(binary, redis):
    """As systemd does it: the socket is ours, and so connections wait for the daemon."""
    listener = socket.create_server(("127.0.0.1", 0))
    command = f'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@" 3<&{listener.fileno()}'
    daemon = subprocess.Popen(["sh", "-c", command, binary, "--redis", f"unix://{redis}"],
                              pass_fds=[listener.fileno()])
    return daemon, listener


def check(language, code, folder):
    try:
        result = LANGUAGES[language](code, folder)
    except subprocess.TimeoutExpired as late:
        print(f"# {late}")
        return False
    token = re.search(r"working with fencing token (\d+)", result.stdout)
    if result.returncode != 0 or token is None:
        print("# " + result.stdout.replace("\n", "\n# "))
        return False
    return True


def main():
    readme, binary = sys.argv[1:3]
    text = pathlib.Path(readme).read_text().split("## Use it", 1)[1].split("\n## ", 1)[0]
    blocks = [b for b in BLOCK.findall(text) if b[1] in LANGUAGES]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="latchd-readme-") as scratch:
        folder = pathlib.Path(scratch)
        server, path = start_redis(folder)
        daemon, listener = start_daemon(binary, path)
        try:
            port = str(listener.getsockname()[1])
            print(f"1..{len(blocks)}")
            for number, (title, language, code) in enumerate(blocks, 1):
                place = folder / language
                place.mkdir()
                try:
                    good = check(language, code.replace("5625", port), place)
                    print(f"{'ok' if good else 'not ok'} {number} - {title}", flush=True)
                    failed += not good
                except Skip as why:
                    print(f"ok {number} - {title} # SKIP {why}", flush=True)
        finally:
            daemon.send_signal(signal.SIGTERM)
            code = daemon.wait(DEADLINE_S)
            server.kill()
            server.wait()
    sys.exit(1 if failed or code != 0 else 0)


main()
