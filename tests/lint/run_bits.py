#!/usr/bin/env python3
"""Run bits: run_bits.py ROOT. What a reader is told to call by its path can be called so.

That is each script (its first line says what runs it) that a page for readers names by its
path, or that names itself so, where it says how it is used. What those pages name is there.
"""
import pathlib
import re
import sys

PAGES = ["*.md", "docs/**/*.md", "tests/**/*.md", "conf/**/*.md", "clients/**/*.md",
         "src/daemon/man/*.[0-9]",
         "src/latchctl/*.1"]
PATH = re.compile(r"(?<![\w./-])((?:tests|conf|\.ci)/[\w./-]*\w)")
# A history, of files that may be gone; and a list of tests, which nobody calls so.
NOT_FOR_CALLERS = ["CHANGELOG.md", "latchd-promises.7"]


def is_script(path):
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def can_be_run(path):
    return path.stat().st_mode & 0o111 == 0o111


def named_in(page, root):
    """(path, whether it is there) of each file or folder that the page names."""
    text = page.read_text(errors="replace").replace("\\&", "").replace("\\-", "-")
    for name in sorted(set(PATH.findall(text))):
        yield name, (root / name).exists()


def main():
    root = pathlib.Path(sys.argv[1])
    wanted, bad = {}, 0
    for page in sorted({p for pattern in PAGES for p in root.glob(pattern)}):
        if page.name in NOT_FOR_CALLERS:
            continue
        for name, there in named_in(page, root):
            if not there:
                print(f"{page.relative_to(root)}: there is no {name}")
                bad += 1
            elif (root / name).is_file():
                wanted.setdefault(name, page.relative_to(root))
    for folder in ("tests", "conf", ".ci"):
        for path in sorted((root / folder).glob("**/*")):
            name = path.relative_to(root).as_posix()
            if path.is_file() and is_script(path) and name in path.read_text():
                wanted.setdefault(name, name)
    for name, page in sorted(wanted.items()):
        if is_script(root / name) and not can_be_run(root / name):
            print(f"{name}: {page} calls it by its path: chmod +x")
            bad += 1
    print(f"{len(wanted)} files are named")
    sys.exit(1 if bad else 0)


main()
