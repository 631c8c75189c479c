#!/usr/bin/env python3
"""The helper for PHP, which has no threads: helpers_php.py LATCHD phpredis|predis. Prints TAP.

helpers/php_cases.php has the cases; it needs Debian's packages only.
"""
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
from stand import Stand, need  # noqa: E402

LIBRARIES = {"phpredis": "exit(!class_exists('Redis'));", "predis": "exit(!(@include 'Predis/autoload.php'));"}


def main():
    program, library = sys.argv[1:]
    need("php", "redis-server")
    if subprocess.run(["php", "-r", LIBRARIES[library]], check=False).returncode:
        print(f"1..0 # SKIP {library} is not installed")
        sys.exit(0)
    with Stand(program) as stand:
        done = subprocess.run(["php", HERE / "helpers/php_cases.php", library, str(stand.port)], check=False)
    sys.exit(done.returncode)


main()
