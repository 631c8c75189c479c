#!/usr/bin/env python3
"""gcc's static analyzer over the sources: analyzer.py ROOT BUILD

Not among the tests, as it takes the better part of a minute. BUILD is configured: some
headers are made there.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

# Where it is wrong, and why.
WRONG = {
    # A conn is zeroed by xcalloc(); writing one of its bit-fields counts as losing the others.
    "net/conn.c": ["-Wno-analyzer-use-of-uninitialized-value"],
}


def analyze(root, build, source):
    name = source.relative_to(root / "src").as_posix()
    return subprocess.run(
        ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-fanalyzer", "-Werror",
         *WRONG.get(name, []), "-I", root / "src", "-I", root / "include", "-I", build,
         "-I", build / "src", "-I", build / "include", "-c", "-o", os.devnull, source],
        capture_output=True, text=True, check=False)


def main():
    root, build = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    sources = [s for s in sorted((root / "src").rglob("*.c"))
               if not s.name.endswith("_none.c")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda s: analyze(root, build, s), sources))
    for one in done:
        sys.stderr.write(one.stderr)
    bad = sum(one.returncode != 0 for one in done)
    print(f"{len(sources)} sources, {bad} with findings")
    sys.exit(1 if bad or not sources else 0)


main()
