"""The C that writes the words of script calls, in the order in which the scripts declare them.

See lua_scope.py for the tags. Each word is written by put_<name>() of script_keys.h or
script_args.h; what an
`--@if` or a `for each` names is a function of script_select.h.
"""
import itertools

HEAD = """/* Made by lua_order.py, from the tags of the scripts. */
#include "backend/script/script_args.h"
#include "backend/script/script_keys.h"
"""


def plural(thing):
    return thing[:-1] + 'ies' if thing.endswith('y') else thing + 's'


def count_of(declared, kind):
    """How many words of a kind (KEYS or ARGV) a call has, in C."""
    sums, fixed = {}, 0
    for word in declared:
        if word.kind != kind:
            continue
        if word.each:
            what = f'count_{plural(word.each)}(from)'
            sums[what] = sums.get(what, 0) + 1
        elif word.condition:
            what = f'(size_t){word.condition}(from)'
            sums[what] = sums.get(what, 0) + 1
        else:
            fixed += 1
    parts = [str(fixed)] if fixed or not sums else []
    parts += [what if times == 1 else f'{times} * {what}' for what, times in sums.items()]
    return ' + '.join(parts)


def write_words(declared):
    """The C that writes these words, which are of one kind."""
    for (condition, each, _), words in itertools.groupby(
            declared, key=lambda word: (word.condition, word.each, word.group)):
        calls = [f'put_{"_or_".join(word.names)}(from);' for word in words]
        if condition:
            yield f'    if ({condition}(from)) {{'
        elif each:
            yield f'    for (size_t i = 0, n = count_{plural(each)}(from); i < n; i++) {{'
            calls.insert(0, f'select_{each}(from, i);')
        indent = ' ' * (8 if condition or each else 4)
        yield from (indent + call for call in calls)
        if condition or each:
            yield '    }'


def write_script(script, declared):
    """The C function that writes a call of this script."""
    yield ''
    yield f'static void write_{script}(struct script_source *from)'
    yield '{'
    yield f'    begin_script(from, LUA_{script.upper()},'
    yield f'                 {count_of(declared, "KEYS")}, {count_of(declared, "ARGV")});'
    yield from write_words([word for word in declared if word.kind == 'KEYS'])
    yield '    end_keys(from);'
    yield from write_words([word for word in declared if word.kind == 'ARGV'])
    yield '}'


def write_order(scripts):
    """`scripts`: the declared words of each, by its name. Returns the file."""
    out = [HEAD.rstrip()]
    for script, declared in scripts.items():
        out += write_script(script, declared)
    out += ['', 'script_writer *const SCRIPT_WRITERS[LUA_COUNT] = {']
    out += [f'    [LUA_{script.upper()}] = write_{script},' for script in scripts]
    out += ['};', f'_Static_assert(LUA_COUNT == {len(scripts)}, "enum lua_id");', '']
    return '\n'.join(out)
