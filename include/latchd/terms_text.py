#!/usr/bin/env python3
"""Texts about the options in terms.def.

terms_text.py TERMS.def               a C header with the usage of LOCK and MLOCK
terms_text.py FILE TERMS.def          FILE, a manual page, filled in:
  .\\" @usage LOCK@                    the options of the command, for the head of its entry
  .\\" @options LOCK@                  the items of a list of them
  .\\" @latchctl@                      the items of a list of latchctl's
"""
import pathlib
import re
import sys

KINDS = ["FAIR", "READ", "WRITE", "PERMITS"]
COLUMNS = ["word", "type", "field", "min", "max", "limit", "commands", "needs", "without", "why",
           "ctl", "ctl_commands", "argument", "help"]


def rows(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    for found in re.finditer(r'^(?:TERM|OPTION)\(((?:[^()"]|"[^"]*")*)\)', text, re.M):
        columns = re.findall(r'(?:"[^"]*"|[^",])+', found[1])
        yield dict(zip(COLUMNS, (" ".join(c.split()).strip('"') for c in columns), strict=True))


def taken_by(terms, command):
    return [t for t in terms if f"FOR_{command}" in t["commands"].split(" | ")]


def usage(terms, command):
    """As in commands.def: the kinds first, of which one can be given."""
    def words(t):
        return " ".join(w for w in (t["word"], t["argument"]) if w)

    taken = taken_by(terms, command)
    limit = {t["needs"]: f" [{words(t)}]" for t in taken if t["needs"] == "OPT_PERMITS"}
    kinds = [words(t) + limit.get(f"OPT_{t['word']}", "") for t in taken if t["word"] in KINDS]
    others = [f"[{words(t)}]" for t in taken if t["word"] not in KINDS and t["needs"] not in limit]
    return " ".join(([f"[{' | '.join(kinds)}]"] if kinds else []) + others)


def usages(terms):
    return {f"{command}_USAGE": usage(terms, command) for command in ("LOCK", "MLOCK")}


def mdoc_usage(terms, command):
    taken = taken_by(terms, command)
    kinds = " | ".join(t["word"] + (f" Ar {t['argument']} Op Cm OF Ar limit"
                                    if t["word"] == "PERMITS" else "")
                       for t in taken if t["word"] in KINDS)
    if kinds:
        yield f".Op Cm {kinds}"
    for t in taken:
        if t["word"] not in KINDS and t["word"] != "OF":
            yield f".Op Cm {t['word']}" + (f" Ar {t['argument']}" if t["argument"] else "")


def mdoc_items(terms, flag):
    for t in terms:
        name = f"Fl -{t['ctl']}" if flag else f"Cm {t['word']}"
        argument = "time" if flag and t["type"] == "MS" else t["argument"]
        yield f".It {name}" + (f" Ar {argument}" if argument else "")
        yield t["help"][0].upper() + t["help"][1:] + "."


def fill(text, terms):
    text = re.sub(r'^\.\\" @usage (\w+)@$', lambda m: "\n".join(mdoc_usage(terms, m[1])), text,
                  flags=re.M)
    text = re.sub(r'^\.\\" @options (\w+)@$',
                  lambda m: "\n".join(mdoc_items(taken_by(terms, m[1]), False)), text, flags=re.M)
    ctl = mdoc_items([t for t in terms if t["ctl"]], True)
    return re.sub(r'^\.\\" @latchctl@$', lambda _: "\n".join(ctl), text, flags=re.M)


def main():
    terms = list(rows(pathlib.Path(sys.argv[-1])))
    if len(sys.argv) == 3:
        print(fill(pathlib.Path(sys.argv[1]).read_text(), terms), end="")
    else:
        for name, text in usages(terms).items():
            print(f'#define {name} "{text}"')


if __name__ == "__main__":
    main()
