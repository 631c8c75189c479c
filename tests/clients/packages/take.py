"""Takes a lock with the installed package: take.py URL NAME. Prints the token; gives it back at the end of its input."""
import sys

from latchd import Latchd

with Latchd(sys.argv[1]).lock(sys.argv[2], wait=10) as lock:
    print(lock.token, flush=True)
    sys.stdin.read()
