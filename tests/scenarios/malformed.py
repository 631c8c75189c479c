#!/usr/bin/env python3
"""A malformed scenario fails, and the failure names its file and line.

malformed.py ENGINE SIM: the programs of these stages; docs/testing.md has the grammar."""
import os
import subprocess
import sys
import tempfile

ENGINE, SIM = 0, 1
HEAD = "scenario it\n"
# The stage, the text, the line that is to blame; 0: it must pass.
CASES = {
    "all forms": (ENGINE, HEAD + "  for $n = 1 # of two\n      | 2\n  stats -> # the rest\n      "
                  "locks=0\n  repeat $n\n    ops -> 0\n", 0),
    "a row that continues": (ENGINE, HEAD + "  for $n = 0\n      | 1\n  ops -> $n\n", 4),
    "a row below that continues": (ENGINE, HEAD + "  for $n =\n    0 /\n      1\n  ops -> $n\n", 2),
    "no row": (ENGINE, HEAD + "  for $n =\n  ops -> 0\n", 2),
    "no `=`": (ENGINE, HEAD + "  for $n\n  ops -> 0\n", 2),
    "a definition of a verb": (ENGINE, "define after $n\n  ops -> 0\n\n" + HEAD + "  ops -> 0\n", 1),
    "no scenario": (ENGINE, "let $a = 1\nops -> 0\n", 2),
    "a word too much": (ENGINE, HEAD + "  after 1 + 1\n", 2),
    "a word too much for a verb without any": (ENGINE, HEAD + "  ops 1 -> 0\n", 2),
    "a word too much for redisson": (SIM, HEAD + "  redisson takes 5 6\n", 2),
    "nothing bound to compare with": (ENGINE, HEAD + "  ops -> <=$n\n", 2),
    "nothing bound to differ from": (ENGINE, HEAD + "  ops -> !=$n\n", 2),
    "a client without a token": (SIM, HEAD + "  a: LOCK job\n  world -> now=$a\n", 3),
    "a comment before a continuation": (ENGINE, HEAD + "  stats # all\n    -> locks=1\n", 2),
    "a comment behind a let": (ENGINE, "let $n = 1 # none\n" + HEAD + "  ops -> $n\n", 3),
    "a comment behind a row": (ENGINE, HEAD + "  for $n =\n    1 # none\n  ops -> $n\n", 4),
    "repeat of what is not bound": (ENGINE, HEAD + "  repeat $n\n    ops -> 0\n", 2),
    "repeat of no number": (ENGINE, HEAD + "  repeat 2x\n    ops -> 0\n", 2),
    "repeat of nothing": (ENGINE, HEAD + "  repeat 0\n    ops -> 0\n", 2),
    "repeat downwards": (ENGINE, HEAD + "  repeat 3 2\n    ops -> 0\n", 2),
    "an answer of nobody": (ENGINE, HEAD + "  -> 0\n", 2),
    "an answer that is not named": (ENGINE, HEAD + "  ops ->\n", 2),
    "a range downwards": (ENGINE, HEAD + "  close w9..w1\n", 2),
    "a range of two names": (SIM, HEAD + "  w1..x2: LOCK job\n", 2),
    "await without an answer": (ENGINE, HEAD + "  await ops\n", 2),
    "within without an answer": (ENGINE, HEAD + "  within 5 ops\n", 2),
    "a client that nobody named": (SIM, HEAD + "  a: LOCK job\n  b -> ...\n", 3),
    "nil of a key that is not there": (ENGINE, HEAD + "  stats -> none=nil\n", 2),
    "anything of a key that is not there": (ENGINE, HEAD + "  stats -> none=*\n", 2),
    "a key that is not there differs": (ENGINE, HEAD + "  stats -> none!=1\n", 2),
    "nil of a text": (SIM, HEAD + "  redis SET k nil -> OK\n  redis GET k -> nil\n", 3),
    "a command that is too long": (SIM, HEAD + f"  a: LOCK job DATA {'x' * 400}\n", 2),
    "a parameter outside of its define": (ENGINE, "define twice $n\n  ops -> $n\n" + HEAD +
                                          "  twice 0\n  after $n\n", 5),
    "a define in another": (SIM, "define inner $w\n  redis SET k $w -> OK\n  redis GET k -> xx\n"
                            'define outer $w\n  inner "$w$w"\n  redis SET k $w -> OK\n'
                            "  redis GET k -> x\n"
                            + HEAD + "  outer x\n", 0),
}


def main():
    programs = sys.argv[1:3]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "it.scn")
        for name, (stage, text, line) in CASES.items():
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            got = subprocess.run([programs[stage], path], capture_output=True, text=True,
                                 check=False, timeout=60)
            said = got.stdout + got.stderr
            if line == 0:
                right = got.returncode == 0 and "not ok" not in said
            else:
                right = f"{path}:{line}: " in said and ("not ok" in said or got.returncode != 0)
            if not right:
                wrong.append(name)
                print(f"{name}: line {line} expected:\n{text}{said}")
    sys.exit(f"not as they should be: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
