#!/usr/bin/env python3
"""Runs README.md's examples in shell and Python: readme_snippets.py README LATCHD.

Those in other languages need libraries, and are run by the suite `clients`. Prints TAP.
"""
import functools
import pathlib
import shutil
import sys

import snippets
from stand import Skip, Stand, python_with_redis, run, tap


def python(code, folder):
    (folder / "example.py").write_text(code)
    return run([python_with_redis(), "example.py"], folder)


def shell(code, folder):
    if shutil.which("redis-cli") is None:
        raise Skip("redis-cli is not installed")
    return run(["sh", "-euc", code], folder)


LANGUAGES = {"python": python, "sh": shell}


def main():
    readme = pathlib.Path(sys.argv[1])
    with Stand(sys.argv[2]) as stand:
        failed = tap([
            (title, functools.partial(snippets.check, LANGUAGES[language], code,
                                      stand.folder / title, stand.port))
            for title, language, code in snippets.examples(readme, LANGUAGES)
        ])
    sys.exit(1 if failed else 0)


main()
