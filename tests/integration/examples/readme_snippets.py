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

HERE = pathlib.Path(__file__).resolve()
sys.path += [str(HERE.parents[2] / "support"), str(HERE.parents[1] / "http")]
import snippets
from http_stand import HttpStand
from stand import Skip, Stand, python_with_redis, run, tap

LATCHD, LATCHCTL, *PAGES = (os.path.abspath(path) for path in sys.argv[1:])

HELPER = HERE.parents[3] / "clients/python"
HAS_HTTP = "+http" in run([LATCHD, "--version"]).stdout


def python(code, folder):
    (folder / "example.py").write_text(code)
    return [python_with_redis(), "example.py"], {"PYTHONPATH": str(HELPER)}


def shell(stand, code, _folder):
    if "redis-cli" in code and shutil.which("redis-cli") is None:
        raise Skip("redis-cli is not installed")
    if "curl" in code:
        if shutil.which("curl") is None or not HAS_HTTP:
            raise Skip("curl is not installed, or latchd has no HTTP")
        code = code.replace("8080", str(stand.http_port))
    return ["sh", "-euc", code], {
        "PATH": f"{os.path.dirname(LATCHCTL)}:{os.environ['PATH']}",
        "LATCHD_URL": f"redis://127.0.0.1:{stand.port}"}


def main():
    pages = [pathlib.Path(page) for page in PAGES]
    stand = HttpStand(LATCHD, "--http-api", "yes") if HAS_HTTP else Stand(LATCHD)
    with stand, tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
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
