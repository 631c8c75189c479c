#!/usr/bin/python3
"""Faults that rules make: by_rule.py [--count N] [--minutes M] [--jobs J] [--seed S] [FILE...]

Each rule changes one place of src/engine: a condition is negated, && becomes || and < becomes
<=, true becomes false, + becomes -, a call is left out, two calls are swapped. A copy of the
sources has all of these faults, and is built once; the environment's LATCHD_PLANTED says which
one a program has. --count of them, drawn with --seed, are shown to the simulator, to the
scenarios of the engine, and to its unit tests, until one of these fails. Exit code 1: one fails
without a fault. The output: the survivors, each with its line, and how many were found in each
file. A survivor is for somebody to read: a test is missing, the code is dead, or the change is
none. FILE: only in these, such as hold.c.

Needs python3-clang-14, which Debian has for its own Python only.
"""
import argparse
import bisect
import collections
import concurrent.futures
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import clang.cindex as clang

sys.dont_write_bytecode = True  # nothing is written beside the sources
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE))

# pylint: disable=wrong-import-position
from mutants import ROOT, Copy  # noqa: E402

KIND = clang.CursorKind
FOLDER = "src/engine"
# The whole of a program has one `planted`, and reads it before main().
HEADER = """
#include <stdbool.h>
#include <stdlib.h>
__attribute__((weak)) int planted;
__attribute__((constructor)) static void read_planted(void)
{
    const char *number = getenv("LATCHD_PLANTED");

    planted = number == NULL ? 0 : atoi(number);
}
#define PLANTED(number) (planted == (number))
"""
OTHER = {"&&": "||", "||": "&&", "<": "<=", "<=": "<", ">": ">=", ">=": ">",
         "+": "-", "-": "+"}
# The reader of a log or the leak checker of CI misses them, nobody else.
SILENT = ("log_", "assert", "memory_", "free")
LIMIT_S = 60
UNIT = ["test_engine_many", "test_engine_states", "test_loan", "test_op"]
TARGETS = ["tests/sim/sim", "tests/scenarios/scenario_engine", "tests/scenarios/scenario_sim",
           *(f"tests/unit/{name}" for name in UNIT)]

Fault = collections.namedtuple("Fault", "number file line rule text")


class Source:
    """A file, and what is planted in it."""

    def __init__(self, path, unit, number):
        self.path, self.number = path, number
        self.bytes = path.read_bytes()
        self.lines = [0] + [i + 1 for i, c in enumerate(self.bytes) if c == 10]
        self.faults = []
        self.before, self.after = [], []  # (offset, text), the outer ones first
        self.macros = [self.span(c) for c in unit.cursor.get_children()
                       if c.kind == KIND.MACRO_INSTANTIATION and self.here(c)]
        for cursor in unit.cursor.get_children():
            if cursor.kind == KIND.FUNCTION_DECL and cursor.is_definition() and self.here(cursor):
                self.visit(cursor)

    def here(self, cursor):
        start = cursor.extent.start
        return start.file is not None and pathlib.Path(start.file.name) == self.path

    @staticmethod
    def span(cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def text(self, start, end):
        return self.bytes[start:end].decode()

    def written(self, span):
        """Whether no macro has made it, or has it as an argument."""
        start, end = span
        return start < end and not any(a <= start < b or a < end <= b for a, b in self.macros)

    def plant(self, span, rule, before, after):
        """`before` and `after` it stand these, with the number for %d."""
        start, end = span
        self.number += 1
        line = bisect.bisect_right(self.lines, start)
        first = self.text(start, min(end, start + 100)).split("\n")[0]
        self.faults.append(Fault(self.number, self.path.name, line, rule, first))
        self.before.append((start, before.replace("%d", str(self.number))))
        self.after.append((end, after))

    def visit(self, cursor):
        if cursor.kind in (KIND.CASE_STMT, KIND.SWITCH_STMT) or (
                cursor.kind == KIND.VAR_DECL and cursor.storage_class == clang.StorageClass.STATIC):
            pass  # what is constant stays so; the cases of a switch have statements
        elif cursor.kind == KIND.COMPOUND_STMT:
            self.statements(list(cursor.get_children()))
        elif cursor.kind == KIND.IF_STMT:
            condition = self.span(next(cursor.get_children()))
            if self.written(condition):
                self.plant(condition, "negated", "(PLANTED(%d) != !!(", "))")
        elif cursor.kind == KIND.BINARY_OPERATOR:
            self.operator(cursor)
        elif cursor.kind == KIND.CONDITIONAL_OPERATOR and self.is_extreme(cursor):
            return
        self.literal(cursor)
        children = list(cursor.get_children())
        if cursor.kind == KIND.CASE_STMT or cursor.kind == KIND.SWITCH_STMT:
            children = children[1:]
        if cursor.kind == KIND.VAR_DECL and (cursor.storage_class == clang.StorageClass.STATIC or
                                             cursor.type.kind == clang.TypeKind.CONSTANTARRAY):
            children = []
        for child in children:
            self.visit(child)

    def is_extreme(self, cursor):
        """a < b ? a : b, for which a <= b ? a : b is as good."""
        condition, *values = cursor.get_children()
        return ({self.text(*self.span(c)) for c in condition.get_children()} ==
                {self.text(*self.span(v)) for v in values})

    def literal(self, cursor):
        start, end = self.span(cursor)
        word = self.text(start, end)
        if word in ("true", "false") and cursor.kind == KIND.INTEGER_LITERAL:
            self.plant((start, end), "other truth", "(PLANTED(%d) != ", ")")

    def operator(self, cursor):
        operands = list(cursor.get_children())
        left, right = map(self.span, operands)
        whole = self.span(cursor)
        between = self.text(left[1], right[0]).strip()
        if between not in OTHER or not all(map(self.written, (left, right, whole))):
            return
        if between in "+-" and any(o.type.get_canonical().kind == clang.TypeKind.POINTER
                                   for o in operands):
            return
        rule = "off by one" if between[0] in "<>" else f"{OTHER[between]} for {between}"
        other = f"{self.text(*left)} {OTHER[between]} {self.text(*right)}"
        self.plant(whole, rule, f"(PLANTED(%d) ? ({other}) : (", "))")

    def call(self, cursor):
        """The span of a call that is a statement, with its semicolon, or None."""
        while cursor.kind in (KIND.CSTYLE_CAST_EXPR, KIND.UNEXPOSED_EXPR):
            inner = list(cursor.get_children())
            if not inner:
                return None
            cursor = inner[-1]
        if cursor.kind != KIND.CALL_EXPR or cursor.spelling.startswith(SILENT):
            return None
        return cursor

    def statements(self, children):
        spans = []
        for child in children:
            span = self.span(child)
            end = span[1] + self.bytes[span[1]:].find(b";") + 1
            alone = not self.text(span[1], end).strip("; \n")
            spans.append((span[0], end) if self.call(child) and alone and self.written(span)
                         else None)
        last = None
        for one, two in zip(spans, spans[1:]):
            if one and two and one != last:
                last = two
                swapped = f"{self.text(*two)} {self.text(*one)}"
                self.plant((one[0], two[1]), "swapped", f"if (PLANTED(%d)) {{ {swapped} }} else {{ ",
                           " }")
        for span in filter(None, spans):
            self.plant(span, "left out", "if (!PLANTED(%d)) { ", " }")

    def planted(self):
        """The file with all of them."""
        at = collections.defaultdict(lambda: [[], []])
        for (offset, text), (end, rest) in zip(self.before, self.after):
            at[offset][1].append((end, text))
            at[end][0].append((offset, rest))
        out, last = [], 0
        for offset in sorted(at):
            out.append(self.text(last, offset))
            ends, begins = at[offset]
            # Inner ones end first; of two of the same place the one planted first is outside.
            out += [rest for _, rest in sorted(reversed(ends), key=lambda e: -e[0])]
            out += [text for _, text in sorted(begins, key=lambda b: -b[0])]
            last = offset
        out.append(self.text(last, len(self.bytes)))
        return "".join(out)


def plant(copy, names):
    """Into the files of a copy. Gives the faults."""
    build, faults = copy.build, []
    index = clang.Index.create()
    commands = clang.CompilationDatabase.fromDirectory(str(build))
    for path in sorted((copy.source / FOLDER).glob("*.c")):
        command, = commands.getCompileCommands(str(path))
        words = [w for w in list(command.arguments)[1:] if w.startswith(("-I", "-D", "-std"))]
        words = [w if not w.startswith("-I") else f"-I{build / w[2:]}" for w in words]
        unit = index.parse(str(path), args=words,
                           options=clang.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        wrong = [d.spelling for d in unit.diagnostics if d.severity >= clang.Diagnostic.Error]
        assert not wrong, (path, wrong)
        if names and path.name not in names:
            continue
        source = Source(path, unit, faults[-1].number if faults else 0)
        faults += source.faults
        path.write_text(source.planted())
    return faults


def judges(copy):
    """Commands, the quickest first."""
    sim, unit = copy.build / "tests/sim/sim", copy.build / "tests/unit"
    yield [sim, "--schedules", 150]
    for path in sorted((copy.source / "tests/scenarios/engine").glob("*.scn")):
        yield [copy.build / "tests/scenarios/scenario_engine", path]
    for name in UNIT:
        yield [unit / name]
    yield [sim, "--schedules", 2000, "--seed", 1000]
    for path in sorted((copy.source / "tests/scenarios/sim").glob("*.scn")):
        yield [copy.build / "tests/scenarios/scenario_sim", path]
    yield [sim, "--schedules", 6000, "--seed", 10000]


def finder(copy, number):
    """The last word of the command that finds the fault, or None."""
    environment = {**os.environ, "LATCHD_PLANTED": str(number), "CK_FORK": "no"}
    for command in judges(copy):
        try:
            done = subprocess.run(list(map(str, command)), env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=LIMIT_S, check=False, cwd=copy.build)
        except subprocess.TimeoutExpired:
            return "it hangs"
        if done.returncode:
            return pathlib.Path(command[1 if len(command) == 2 else 0]).name
    return None


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--minutes", type=float, default=60, help="none begins later than that")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, action="append", help="only this fault")
    parser.add_argument("--folder", type=pathlib.Path, help="for the copy and its build",
                        default=pathlib.Path(tempfile.gettempdir()) / "latchd-by-rule")
    options = parser.parse_args()
    copy = Copy(options.folder)
    copy.make()
    header = options.folder / "planted.h"
    header.write_text(HEADER)
    faults = plant(copy, options.files)
    well, said = copy.run(["meson", "configure", copy.build, "-Dwerror=false", "-Doptimization=1",
                           f"-Dc_args=-include {header} -w"])
    well, said = copy.run(["ninja", "-C", copy.build, *TARGETS])
    if not well:
        sys.exit(said[-5000:])
    found = finder(copy, 0)
    if found:
        sys.exit(f"{found} fails without a fault")
    chosen = [f for f in faults if not options.number or f.number in options.number]
    random.Random(options.seed).shuffle(chosen)
    until = time.monotonic() + options.minutes * 60

    def hunt(fault):
        if time.monotonic() > until:
            return fault, "none: there was no time"
        return fault, finder(copy, fault.number)

    score = collections.defaultdict(lambda: [0, 0])
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for fault, by in pool.map(hunt, chosen[:options.count]):
            if by and by.startswith("none"):
                continue
            score[fault.file][0] += by is not None
            score[fault.file][1] += 1
            if by is None:
                print(f"{fault.number:5} {fault.file}:{fault.line}: {fault.rule}: {fault.text}", flush=True)
    for file, (caught, tried) in sorted(score.items()):
        print(f"{file:24} {caught:4} of {tried:4}")
    caught, tried = (sum(column) for column in zip(*score.values()))
    print(f"{caught} of {tried} found, {caught * 100 / tried:.1f} %; {len(faults)} can be planted")


main()
