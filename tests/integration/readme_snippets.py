#!/usr/bin/env python3
"""Runs every example of README.md against a real daemon: readme_snippets.py README LATCHD.

An example whose tool chain, or whose client library, is not on this machine is skipped;
nothing is downloaded. Prints TAP.
"""
import functools
import pathlib
import re
import shutil
import sys

from stand import Skip, Stand, python_with_redis, run, tap

BLOCK = re.compile(r"^### (\w+)\n.*?^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def tool(name):
    path = shutil.which(name)
    if path is None:
        raise Skip(f"{name} is not installed")
    return path


def python(code, folder):
    (folder / "example.py").write_text(code)
    return run([python_with_redis(), "example.py"], folder)


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


def check(language, code, folder):
    folder.mkdir()
    result = LANGUAGES[language](code, folder)
    if result.returncode != 0 or not re.search(r"fencing token \d{10}", result.stdout):
        raise AssertionError(result.stdout)


def main():
    text = pathlib.Path(sys.argv[1]).read_text()
    text = text.split("## Use it", 1)[1].split("\n## ", 1)[0]
    blocks = [b for b in BLOCK.findall(text) if b[1] in LANGUAGES]
    with Stand(sys.argv[2]) as stand:
        failed = tap([
            (title, functools.partial(check, language, code.replace("5625", str(stand.port)),
                                      stand.folder / title))
            for title, language, code in blocks
        ])
    sys.exit(1 if failed else 0)


main()
