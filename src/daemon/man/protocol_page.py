#!/usr/bin/env python3
"""Writes latchd-protocol(7): protocol_page.py PAGE stats.def OUT.

The line `.\\" stats` of the page becomes the fields of INFO that stats.def has, with their metrics.
"""
import pathlib
import re
import sys

MARK = '.\\" stats\n'
TEXT = re.compile(r'"([^"]*)"')


def fields(text):
    for row in re.findall(r"^(?:STAT|TIMES)\((.*?)\)$", text, re.M | re.S):
        section, metric, *_, words = TEXT.findall(re.sub(r'"\s+"', "", row))
        if section:
            yield f".It Cm {row.split(',')[0]}{' Pq ' + metric if metric else ''}\n{words}\n"


def main():
    page, stats, out = map(pathlib.Path, sys.argv[1:])
    text = page.read_text()
    assert text.count(MARK) == 1, f"{page}: where is {MARK}?"
    out.write_text(text.replace(MARK, "".join(fields(stats.read_text()))))


main()
