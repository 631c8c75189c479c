#!/usr/bin/env python3
"""The size and the order of the house, as a table: house.py ROOT. `ninja -C build house` prints it.

"Declared elsewhere" counts the functions that a header of src/ declares and that another .c than
the header's own defines; what both define is one function built in two ways (tls_none.c). "Files in a call cycle" counts, folder by folder, the .c files that call
each other in a cycle.
"""
import pathlib
import re
import statistics
import sys

from call_graph import CallGraph, NOISE, components

DECLARED = re.compile(r"^(?!typedef\b|static\b|return\b)[a-z][\w *]*?[ *](\w+)\([^;{}]*\)[^;{}]*;", re.M)
POINTER = re.compile(r"\(\*\w+\)\(|^\s+\w+_fn \*\w+;", re.M)


def lines_of(paths):
    return [len(path.read_text().splitlines()) for path in paths]


def sources(folder, *endings):
    return sorted(path for ending in endings for path in folder.glob("**/*." + ending))


def declared_elsewhere(src, graph):
    """How many functions headers declare, and which of them another file defines."""
    declared, elsewhere = 0, []
    for header in sources(src, "h"):
        own = header.relative_to(src).as_posix()
        for name in DECLARED.findall(NOISE.sub(" ", header.read_text())):
            file = graph.file.get(("", name))
            if file is None or file.endswith(".h"):
                continue
            declared += 1
            if file != own[:-2] + ".c" and not defines(src / (own[:-2] + ".c"), name):
                elsewhere.append(f"{name}() of {own} is in {file}")
    return declared, elsewhere


def defines(path, name):
    return path.exists() and re.search(rf"^\w[\w *]*[ *]{name}\(", path.read_text(), re.M)


def call_cycles(src, graph):
    """Folder -> its .c files that call each other in a cycle. Layers are checked by includes.py."""
    found = {}
    for top in sorted(path.name for path in src.iterdir() if path.is_dir()):
        edges = {}
        for key, others in graph.calls.items():
            here = graph.file[key]
            for other in others:
                there = graph.file[other]
                if here != there and here.startswith(top + "/") and there.startswith(top + "/"):
                    edges.setdefault(here, {})[there] = True
        files = set().union(*components(edges)) if edges else set()
        if files:
            found[top] = sorted(files)
    return found


def count_terms(page):
    return sum(1 for line in page.read_text().splitlines() if line.startswith("| **"))


def measure(root):
    src, tests = root / "src", root / "tests"
    c_files = sources(src, "c", "h")
    sizes = lines_of(c_files)
    text = "".join(NOISE.sub(" ", path.read_text()) for path in c_files)
    graph = CallGraph(src)
    declared, elsewhere = declared_elsewhere(src, graph)
    cycles = call_cycles(src, graph)
    folders = {path.parent for path in c_files}
    python = sources(tests, "py")
    yield "lines of C in src", f"{sum(sizes):,}"
    yield "files of C in src", f"{len(c_files)}"
    yield "median file, largest .c (lines)", (
        f"{statistics.median_low(sizes)}, {max(lines_of(sources(src, 'c'))):,}")
    yield "folders of src with C", f"{len(folders)}"
    yield "functions declared in x.h, defined in another y.c", (
        f"{100 * len(elsewhere) / declared:.1f} % ({len(elsewhere)} of {declared})")
    yield "structs, enums", ", ".join(
        str(len(set(re.findall(rf"\b{what} (\w+)\s*\{{", text)))) for what in ("struct", "enum"))
    yield "files in a call cycle, by folder", (
        ", ".join(f"{folder} {len(files)}" for folder, files in cycles.items()) or "none")
    yield "function pointers in structs", f"{len(POINTER.findall(text))}"
    yield "terms in the glossary", f"{count_terms(root / 'docs/glossary.md')}"
    yield "lines of C in tests", f"{sum(lines_of(sources(tests, 'c', 'h'))):,}"
    yield "lines of Python in tests", f"{sum(lines_of(python)):,}"
    yield "words in docs and README", f"{count_words([*sources(root / 'docs', 'md'), root / 'README.md']):,}"
    yield "words in man pages", f"{count_words(man_pages(src)):,}"
    if "--list" in sys.argv:
        yield from (("elsewhere", line) for line in elsewhere)
        yield from (("cycle", file) for files in cycles.values() for file in files)


def man_pages(src):
    return sorted(path for ending in ("", ".in") for path in src.glob("**/*.[1-8]" + ending))


def count_words(paths):
    return sum(len(path.read_text().split()) for path in paths)


def main():
    root = pathlib.Path(sys.argv[1])
    for what, value in measure(root):
        print(f"{what:<50} {value}")


main()
