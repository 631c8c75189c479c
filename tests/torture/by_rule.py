#!/usr/bin/python3
"""Faults that rules make: by_rule.py [--count N] [--minutes M] [--jobs J] [--seed S] [FILE...]

Each rule changes one place of src/engine, or with --scripts of the Lua scripts: a condition is negated, && becomes || and < becomes
<=, true becomes false, + becomes -, a call is left out, two calls are swapped. A copy of the
sources has all of these faults, and is built once; the environment's LATCHD_PLANTED says which
one a program has. --count of them, drawn with --seed, are shown to the simulator, to the
scenarios of the engine, and to its unit tests, until one of these fails. Exit code 1: one fails
without a fault. The output: the survivors, each with its line, and how many were found in each
file. A survivor is for somebody to read: a test is missing, the code is dead, or the change is
none. FILE: only in these, such as hold.c.

A script's fault is built by itself, in one of --jobs copies; the scenarios of the scripts judge
it on a real Redis, and then the simulator.

Needs python3-clang-14, which Debian has for its own Python only.
"""
import argparse
import bisect
import collections
import concurrent.futures
import os
import pathlib
import queue
import random
import re
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

Fault = collections.namedtuple("Fault", "number file line rule text edit", defaults=[None])


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
            if self.is_extreme_kept(cursor):
                return
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

    def is_extreme_kept(self, cursor):
        """if (a > b) { b = a; }, for which a >= b is as good."""
        condition, body, *rest = cursor.get_children()
        sides = [self.text(*self.span(c)) for c in condition.get_children()]
        kept = self.text(*self.span(body)).strip("{} \n;").split(" = ")
        return not rest and len(sides) == 2 and set(kept) == set(sides)

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


SCRIPTS = "src/backend/script/lua"
SCRIPT_TARGETS = ["tests/scenarios/scenario_script"]
LATER_TARGETS = ["tests/sim/sim", "tests/sim/sim_quorum", "tests/scenarios/scenario_sim"]
SURE = 2  # failures, where a real Redis on a busy machine may be slow
# Comments and texts, in which nothing is changed.
NOT_CODE = re.compile(r"--[^\n]*|'(?:[^'\\\n]|\\.)*'")
CONDITION = re.compile(r"\b(?:if|elseif)\b(.*?)\bthen\b", re.DOTALL)
LOGIC = re.compile(r"\b(and|or)\b")
COMPARED = re.compile(r"(?<=\s)(<=|>=|<|>)(?=\s)")
ONE = re.compile(r" [+-] 1\b(?!\.)")
CALL_LINE = re.compile(r"^[ \t]*[a-z_][a-z_.]*\(.*\)$", re.MULTILINE)


def script_faults(path, number):
    """Of one file, numbered from there: the edit is (path, start, end, what stands there then)."""
    text = path.read_text()
    code = NOT_CODE.sub(lambda m: "'" + "_" * (len(m[0]) - 2) + "'" if m[0][0] == "'"
                        else " " * len(m[0]), text)
    found = []

    def plant(start, end, rule, then):
        line = text.count("\n", 0, start)
        found.append(Fault(number + len(found), path.name, line + 1, rule,
                           text.split("\n")[line].strip(), (path, start, end, then)))

    for condition in CONDITION.finditer(code):
        start, end = condition.span(1)
        plant(start, end, "negated", f" not ({text[start:end]}) ")
        for word in LOGIC.finditer(code, start, end):
            other = "or" if word[0] == "and" else "and"
            plant(*word.span(), f"{other} for {word[0]}", other)
    for word in COMPARED.finditer(code):
        plant(*word.span(), "off by one", OTHER[word[0]])
    for one in ONE.finditer(code):
        plant(*one.span(), "off by one", "")
    last = None
    for call in CALL_LINE.finditer(code):
        line = call[0]
        if line.count("(") != line.count(")"):
            continue
        plant(*call.span(), "left out", "")
        if last and text[last[1]:call.start()] == "\n":
            plant(last[0], call.end(), "swapped",
                  f"{text[call.start():call.end()]}\n{text[last[0]:last[1]]}")
        last = call.span()
    return found


class Scripts:
    """Copies, in each of which one fault of a script is tried at a time."""

    def __init__(self, options):
        self.copies = queue.SimpleQueue()
        for i in range(options.jobs):
            copy = Copy(options.folder / f"scripts-{i}")
            copy.make()
            copy.run(["meson", "configure", copy.build, "-Doptimization=1"])
            if not i:
                self.faults = self.made(copy.source, options.files)
            for targets in (SCRIPT_TARGETS, LATER_TARGETS):
                well, said = copy.run(["ninja", "-C", copy.build, *targets])
                if not well:
                    sys.exit(said[-5000:])
            self.copies.put(copy)

    @staticmethod
    def made(source, names):
        faults = []
        for path in sorted((source / SCRIPTS).glob("*/*.lua")):
            if not names or path.name in names:
                faults += script_faults(path, len(faults) + 1)
        return faults

    def finder(self, fault):
        """As finder() below; `none` if it cannot be built."""
        copy = self.copies.get()
        try:
            return self.tried(copy, fault)
        finally:
            self.copies.put(copy)

    @staticmethod
    def tried(copy, fault):
        if fault is None:
            return finder(copy, 0, [*script_judges(copy), *later_judges(copy)], SURE)
        first, start, end, then = fault.edit
        path = copy.source / SCRIPTS / first.parent.name / first.name
        before = path.read_text()
        path.write_text(before[:start] + then + before[end:])
        try:
            if not copy.run(["ninja", "-C", copy.build, *SCRIPT_TARGETS])[0]:
                return "none: it cannot be built"
            found = finder(copy, 0, script_judges(copy), SURE)
            if found is None and copy.run(["ninja", "-C", copy.build, *LATER_TARGETS])[0]:
                found = finder(copy, 0, later_judges(copy))
            return found
        finally:
            path.write_text(before)


def script_judges(copy):
    for path in sorted((copy.source / "tests/scenarios/script").glob("*.scn")):
        yield [copy.build / "tests/scenarios/scenario_script", path]


def later_judges(copy):
    yield [copy.build / "tests/sim/sim", "--schedules", 2000]
    yield [copy.build / "tests/sim/sim_quorum", "--schedules", 300]
    for path in sorted((copy.source / "tests/scenarios/sim").glob("*.scn")):
        yield [copy.build / "tests/scenarios/scenario_sim", path]


class Engine:
    """One copy with all faults of the engine."""

    def __init__(self, options):
        self.copy = copy = Copy(options.folder)
        copy.make()
        header = options.folder / "planted.h"
        header.write_text(HEADER)
        self.faults = plant(copy, options.files)
        copy.run(["meson", "configure", copy.build, "-Dwerror=false", "-Doptimization=1",
                  f"-Dc_args=-include {header} -w"])
        well, said = copy.run(["ninja", "-C", copy.build, *TARGETS])
        if not well:
            sys.exit(said[-5000:])

    def finder(self, fault):
        return finder(self.copy, fault.number if fault else 0, judges(self.copy))


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


def fails(command, environment, folder):
    try:
        done = subprocess.run(list(map(str, command)), env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=LIMIT_S, check=False, cwd=folder)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def finder(copy, number, commands, times=1):
    """The last word of the command that finds the fault, so often, or None."""
    environment = {**os.environ, "LATCHD_PLANTED": str(number)}
    if number:
        environment["CK_FORK"] = "no"
    for command in commands:
        if all(fails(command, environment, copy.build) for _ in range(times)):
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
    parser.add_argument("--scripts", action="store_true", help="of the Lua scripts")
    parser.add_argument("--number", type=int, action="append", help="only this fault")
    parser.add_argument("--folder", type=pathlib.Path, help="for the copy and its build",
                        default=pathlib.Path(tempfile.gettempdir()) / "latchd-by-rule")
    options = parser.parse_args()
    tries = (Scripts if options.scripts else Engine)(options)
    found = tries.finder(None)
    if found:
        sys.exit(f"{found} fails without a fault")
    faults = tries.faults
    chosen = [f for f in faults if not options.number or f.number in options.number]
    random.Random(options.seed).shuffle(chosen)
    until = time.monotonic() + options.minutes * 60

    def hunt(fault):
        if time.monotonic() > until:
            return fault, "none: there was no time"
        return fault, tries.finder(fault)

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
