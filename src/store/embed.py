#!/usr/bin/env python3
"""Turns Lua scripts into C: readable string literals, lengths and SHA1.

embed.py OUT SCRIPT.lua...   A line `--@include part.lua` takes in that file, from the
script's own directory. Comments stay out of what Redis is sent.
"""
import hashlib
import pathlib
import sys


def lines_of(path):
    for line in path.read_text().splitlines():
        if line.startswith('--@include '):  # at column 0, also inside a block
            yield from lines_of(path.parent / line.split()[1])
        elif line.strip() and not line.lstrip().startswith('--'):
            yield line


def literal(line):
    return '"' + line.replace('\\', '\\\\').replace('"', '\\"') + '\\n"'


def main():
    out = ['/* Made by embed.py. */', '#include "store/scripts.h"', '',
           'const struct lua_script LUA_SCRIPTS[LUA_COUNT] = {']
    for arg in sys.argv[2:]:
        path = pathlib.Path(arg)
        lines = list(lines_of(path))
        text = ''.join(line + '\n' for line in lines).encode()
        out.append('    [LUA_%s] = {' % path.stem.upper())
        out.append('        .name = "%s",' % path.stem)
        out.append('        .sha1 = "%s",' % hashlib.sha1(text).hexdigest())
        out.append('        .len = %d,' % len(text))
        out.append('        .text =')
        out += ['            ' + literal(line) for line in lines]
        out[-1] += ','
        out.append('    },')
    out += ['};', '']
    pathlib.Path(sys.argv[1]).write_text('\n'.join(out))


main()
