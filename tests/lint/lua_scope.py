#!/usr/bin/env python3
"""A script whose parts do not fit together fails the build, with the reason: lua_scope.py ROOT."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SCRIPT = """-- Adds up.
--@key 1 lock
--@arg 1 first
local lock, first = KEYS[1], tonumber(ARGV[1])
local sum
--@include include/part_add.lua
return redis.call('SET', lock, sum) and twice
"""
PART = """-- Part: adds up.
--@needs first
--@sets sum
--@leaves twice
sum = first + 1
local twice, rest = 2 * sum, 0
"""
# What is changed in the script or in its part, and what the build says.
CASES = [
    ("local sum\n", "", "x.lua:5: include/part_add.lua sets `sum`, which nothing before it makes"),
    ("local sum\n", "local function f(sum) return sum end\n", "sets `sum`, which nothing before"),
    ("lock, first = KEYS[1], tonumber(ARGV[1])", "lock = KEYS[1]",
     "include/part_add.lua needs `first`, which nothing before it makes"),
    ("local sum\n--@include include/part_add.lua\n",
     "do\nlocal sum\n--@include include/part_add.lua\nend\n",
     "x.lua:9: uses `sum`, which nothing before it makes"),
    ("and twice", "and rest", "x.lua:7: uses `rest` of include/part_add.lua, which does not say"),
    ("and twice", "and thrice", "x.lua:7: uses `thrice`, which nothing before it makes"),
    ("--@needs first\n", "", "part_add.lua:4: uses `first`, which is neither made here nor named"),
    ("--@needs first", "--@needs first lock", "--@needs `lock`, and does not use it so"),
    ("--@sets sum\n", "", "part_add.lua:4: sets `sum`, which is neither made here nor named"),
    ("--@leaves twice", "--@leaves twice last", "--@leaves `last`, and does not make it"),
    ("--@leaves", "--@leave", "there is no tag --@leave"),
    ("--@arg 1 first\n", "", "uses ARGV[1], of which no tag says what it is"),
    ("--@arg 1 first", "--@arg 1 last", "calls ARGV[1] `first`, which x.lua calls `last`"),
    ("--@arg 1 first", "--@arg 1 first\n--@arg 2 last", "says what ARGV[2] is, and does not use it"),
    ("--@arg 1 first", "--@arg 2 first", "its --@arg are numbered [2]"),
    ("--@arg 1 first", "--@args for each sum: first\n--@arg 1 first", "are numbered [0, 1]"),
    ("--@arg 1 first", "--@arg 1 first\n--@args the others", "there is no tag --@args"),
    ("--@arg 1 first", "--@arg 1 first\n--@if is_more\n--@args for each sum: first",
     "--@if is_more before `for each sum`"),
    ("sum = first + 1", "sum = = first", "'=' where"),
]


def embed(program, script, part):
    """Returns what the build says of this script with this part; nothing: all is well."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in ("embed_lua.py", "lua_order.py", "lua_scope.py"):
            shutil.copy(program / name, folder)
        (folder / "lua/include").mkdir(parents=True)
        (folder / "lua/x.lua").write_text(script)
        (folder / "lua/words.lua").write_text("".join(
            f"--@word {word} u64 {word}\n" for word in set(re.findall(r"@(?:key|arg) \d (\w+)", script))))
        (folder / "lua/include/part_add.lua").write_text(part)
        ran = subprocess.run([sys.executable, "-B", folder / "embed_lua.py", folder / "out.c",
                              folder / "calls.c", folder / "lua/x.lua"], capture_output=True, text=True)
        assert (ran.returncode == 0) == (folder / "out.c").exists()
        return ran.stderr


def main():
    program = pathlib.Path(sys.argv[1]) / "src/backend/script"
    bad = []
    said = embed(program, SCRIPT, PART)
    if said:
        bad.append(f"a script that fits together: {said}")
    for old, new, reason in CASES:
        assert old in SCRIPT + PART, old
        said = embed(program, SCRIPT.replace(old, new), PART.replace(old, new))
        if reason not in said:
            bad.append(f"{old!r} -> {new!r}: {said.strip() or 'nothing'}, not: {reason}")
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
