#!/usr/bin/env python3
"""Those who ask too much, and a machine that has too little.

    tests/limits/limits.py LATCHD [hard] [CASE...]

Beside each attack a client locks and unlocks: its answers keep coming. The daemon's
memory stays within what the limits promise, and when the attackers have left, all is as
it was before. Prints TAP, and what the client beside saw; `hard`: longer and with more of
everything, for a machine that has nothing else to do.
"""
import functools
import sys

import support  # pylint: disable=unused-import # the others find their modules by it
import cases_floods
import cases_machine
from stand import tap


def main():
    program = sys.argv[1]
    wanted = [word for word in sys.argv[2:] if word != "hard"]
    cases = [case for case in cases_floods.CASES + cases_machine.CASES
             if not wanted or case.__name__ in wanted]
    sys.exit(1 if tap([(case.__name__, functools.partial(case, program))
                       for case in cases]) else 0)


main()
