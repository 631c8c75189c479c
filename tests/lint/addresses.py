#!/usr/bin/env python3
"""Addresses: the tree names no host but documentation ones.

Where packages come from is the business of the machine that builds: no index, mirror,
proxy or credential belongs into the sources. A proxy that is a folder of a test is none.
"""
import pathlib
import re
import subprocess
import sys

HOSTS = {"localhost", "127.0.0.1", "redis.io", "example.com", "example.org",
         "opensource.org", "0pointer.de", "www.gnu.org", "www.w3.org",
         "www.debian.org"}
URL = re.compile(rb"\b(?:https?|git|ssh)://(?:[^/@\s]*@)?([A-Za-z0-9.-]+)")
WORDS = re.compile(rb"(--|\b)(index-url|trusted-host)\b|\bGOPROXY\b(?!\W+f?\W?file:)|_authToken"
                   rb"|^\s*deb(-src)?\s+\S", re.MULTILINE)


def is_source(path):
    """Not what was built, nor what git keeps for itself."""
    return not any((folder / "meson-private").is_dir() or folder.name == ".git"
                   for folder in path.parents)


def files(root):
    """Those that git knows; all of the tree where there is no git."""
    try:
        out = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True,
                             check=True).stdout
        return [root / p.decode() for p in out.split(b"\0") if p]
    except (OSError, subprocess.CalledProcessError):
        return [p for p in root.glob("**/*") if p.is_file() and is_source(p)]


def main():
    root = pathlib.Path(sys.argv[1])
    bad = 0
    for path in files(root):
        if not path.is_file() or path.samefile(__file__) or "corpus" in path.parts:
            continue
        data = path.read_bytes()
        found = [m.group(0) for m in URL.finditer(data)
                 if m.group(1).decode().lower() not in HOSTS]
        found += [m.group(0).strip() for m in WORDS.finditer(data)]
        for what in found:
            print(f"{path.relative_to(root)}: {what.decode()}")
            bad += 1
    sys.exit(1 if bad else 0)


main()
