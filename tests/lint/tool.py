#!/usr/bin/env python3
"""Runs a checking tool over the tree: tool.py ROOT clang-format|codespell.

Exit code 77 (skipped) where the tool is not there, or is another version than the one
whose output the tree is formatted with.
"""
import pathlib
import shutil
import subprocess
import sys

SKIP = 77
FORMAT_MAJOR = "version 14."
WORDS = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "src", "include", "tests", "conf",
         "clients", "systemd", "debian", "meson.build"]


def clang_format(root):
    version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True,
                             check=True).stdout
    if FORMAT_MAJOR not in version:
        print(f"another clang-format: {version.strip()}")
        return SKIP
    sources = [p for d in ("src", "include", "tests")
               for p in sorted((root / d).glob("**/*.[ch]"))]
    return subprocess.run(["clang-format", "--dry-run", "-Werror", *sources],
                          check=False).returncode


def codespell(root):
    paths = [root / w for w in WORDS if (root / w).exists()]
    # Nd, TE: macros of the manual pages. oll: a field of CLIENT LIST. exat, smove: of Redis.
    # atleast: an option of LOCK. crate: of Rust. EDN: the form of Jepsen's histories.
    return subprocess.run(["codespell", "--skip", "*/corpus/*,*/go.sum",
                           "--ignore-words-list", "atleast,crate,edn,exat,nd,oll,optin,smove,te",
                           *paths],
                          check=False).returncode


def main():
    root, tool = pathlib.Path(sys.argv[1]), sys.argv[2]
    if shutil.which(tool) is None:
        print(f"{tool} is not installed")
        sys.exit(SKIP)
    sys.exit({"clang-format": clang_format, "codespell": codespell}[tool](root))


main()
