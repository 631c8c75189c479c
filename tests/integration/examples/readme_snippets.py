#!/usr/bin/env python3
"""Runs the examples in shell and Python of pages: readme_snippets.py LATCHD LATCHCTL PAGE...

Those in other languages need libraries, and are run by the suite `clients`. Prints TAP.
"""
import functools
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import snippets
from stand import Skip, Stand, python_with_redis, tap

LATCHD, LATCHCTL, *PAGES = (os.path.abspath(path) for path in sys.argv[1:])

HELPER = pathlib.Path(__file__).resolve().parents[3] / "clients/python"


def python(code, folder):
    (folder / "example.py").write_text(code)
    return [python_with_redis(), "example.py"], {"PYTHONPATH": str(HELPER)}


def shell(stand, code, _folder):
    if "redis-cli" in code and shutil.which("redis-cli") is None:
        raise Skip("redis-cli is not installed")
    return ["sh", "-euc", code], {
        "PATH": f"{os.path.dirname(LATCHCTL)}:{os.environ['PATH']}",
        "LATCHD_URL": f"redis://127.0.0.1:{stand.port}"}


def main():
    pages = [pathlib.Path(page) for page in PAGES]
    with Stand(LATCHD) as stand, tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        languages = {"python": python, "sh": functools.partial(shell, stand)}
        failed = tap([
            *((title, functools.partial(snippets.check, languages[language], code,
                                        stand.folder / title, stand.port))
              for page in pages
              for title, language, code in snippets.examples(page, languages)),
            *(case for page in pages
              for case in snippets.cases(page, languages, LATCHD, pathlib.Path(folder))),
        ])
    sys.exit(1 if failed else 0)


main()
