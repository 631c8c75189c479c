#!/usr/bin/env python3
"""A completion of latchctl, filled in: completion.py SCRIPT options.def terms.def

In the script, a word between @ becomes what the table says:
  @commands@        the subcommands
  @valued@          options with a value, also the short ones and other spellings
  @target@          options that say which latchd; @target_valued@: those with a value
  @common@          long options of all subcommands
  @take FILE@       options whose value is a FILE, as a pattern of the shell's `case`
  @cases@           for bash: the long options of each subcommand
  @zsh_commands@, @zsh_common@, @zsh_cases@     specs of _arguments
  @fish@            calls of `complete`
"""
import importlib
import pathlib
import re
import sys

ALIASES = {"ALL": None, "TAKES": ["RUN", "LOCK"],
           "PRINTS": ["LOCK", "UNLOCK", "TOP", "WHY", "LS", "LEADER", "LATCH", "FORCE"]}
SPOKEN = {"NAME-OF-HOST": "name of the host"}


class Option:
    def __init__(self, name, letter, commands, argument, help_):
        self.name, self.letter, self.argument, self.help = name, letter, argument, help_
        self.commands = []  # empty: all
        for word in commands.split(" | "):
            self.commands += (ALIASES.get(word, [word]) or [])

    def words(self):
        return [f"--{self.name}"] + ([f"-{self.letter}"] if self.letter else [])

    def zsh(self):
        text = f"[{self.help}]" + (f":{SPOKEN.get(self.argument, self.argument.lower())}:{self.zsh_values()}"
                                   if self.argument else "")
        many = "\\*" if self.name == "and" else ""
        long = f"--{self.name}" + ("=" if self.argument else "")
        if not self.letter:
            return f"'{many[1:]}{long}{text}'"
        return f"'(-{self.letter} --{self.name})'{{-{self.letter}{'+' if self.argument else ''},{long}}}'{text}'"

    def zsh_values(self):
        return {"FILE": "_files", "DIR": "_files -/", "HOST": "_hosts", "NAME": "_latchctl_names",
                "ORDER": "(waiters wait held name)"}.get(self.argument, " ")

    def fish(self):
        words = ["complete -c latchctl"]
        words.append(f"-n '{' '.join(['__latchctl_is', *(c.lower() for c in self.commands)])}'")
        words += ([f"-s {self.letter}"] if self.letter else []) + [f"-l {self.name}"]
        if self.argument:
            words.append({"FILE": "-r -F", "DIR": "-x -a '(__fish_complete_directories)'",
                          "HOST": "-x -a '(__fish_print_hostnames)'", "NAME": "-x -a '(__latchctl_names)'",
                          "ORDER": "-x -a 'waiters wait held name'"}.get(self.argument, "-x"))
        return " ".join(words) + f' -d "{self.help}"'


def rows(text, kind):
    """The columns of the rows of a kind, without quotes."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for row in re.findall(rf"^{kind}\((.*)\)$", text, re.M):
        yield [c.strip().strip("\"'") for c in re.findall(r'(?:"[^"]*"|\([^)]*\)|[^",(])+', row)]


def of_table(text):
    for name, letter, _, commands, _, _, argument, help_ in rows(text, "CTL_OPTION"):
        yield Option(name, "" if letter == "0" else letter, commands, argument, help_)


def of_terms(path):
    sys.path.insert(0, str(path.parent))
    sys.dont_write_bytecode = True
    for term in importlib.import_module("terms_text").rows(path):
        if term["ctl"]:
            argument = "TIME" if term["type"] == "MS" else term["argument"].upper()
            yield Option(term["ctl"], "", term["ctl_commands"], argument, term["help"])


def fill(text, commands, options):
    offered = [o for o in options if o.help]
    common = [o for o in offered if not o.commands]
    target = [o for o in options if not o.commands and o.name not in ("help", "version")]
    by_command = {name: [o for o in offered if id_ in o.commands] for id_, name, _ in commands}
    by_command = {name: own for name, own in by_command.items() if own}

    def joined(some):
        return " ".join(word for o in some for word in o.words())

    def cases(form, indent):
        return "\n".join(f"{indent}{name}) {form(own)} ;;" for name, own in by_command.items())

    marks = {
        "commands": " ".join(name for _, name, _ in commands),
        "valued": joined(o for o in options if o.argument),
        "target": joined(target),
        "target_valued": joined(o for o in target if o.argument),
        "common": " ".join(f"--{o.name}" for o in common),
        "cases": cases(lambda own: f"common+=' {' '.join('--' + o.name for o in own)}'", " " * 12),
        "zsh_commands": "\n".join(f"        '{name}:{help_}'" for _, name, help_ in commands),
        "zsh_common": "\n".join(f"        {o.zsh()}" for o in common),
        "zsh_cases": cases(lambda own: "options+=(\n" + "\n".join(f"            {o.zsh()}" for o in own) + "\n        )",
                           " " * 8),
        "fish": "\n".join([*(f"complete -c latchctl -n __latchctl_needs_command -a {name} -d \"{help_}\""
                             for _, name, help_ in commands), *(o.fish() for o in offered)]),
    }
    text = re.sub(r"@take (\w+)@", lambda m: " | ".join(w for o in options if o.argument == m[1] for w in o.words()),
                  text)
    return re.sub(r"^[ ]*@(\w+)@$|@(\w+)@", lambda m: marks[m[1] or m[2]], text, flags=re.M)


def main():
    script, table, terms = map(pathlib.Path, sys.argv[1:])
    text = table.read_text()
    options = [*of_table(text), *of_terms(terms)]
    print(fill(script.read_text(), list(rows(text, "CTL_COMMAND")), options), end="")


main()
