"""The C that writes the words of script calls, in the order in which the scripts declare them.

lua_scope.py explains the tags of scripts, lua/words.lua those that say what a word is. The build
makes script_words.h from both: for each word a function that writes it, for each script one that
writes its call. script_codec.c includes that file.
"""
import itertools
import re

from lua_scope import Broken

DEFINED = re.compile(r'^--@(word|each) (.+\n(?:--@ +.+\n)*)', re.MULTILINE)
WORD = re.compile(r'(?P<name>[\w|]+) (?P<type>u64|text|bool|key|join|c)(?: (?P<value>.+))?')
EACH = re.compile(r'(?P<name>\w+) (?P<count>.+?): (?P<sets>\w+ = .+)')
LETTER = re.compile(r'(\\?\S): (.+)')
# A name that stands alone is a field of struct script_source; one in quotes is none.
FIELD = re.compile(r'("[^"]*")|(?<![\w.>])(?!from\b|i\b)([a-z]\w*)\b(?!\()')


def plural(thing):
    return thing[:-1] + 'ies' if thing.endswith('y') else thing + 's'


def expression(text):
    return FIELD.sub(lambda match: match[1] or f'from->{match[2]}', text)


def part_of(text):
    letter = LETTER.fullmatch(text)
    return (f'({expression(letter[2])}) ? SPAN("{letter[1]}") : SPAN_NONE' if letter
            else expression(text))


def split_parts(text):
    """The parts between the commas that are in no parentheses."""
    return re.findall(r'(?:[^,()]|\((?:[^()]|\([^()]*\))*\))+', text.replace(', ', ','))


def write_value(kind, value):
    """The C that writes a word of this type."""
    if kind == 'u64':
        return [f'command_uint(from->out, (uint64_t)({expression(value)}));']
    if kind == 'text':
        return [f'command_word(from->out, {expression(value)});']
    if kind == 'bool':
        return [f'command_word(from->out, ({expression(value)}) ? SPAN("1") : SPAN("0"));']
    if kind == 'key':
        ends = [f'SPAN({end})' for end in re.findall(r'"[^"]*"', value)] or [expression(value)]
        return [f'command_key(from->out, {ends[0]}, from->name, {(ends + ["SPAN_NONE"])[1]});']
    parts = [f'    {part_of(part)},' for part in split_parts(value)]
    return ['const struct span parts[] = {', *parts, '};', '',
            'command_join(from->out, parts, sizeof(parts) / sizeof(parts[0]));']


def function_of(word):
    return 'put_' + word.replace('|', '_or_')


def write_function(head, lines):
    return ['', head, '{', *('    ' + line if line else '' for line in lines), '}']


class Definitions:
    """What the words and the things of which there are several are."""

    def __init__(self, texts):
        self.words, self.things = {}, {}
        for where, text in texts:
            for kind, rest in DEFINED.findall(text):
                rest = ' '.join(re.sub(r'\n--@', ' ', rest).split())
                match = (WORD if kind == 'word' else EACH).fullmatch(rest)
                if not match:
                    raise Broken(f'{where}: cannot read --@{kind} {rest}')
                known = self.words if kind == 'word' else self.things
                if match['name'] in known:
                    raise Broken(f'{where}: --@{kind} {match["name"]} is not the first one')
                known[match['name']] = match

    def check(self, scripts):
        """Each word has one definition, and each definition is of use."""
        for found, known, tag in (
                ([('|'.join(word.names), script) for script, declared in scripts.items()
                  for word in declared], self.words, 'word'),
                ([(word.each, script) for script, declared in scripts.items()
                  for word in declared if word.each], self.things, 'each')):
            for name, script in found:
                if name not in known:
                    raise Broken(f'{script}.lua: there is no --@{tag} {name}')
            for name in known.keys() - {name for name, _ in found}:
                raise Broken(f'--@{tag} {name}: no script has it')

    def write(self):
        for name, match in self.words.items():
            if match['type'] != 'c':
                yield from write_function(
                    f'static void {function_of(name)}(struct script_source *from)',
                    write_value(match['type'], match['value']))
        for name, match in self.things.items():
            yield from write_function(
                f'static size_t count_{plural(name)}(const struct script_source *from)',
                [f'return {expression(match["count"])};'])
            yield from write_function(
                f'static void select_{name}(struct script_source *from, size_t i)',
                [expression(part.strip()) + ';' for part in split_parts(match['sets'])])


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
            what = f'(size_t)({expression(word.condition)})'
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
        calls = [f'{function_of("|".join(word.names))}(from);' for word in words]
        if condition:
            yield f'if ({expression(condition)}) {{'
        elif each:
            yield f'for (size_t i = 0, n = count_{plural(each)}(from); i < n; i++) {{'
            calls.insert(0, f'select_{each}(from, i);')
        indent = '    ' if condition or each else ''
        yield from (indent + call for call in calls)
        if condition or each:
            yield '}'


def write_script(script, declared):
    """The C function that writes a call of this script."""
    return write_function(f'static void write_{script}(struct script_source *from)', [
        f'begin_script(from, LUA_{script.upper()},',
        f'             {count_of(declared, "KEYS")}, {count_of(declared, "ARGV")});',
        *write_words([word for word in declared if word.kind == 'KEYS']),
        'end_keys(from);',
        *write_words([word for word in declared if word.kind == 'ARGV']),
    ])


def write_order(scripts, texts):
    """`scripts`: the declared words of each, by its name; `texts`: where definitions stand, and the
    texts there. Returns the file."""
    definitions = Definitions(texts)
    definitions.check(scripts)
    out = ['/* Made by lua_order.py, from the tags of the scripts. */', *definitions.write()]
    for script, declared in scripts.items():
        out += write_script(script, declared)
    out += ['', 'static script_writer *const SCRIPT_WRITERS[LUA_COUNT] = {']
    out += [f'    [LUA_{script.upper()}] = write_{script},' for script in scripts]
    out += ['};', f'_Static_assert(LUA_COUNT == {len(scripts)}, "enum lua_id");', '']
    return '\n'.join(out)
