#!/usr/bin/env python3
"""Writes latchd.conf(5): conf_page.py LATCHD latchd.conf.5.in OUT.

A list that begins with `.\\" keys: SECTION` gets an entry for each key of that section, in the
order of `latchd --print-config`: its default, whether it can be changed while latchd runs, its
help, and then the text of the list's entry of that name, if it has one.
"""
import re
import subprocess
import sys

LIST = re.compile(r'^\.\\" keys: ([^\n]+)\n(.*?)(?=^\.El\n\.S[hs] )', re.M | re.S)
ENTRY = re.compile(r"^\.It Ic (\S+)\n(.*?)(?=^\.It Ic |\Z)", re.M | re.S)


def keys_of(latchd):
    """Section -> [(key, default, live, help)]."""
    printed = subprocess.run([latchd, "--print-config"], capture_output=True, text=True, check=True,
                             env={}).stdout  # the builder's own LATCHD_PORT is no default
    sections, section = {}, None
    for block in printed.split("\n\n"):
        *text, last = block.strip("\n").split("\n")
        if last.startswith("# --- "):
            section = sections.setdefault(last[6:-4], [])
        elif section is not None:
            key, value = last.lstrip("#").split(" ", 1)
            words = " ".join(line[2:] for line in text)
            section.append((key, "none" if value == '""' else value, words.endswith(" [live]"),
                            words.removesuffix(" [live]")))
    return sections


def mdoc(text, keys):
    """The help as mdoc: names of keys are marked, a sentence begins a line."""
    marked = re.compile(r" ?`?\b(" + "|".join(keys) + r")\b`?([.,:;]?)(?= |$) ?")
    text = marked.sub(lambda m: f"\n.Ic {m[1]}{' ' + m[2] if m[2] else ''}\n", text)
    text = re.sub(r"([^. ]\.) (?=\S)", r"\1\n", text)
    return re.sub(r"(^| )-", r"\1\\-", text, flags=re.M).strip() + "\n"


def main():
    latchd, template, out = sys.argv[1:]
    sections = keys_of(latchd)
    # Other keys are words of the language, too, and are marked where the help quotes them.
    names = [key for keys in sections.values() for key, *_ in keys]
    marks = sorted((key if "-" in key else f"(?<=`){key}(?=`)" for key in names), key=len, reverse=True)
    done = []

    def fill(match):
        more = dict(ENTRY.findall(match[2]))
        text = ""
        for key, default, live, words in sections.pop(match[1]):
            text += f".It Ic {key} Pq default Cm {default}{' , live' if live else ''}\n"
            text += mdoc(words, marks) + more.pop(key, "")
            done.append(key)
        if more:
            sys.exit(f"{template}: latchd has no {', '.join(more)} in its section {match[1]}")
        return text

    with open(template, encoding="utf-8") as file:
        page = LIST.sub(fill, file.read())
    if sections:
        sys.exit(f"{template}: there is no list of {', '.join(sections)}")
    with open(out, "w", encoding="utf-8") as file:
        file.write(page)


main()
