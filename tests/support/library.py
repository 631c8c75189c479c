"""redis-py, for tests of lock libraries: from library import redis"""
import os
import sys

from stand import Skip, python_with_redis

try:
    import redis  # pylint: disable=unused-import
except ImportError:  # the program starts again, with a Python that has it
    try:
        os.execv(python_with_redis(), [python_with_redis(), *sys.argv])
    except Skip as why:
        print(f"1..0 # SKIP {why}")
        sys.exit(0)
