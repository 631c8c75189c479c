#!/usr/bin/env python3
"""Turns Lua scripts into C: readable string literals, lengths and SHA1; and what calls them.

embed_lua.py OUT WORDS SCRIPT.lua...   OUT has the scripts, WORDS what lua_order.py makes of their
tags; OUT.d tells the build what they depend on. A line `--@include include/part.lua` takes in that
file, from lua/ beside this program. Comments stay out of what Redis is sent. The other tags
(`--@needs` and so on) are explained and checked in lua_scope.py.

Each script comes three times: as written; for clusters with sharded channels, where every
message goes to the sharded channel as well; and for such clusters without messages to plain
channels. The number of listeners is counted in the same ways. A daemon listens in both kinds of
channel and counts once, hence the maximum of the two.
"""
import hashlib
import pathlib
import re
import sys

import lua_order
import lua_scope

HERE = pathlib.Path(__file__).parent
LUA = HERE / 'lua'

PUBLISH = re.compile(r"(.*\b(?:p?call|try)\()'PUBLISH', (.*\))")
COUNTS = {'PUBLISH': 'NUMSUB', 'SPUBLISH': 'SHARDNUMSUB'}
LISTEN = re.compile(r"(\s*local \w+ = )(tonumber\(call\('PUBSUB', 'NUMSUB', .*\)\[2\]\))")


def lines_of(path):
    for line in path.read_text().splitlines():
        if line.startswith('--@include '):  # at column 0, also inside a block
            yield from lines_of(LUA / line.split()[1])
        elif line.strip() and not line.lstrip().startswith('--'):
            yield line


def sharded(lines, verbs):
    for line in lines:
        publish, listen = PUBLISH.fullmatch(line), LISTEN.fullmatch(line)
        assert publish or 'PUBLISH' not in line, line
        assert listen or 'NUMSUB' not in line, line
        if publish:
            for verb in verbs:
                yield f"{publish[1]}'{verb}', {publish[2]}"
        elif listen:
            counts = [listen[2].replace('NUMSUB', COUNTS[verb]) for verb in verbs]
            yield f"{listen[1]}math.max({', '.join(counts)})"
        else:
            yield line


VARIANTS = {
    'PUBLISH_PLAIN': iter,
    'PUBLISH_BOTH': lambda lines: sharded(lines, ('PUBLISH', 'SPUBLISH')),
    'PUBLISH_SHARDED': lambda lines: sharded(lines, ('SPUBLISH',)),
}


def literal(line):
    return '"' + line.replace('\\', '\\\\').replace('"', '\\"') + '\\n"'


def table(name, variant):
    out = [f'    [{name}] = {{']
    for arg in sys.argv[3:]:
        path = pathlib.Path(arg)
        lines = list(variant(lines_of(path)))
        text = ''.join(line + '\n' for line in lines).encode()
        out.append('    [LUA_%s] = {' % path.stem.upper())
        out.append('        .name = "%s",' % path.stem)
        out.append('        .sha1 = "%s",' % hashlib.sha1(text).hexdigest())
        out.append('        .len = %d,' % len(text))
        call = f'$7\\r\\nEVALSHA\\r\\n$40\\r\\n{hashlib.sha1(text).hexdigest()}\\r\\n'
        out.append(f'        .call = "{call}",')
        out.append('        .call_len = %d,' % len(call.encode().decode('unicode_escape')))
        out.append('        .text =')
        out += ['            ' + literal(line) for line in lines]
        out[-1] += ','
        out.append('    },')
    return out + ['    },']


def main():
    scripts = [pathlib.Path(arg) for arg in sys.argv[3:]]
    texts = [(path.name, path.read_text()) for path in [LUA / 'words.lua', *scripts]]
    try:
        calls = lua_order.write_order(lua_scope.check(scripts, LUA), texts)
    except lua_scope.Broken as broken:
        sys.exit(f'The scripts do not fit together:\n{broken}')
    out = ['/* Made by embed_lua.py. */', '#include "backend/script/scripts.h"', '']
    out.append('const struct lua_script LUA_SCRIPTS[PUBLISH_WAYS][LUA_COUNT] = {')
    for name, variant in VARIANTS.items():
        out += table(name, variant)
    pathlib.Path(sys.argv[1]).write_text('\n'.join([*out, '};', '']))
    pathlib.Path(sys.argv[2]).write_text(calls)
    read = [*HERE.glob('*.py'), LUA / 'words.lua', *LUA.glob('include/*.lua')]
    pathlib.Path(sys.argv[1] + '.d').write_text(f'{sys.argv[1]}: {" ".join(map(str, read))}\n')


main()
