#!/usr/bin/env python3
"""Writes latchd-protocol(7): protocol_page.py PAGE stats.def commands.def terms.def OUT.

Two lines of the page become lists: `.\\" stats` the fields of INFO, with their metrics, and `.\\" commands` all
commands. terms_text.py, beside terms.def, fills in the options of LOCK.
"""
import importlib
import pathlib
import re
import sys

TEXT = re.compile(r'"([^"]*)"')


def rows(path, macro):
    """(the arguments of the macro as they are written, the texts among them) of each row."""
    for row in re.findall(rf"^(?:{macro})\((.*?)\)$", path.read_text(), re.M | re.S):
        row = re.sub(r'"\s+"', "", row)
        yield row, TEXT.findall(row)


def sentences(text):
    """As mdoc wants it: each begins a line."""
    return text.replace(". ", ".\n")


def fields(path):
    for row, (section, metric, *_, words) in rows(path, "STAT|TIMES"):
        if section:
            yield f".It Cm {row.split(',')[0]}{' Pq ' + metric if metric else ''}\n{sentences(words)}\n"


def commands(path, usages):
    for row, (name, _, _, *usage, summary, _) in rows(path, "COMMAND"):
        usage += [text for word, text in usages.items() if f" {word}," in row]
        if "CMD_CONTAINER" not in row or name == "command":
            words = [name.upper().replace("|", " "), *usage]
            yield f".It Ic {' '.join(words).rstrip()}\n{sentences(summary)}\n"


def main():
    page, stats, table, terms_def, out = map(pathlib.Path, sys.argv[1:])
    sys.path.insert(0, str(terms_def.parent))
    terms_text = importlib.import_module("terms_text")
    terms = list(terms_text.rows(terms_def))
    text = terms_text.fill(page.read_text(), terms)
    for mark, lines in ('.\\" stats\n', fields(stats)), ('.\\" commands\n', commands(table, terms_text.usages(terms))):
        assert text.count(mark) == 1, f"{page}: where is {mark}?"
        text = text.replace(mark, "".join(lines))
    out.write_text(text)


main()
