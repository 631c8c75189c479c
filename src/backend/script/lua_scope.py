"""Which names a Lua script or part makes, needs, sets and leaves.

A part says it in its first comment, with one or more names a line:

  --@needs name...    the part reads it, and what comes before has made it
  --@sets name...     the part assigns it, and what comes before has made it (`local`)
  --@leaves name...   the part makes it, for what comes after

A script says what it is called with:

  --@key N name       what KEYS[N] is; `name|other` if it is one of two, or both; more words
                      explain it
  --@arg N name       the same of ARGV[N]
  --@if condition     the tags of the same kind from here on are sent only if this is so, in C as
                      in lua/words.lua
  --@keys for each thing: name...
  --@args for each thing: name...
                      what follows, in a number that differs from call to call
  --@without name...  a part needs it, but not for anything that this script asks of the part

The C side sends what these tags say, in their order (lua_order.py). What a name is there, lua/words.lua
says, or a `--@word` of the script.

check() finds every name that is used where nothing has made it, and every tag that is not true.
Redis would find the first kind only when it runs that very line.
"""
import re
import typing

# What Lua 5.1 and Redis provide.
GLOBALS = set('KEYS ARGV redis ipairs pairs math pcall string table tonumber tostring type '
              'unpack error'.split())
KEYWORDS = set('and break do else elseif end false for function if in local nil not or repeat '
               'return then true until while'.split())
TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<include>^--@include\ (?P<path>\S+)$)
  | (?P<comment>--[^\n]*)
  | (?P<string>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")
  | (?P<number>0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign>\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^\#<>=(){}\[\];:,.])
""", re.VERBOSE | re.MULTILINE)
TAG = re.compile(r'^--@(needs|sets|leaves|without) (.+)$', re.MULTILINE)
WORD = re.compile(r'^--@(?:(?P<kind>key|arg) (?P<number>\d+) (?P<name>[\w|]+)'
                  r'|(?P<kinds>key|arg)s for each (?P<each>\w+): (?P<names>[\w|]+( [\w|]+)*)$'
                  r'|if (?P<condition>.+)$)', re.MULTILINE)
KNOWN = re.compile(r'--@(include|needs|sets|leaves|without|word|each)? |' + WORD.pattern[1:])
KINDS = {'key': 'KEYS', 'arg': 'ARGV'}
BOUND = re.compile(r"(?:tonumber\()?((?:KEYS|ARGV)\[\d+\])(?:\)|=='\w*')?")
BINARY = set('+ - * / % ^ .. == ~= < <= > >= and or'.split())


class Word(typing.NamedTuple):
    """A key or an argument of a script."""
    kind: str  # KEYS or ARGV
    number: int  # 0: one of those that follow the numbered ones
    names: list  # more than one: it is one of these
    condition: str = ''  # sent only if this is so
    each: str = ''  # sent for each of these
    group: int = 0  # together with all others of this group


class Broken(Exception):
    """A script that does not fit together; says where and why."""


def tokens_of(text, path):
    at, out = 0, []
    while at < len(text):
        match = TOKEN.match(text, at)
        line = text.count('\n', 0, at) + 1
        if not match:
            raise Broken(f'{path}:{line}: cannot read {text[at:at + 20]!r}')
        at, kind, word = match.end(), match.lastgroup, match[0]
        if match['include']:
            out.append(('include', match['path'], line))
        elif kind == 'name' and word in KEYWORDS:
            out.append((word, word, line))
        elif kind == 'sign':
            out.append((word, word, line))
        elif kind == 'comment' and word.startswith('--@') and not KNOWN.match(word):
            raise Broken(f'{path}:{line}: there is no tag {word.split()[0]}')
        elif kind not in ('space', 'comment'):
            out.append((kind, word, line))
    return [*out, ('eof', '', text.count('\n'))]


def words_of(text):
    """What the tags of a script say that it is called with, in order."""
    condition, kind = '', ''
    for group, match in enumerate(WORD.finditer(text), 1):
        if match['condition']:
            condition, kind = match['condition'], ''
            continue
        found = KINDS[match['kind'] or match['kinds']]
        if kind and found != kind:
            condition = ''
        kind = found
        if match['each']:
            for names in match['names'].split():
                yield Word(kind, 0, names.split('|'), condition, match['each'], group)
        else:
            yield Word(kind, int(match['number']), match['name'].split('|'), condition)


class Reader:
    """Reads one file. `scopes` has what is made so far: name -> None, or the part whose own it is."""

    def __init__(self, path, text, part_of):
        self.path, self.part_of = path, part_of
        self.tags = {'needs': set(), 'sets': set(), 'leaves': set(), 'without': set()}
        for kind, names in TAG.findall(text):
            self.tags[kind].update(names.split())
        self.words = list(words_of(text))
        self.called_with, self.bound = {}, {}
        self.tokens, self.at = tokens_of(text, path), 0
        self.scopes, self.faults = [{}], []
        self.read, self.assigned = {}, {}
        self.block()
        self.take('eof')

    # Names

    def make(self, name, owner=None):
        self.scopes[-1][name] = owner

    def use(self, name, line, assigns=False, by=None):
        for scope in reversed(self.scopes):
            if name in scope:
                if scope[name]:
                    self.faults.append(f'{self.path}:{line}: uses `{name}` of {scope[name]}, '
                                       'which does not say --@leaves for it')
                return
        if name not in GLOBALS:
            (self.assigned if assigns else self.read).setdefault(name, (line, by))

    def is_made(self, name):
        return any(name in scope for scope in self.scopes)

    def use_word(self, word, line):
        """`word`: KEYS[1], for example."""
        if not self.is_made(word[:4]):
            self.called_with.setdefault(word, line)

    def include(self, path, line):
        part = self.part_of(path)
        for name in sorted(part.tags['needs']):
            self.use(name, line, by=path)
        for name in sorted(part.tags['sets']):
            self.use(name, line, assigns=True, by=path)
        for word in part.called_with:
            self.use_word(word, line)
        self.bound.update((where, word) for where, word in part.bound.items()
                          if not self.is_made(word[:4]))
        for name in part.scopes[0]:
            self.make(name, None if name in part.tags['leaves'] else path)

    # Tokens

    def kind(self):
        return self.tokens[self.at][0]

    def take(self, kind=None):
        found, word, line = self.tokens[self.at]
        if kind and found != kind:
            raise Broken(f'{self.path}:{line}: {word!r} where {kind!r} was expected')
        self.at += 1
        return word, line

    def skip(self, kind):
        if self.kind() == kind:
            self.take()
            return True
        return False

    def names(self):
        out = [self.take('name')[0]]
        while self.skip(','):
            out.append(self.take('name')[0])
        return out

    # Statements

    def block(self, *, made=(), end=()):
        if end:
            self.scopes.append(dict.fromkeys(made))
        while self.kind() not in ('end', 'else', 'elseif', 'until', 'eof'):
            self.statement()
        if 'until' in end:
            self.take('until')
            self.expression()
        if end:
            self.scopes.pop()

    def statement(self):
        kind = self.kind()
        if kind == 'include':
            self.include(*self.take())
        elif kind in ('do', 'while', 'for', 'repeat', 'if', 'function', 'local', 'return'):
            self.take()
            getattr(self, 'on_' + kind)()
        elif kind in ('break', ';'):
            self.take()
        else:
            self.assignment_or_call()

    def on_do(self, made=()):
        self.block(made=made, end=('end',))
        self.take('end')

    def on_while(self):
        self.expression()
        self.take('do')
        self.on_do()

    def on_for(self):
        made = self.names()
        if not self.skip('='):
            self.take('in')
        self.expressions()
        self.take('do')
        self.on_do(made)

    def on_repeat(self):
        self.block(end=('until',))

    def on_if(self):
        self.expression()
        self.take('then')
        self.block(end=('end',))
        if self.skip('elseif'):
            self.on_if()
        elif self.skip('else'):
            self.on_do()
        else:
            self.take('end')

    def on_function(self):
        self.use(*self.take('name'), assigns=True)
        self.function_body()

    def on_local(self):
        if self.skip('function'):
            self.make(self.take('name')[0])
            self.function_body()
            return
        made, line = self.names(), self.tokens[self.at][2]
        values = self.expressions() if self.skip('=') else []
        for name, value in zip(made, values):
            match = BOUND.fullmatch(value)
            if match and not self.is_made(value[:4]):
                self.bound[self.path, line, name] = match[1]
        for name in made:
            self.make(name)

    def on_return(self):
        if self.kind() not in ('end', 'else', 'elseif', 'until', 'eof', ';'):
            self.expressions()

    def assignment_or_call(self):
        targets = [self.suffixed(is_target=True)]
        while self.skip(','):
            targets.append(self.suffixed(is_target=True))
        if self.skip('='):
            self.expressions()
        for target in targets:
            if target:
                self.use(*target, assigns=True)

    # Expressions

    def expressions(self):
        """Returns the text of each."""
        texts = []
        while not texts or self.skip(','):
            first = self.at
            self.expression()
            texts.append(''.join(word for _, word, _ in self.tokens[first:self.at]))
        return texts

    def expression(self):
        while self.kind() in ('not', '-', '#'):
            self.take()
        kind = self.kind()
        if kind in ('nil', 'true', 'false', 'number', 'string', '...'):
            self.take()
        elif kind == '{':
            self.constructor()
        elif kind == 'function':
            self.take()
            self.function_body()
        else:
            self.suffixed()
        if self.kind() in BINARY:
            self.take()
            self.expression()

    def suffixed(self, is_target=False):
        """A name, what is taken from it, and its calls. Returns the name that alone is a target."""
        alone = None
        if self.skip('('):
            self.expression()
            self.take(')')
        else:
            alone = self.take('name')
            after = [token[1] for token in self.tokens[self.at:self.at + 3]]
            if alone[0] in ('KEYS', 'ARGV') and re.fullmatch(r'\[\d+\]', ''.join(after)):
                self.use_word(alone[0] + ''.join(after), alone[1])
            if not is_target or self.kind() not in ('=', ','):
                self.use(*alone)
                alone = None
        while self.kind() in ('.', ':', '[', '(', '{', 'string'):
            kind = self.kind()
            if kind == '{':
                self.constructor()
                continue
            self.take()
            if kind in '.:':
                self.take('name')
            elif kind == '[':
                self.expression()
                self.take(']')
            elif kind == '(' and not self.skip(')'):
                self.expressions()
                self.take(')')
        return alone

    def constructor(self):
        self.take('{')
        while not self.skip('}'):
            if self.skip('['):
                self.expression()
                self.take(']')
                self.take('=')
            elif self.kind() == 'name' and self.tokens[self.at + 1][0] == '=':
                self.take()
                self.take()
            self.expression()
            if self.kind() != '}' and not self.skip(';'):
                self.take(',')

    def function_body(self):
        self.take('(')
        made = [] if self.kind() in (')', '...') else self.names()
        self.skip('...')
        self.take(')')
        self.on_do(made)


def faults_of_tags(found):
    """What the tags of a part say, and is not so."""
    for tag, names in (('needs', found.read), ('sets', found.assigned)):
        for name in sorted(found.tags[tag] - set(names)):
            yield f'{found.path}: --@{tag} `{name}`, and does not use it so'
    for name in sorted(found.tags['leaves']):
        if found.scopes[0].get(name, found) is not None:
            yield f'{found.path}: --@leaves `{name}`, and does not make it'


def faults_of_words(found):
    """What a script is called with, and what it says of that."""
    named = {f'{word.kind}[{word.number}]': word.names for word in found.words if word.number}
    further = {word.kind for word in found.words if word.each}
    for kind in ('KEYS', 'ARGV'):
        numbers = [word.number for word in found.words if word.kind == kind]
        fixed = [number for number in numbers if number]
        if numbers != list(range(1, len(fixed) + 1)) + [0] * (len(numbers) - len(fixed)):
            yield f'{found.path}: its --@{kind[:3].lower()} are numbered {numbers}'
    for word in found.words:
        if word.each and word.condition:
            yield f'{found.path}: --@if {word.condition} before `for each {word.each}`'
    for word, line in found.called_with.items():
        if word not in named:
            yield f'{found.path}:{line}: uses {word}, of which no tag says what it is'
    for word in named:
        if word not in found.called_with and word[:4] not in further:
            yield f'{found.path}: says what {word} is, and does not use it'
    for (path, line, name), word in found.bound.items():
        if word in named and name not in named[word]:
            yield (f'{path}:{line}: calls {word} `{name}`, which {found.path} calls '
                   f'`{"|".join(named[word])}`')


def faults_of(found, is_part):
    """What is wrong with a file that was read."""
    yield from found.faults
    tags = found.tags
    allowed = {'needs': tags['needs'] | tags['sets'], 'sets': tags['sets']}
    for tag, names in (('needs', found.read), ('sets', found.assigned)):
        for name, (line, by) in names.items():
            if name in (allowed[tag] if is_part else tags['without'] if by else ()):
                continue
            what = f'{by} {tag}' if by else 'uses' if tag == 'needs' else 'sets'
            why = (f'is neither made here nor named by --@{tag}' if is_part
                   else 'nothing before it makes')
            yield f'{found.path}:{line}: {what} `{name}`, which {why}'
    if is_part:
        yield from faults_of_tags(found)
    else:
        yield from faults_of_words(found)
        for name in sorted(tags['needs'] | tags['sets'] | tags['leaves']):
            yield f'{found.path}: --@needs, --@sets and --@leaves are for parts (`{name}`)'


def check(scripts, lua):
    """Returns the words that each of these scripts is called with, by its name. Raises Broken with
    all that does not fit in them and in the parts in `lua` that they include."""
    parts, faults, words = {}, [], {}

    def part_of(path):
        if path not in parts:
            parts[path] = Reader(path, (lua / path).read_text(), part_of)
            faults.extend(faults_of(parts[path], True))
        return parts[path]

    for path in scripts:
        found = Reader(path.name, path.read_text(), part_of)
        faults.extend(faults_of(found, False))
        words[path.stem] = found.words
    if faults:
        raise Broken('\n'.join(faults))
    return words
