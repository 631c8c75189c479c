#!/usr/bin/env python3
"""Layers: who may include whom, and which libraries each folder may touch.

Includes of our own headers are written from src/, so the first word of an include is the
layer. A folder may include itself and what LAYERS grants it, nobody includes daemon/. Headers
include each other in no circle.
"""
import pathlib
import re
import sys

LAYERS = {
    "util": set(),
    "acl": {"util"},
    "resp": {"util"},
    "lockscript": {"util"},
    "engine": {"util"},
    "io": {"util"},
    "backend": {"util", "engine", "io"},
    "net": {"util", "resp", "io"},
    "cmd": {"util", "acl", "resp", "lockscript", "engine", "net"},
    "http": {"util"},
    "daemon": {"util", "acl", "resp", "lockscript", "engine", "io", "backend", "net", "http",
               "cmd"},
    "latchctl": {"util", "io"},
}

# Headers that only some layers may use; whatever is not listed is free.
SOCKETS = {"io", "net", "backend", "http", "daemon", "latchctl"}
LIBRARIES = [
    (r"uv(/.*)?\.h", {"io", "backend", "net", "http", "daemon"}, "libuv"),
    (r"microhttpd\.h", {"http"}, "libmicrohttpd"),
    (r"(hiredis/)?(hiredis|read|sds)\.h", {"backend", "latchctl"}, "hiredis"),
    (r"(hiredis/)?(async|adapters/.*)\.h", set(), "hiredis's async context"),
    (r"(sys/socket|sys/un|netinet/.*|arpa/.*|netdb|sys/epoll)\.h", SOCKETS, "sockets"),
    (r"poll\.h", SOCKETS | {"util"}, "what waits for sockets"),
    (r"(time|sys/time|sys/timerfd)\.h",
     {"util", "io", "backend", "net", "daemon", "latchctl"}, "a clock"),
    (r"openssl/.*\.h", {"acl", "io", "util"}, "OpenSSL"),
    (r"pthread\.h|threads\.h", set(), "threads"),
    (r"ut(hash|list|array|string)\.h", set(), "uthash: util/table.h, util/list.h"),
]
OURS = [
    ("util/log.h", {"io", "backend", "net", "http", "cmd", "daemon"}, "the log"),
    ("util/clock.h", {"util", "io", "backend", "net", "http", "cmd", "daemon", "latchctl"},
     "a clock"),
    ("latchd-config.h", {"cmd", "daemon", "latchctl"}, "the version"),
]
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def problem(layer, own, bracket, name, sources):
    """Why this include is wrong, or None."""
    if bracket == "<":
        for pattern, allowed, what in LIBRARIES:
            if re.fullmatch(pattern, name) and layer not in allowed:
                return f"{layer}/ must not use {what}"
        return None
    for header, allowed, what in OURS:
        if name == header and layer not in allowed and own != header.replace(".h", ".c"):
            return f"{layer}/ must not use {what}"
    first = name.split("/")[0]
    if first not in LAYERS or "/" not in name:
        return None
    if first == "daemon" and layer != "daemon":
        return "nobody includes daemon/"
    if first != layer and first not in LAYERS[layer]:
        return f"{layer}/ must not include {first}/"
    if not (sources / name).exists() and not generated(name):
        return f"{name} is not there"
    return None


def generated(name):
    return name == "backend/script_words.h"


def circles(sources):
    """The circles of headers that include each other, each as the names on it."""
    includes = {}
    for path in sources.glob("**/*.h"):
        matches = map(INCLUDE.match, path.read_text().splitlines())
        includes[path.relative_to(sources).as_posix()] = [
            m[2] for m in matches if m and m[1] == '"']
    done = set()

    def follow(header, way):
        if header in way:
            yield [*way[way.index(header):], header]
        elif header not in done:
            for other in includes.get(header, ()):
                yield from follow(other, [*way, header])
            done.add(header)

    for header in sorted(includes):
        yield from follow(header, [])


def main():
    sources = pathlib.Path(sys.argv[1]) / "src"
    bad = 0
    for path in sorted(sources.glob("**/*.[ch]")):
        own = path.relative_to(sources).as_posix()
        layer = own.split("/")[0]
        if layer not in LAYERS:
            print(f"src/{own}: {layer}/ is not a layer of the design")
            bad += 1
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            why = match and problem(layer, own, *match.groups(), sources)
            if why:
                print(f"src/{own}:{number}: {line.strip()}: {why}")
                bad += 1
    for circle in circles(sources):
        print("a circle of headers: " + " -> ".join(circle))
        bad += 1
    sys.exit(1 if bad else 0)


main()
