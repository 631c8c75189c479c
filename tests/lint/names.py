#!/usr/bin/env python3
"""Names and comments of src/: names.py ROOT. A function, static ones too, is a verb with its object,
so that a backtrace reads: one word is none. A comment names what it is about: a pronoun at its
beginning does not. In src/engine a pointer with a name of one letter is of the type that
CONTRIBUTING.md gives to that letter."""
import pathlib
import re
import sys

COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
FUNCTION = re.compile(r"^(?!return\b|else\b|typedef\b)[a-z][\w *]*?[ *](\w+)\([^;]*?\)\n\{", re.M)
PRONOUN = re.compile(r"[\s*]*(He|His|It|Its|She|That|Their|Them|These|They|This|Those)\b")
POINTER = re.compile(r"\bstruct (\w+) \*(?:const )?\*?([a-zA-Z])\b")
LETTER = re.compile(r"`(\w)` (\w+)")
ONE_WORD = {"main", "xcalloc", "xmalloc", "xmemdup0", "xrealloc", "xstrdup"}


def letters_of(text):
    """Letter -> the type that it points to, as the rule about them says."""
    rule = text[text.index("one letter is a pointer to one type"):]
    return dict(LETTER.findall(rule[:rule.index("\n- ")]))


def letter_faults(text, letters):
    for match in POINTER.finditer(text):
        if letters.get(match[2]) != match[1]:
            yield match.start(), (f"'{match[2]}' points to a {match[1]}, and not to a "
                                  f"{letters.get(match[2], '(no letter of the table)')}")


def faults_of(text):
    for match in COMMENT.finditer(text):
        if PRONOUN.match(match[1]):
            yield match.start(), f"a comment begins with '{PRONOUN.match(match[1])[1]}'"
    for match in FUNCTION.finditer(text):
        if "_" not in match[1] and match[1] not in ONE_WORD:
            yield match.start(), f"{match[1]}() is one word"


def main():
    root = pathlib.Path(sys.argv[1])
    letters = letters_of((root / "CONTRIBUTING.md").read_text())
    bad = functions = 0
    for path in sorted((root / "src").glob("**/*.[ch]")):
        text = path.read_text()
        functions += len(FUNCTION.findall(text))
        faults = list(faults_of(text))
        if path.parent.name == "engine":
            faults += letter_faults(text, letters)
        for at, why in faults:
            line = text.count("\n", 0, at) + 1
            print(f"{path.relative_to(root)}:{line}: {why}")
            bad += 1
    if functions < 1000:
        print("the functions are not found any more")
        bad += 1
    if len(letters) < 10:
        print("the letters of CONTRIBUTING.md are not found any more")
        bad += 1
    sys.exit(1 if bad else 0)


main()
