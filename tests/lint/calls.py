#!/usr/bin/env python3
"""Calls between the files of the engine, and between its parts: calls.py ROOT.

A part is a folder of src/engine, or a file that stands in src/engine itself. No file and no part
calls, or takes the address of a function of, one that comes back to it. And only the scheduler,
schedule/, calls what makes an op for Redis. An inline function of a header is like a field of the
struct there: it is a part of whoever calls it.
"""
import pathlib
import re
import shutil
import sys
import tempfile

SCHEDULER = "schedule"
MAKES_OP = "inflight_op"
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^#[^\n]*$', re.S | re.M)
FUNCTION = re.compile(r"^((?:\w+[ *]+)+)(\w+)\(([^;{}]*)\)\n\{\n(.*?)^\}", re.S | re.M)
# A name that is called, or given away as a function: no field, tag or declared variable.
USE = re.compile(r"(?:(->|\.|\bstruct |\benum )\s*)?\b([a-z_]\w*)\b(?=\s*([(),;:?}]))")

# What is planted in a copy of the sources, and what is said of it.
PLANTED = [
    ("hold/entry.c", "void mend_entry(struct engine *eng, struct lock *lock)\n{\n"
     "    lock_step(eng, lock);\n}\n",
     "hold/entry.c: mend_entry() calls lock_step() in schedule/lock_step.c"),
    ("effect.c", "effect_fn *find_effect(void)\n{\n    return effects_add;\n}\n"
     "hook_fn *find_hook(void)\n{\n    return emit_null;\n}\n",
     "effect.c: find_hook() calls emit_null() in emit.c"),
    ("wait/wait_graph.c", "void mend_wait(struct engine *eng, struct waiter *w)\n{\n"
     "    waiter_remove(eng, w);\n}\n",
     "files that call each other in a cycle: wait/wait_graph.c, wait/waiter.c"),
    ("release/release.c", "void send_twice(struct engine *eng, struct lock *lock)\n{\n"
     "    acquire_ask(eng, lock, lock_head(lock));\n}\n",
     "release/release.c: send_twice() calls acquire_ask(), which sends an op"),
    ("request_conn.c", "static void send_it(struct engine *eng, struct inflight_op *w)\n{\n"
     "    (void)inflight_op(eng, w, OP_INSPECT);\n}\n\n"
     "void engine_send(struct engine *eng)\n{\n    send_it(eng, NULL);\n}\n\n"
     "void engine_send_more(struct engine *eng)\n{\n    engine_send(eng);\n}\n",
     "request_conn.c: engine_send_more() calls engine_send(), which sends an op"),
]


class Engine:
    """The functions of src/engine: where each is, and which others it names."""

    def __init__(self, folder):
        self.file = {}   # (file of a static function or "", name): its file
        self.calls = {}  # the same: the keys of the functions that it names
        bodies = {}
        for path in sorted([*folder.glob("**/*.c"), *folder.glob("**/*.h")]):
            own = path.relative_to(folder).as_posix()
            for head, name, _, body in FUNCTION.findall(NOISE.sub(" ", path.read_text())):
                inline = own.endswith(".h")
                key = (own if "static" in head and not inline else "", name)
                self.file[key] = own
                bodies[key] = (own, body)
        for key, (own, body) in bodies.items():
            self.calls[key] = set()
            for before, name, after in USE.findall(body):
                given = re.search(r"[(,=?:]\s*" + name + r"\s*[),;:]|return " + name + ";", body)
                if before or (after != "(" and not given):
                    continue
                for other in ((own, name), ("", name)):
                    if other in self.file:
                        self.calls[key].add(other)
                        break
        inline = [key for key, own in self.file.items() if own.endswith(".h")]
        for key in inline * 2:  # twice: one may call another
            for others in self.calls.values():
                if key in others:
                    others |= self.calls[key]
        for others in self.calls.values():
            others.difference_update(inline)
        for key in inline:
            del self.calls[key]

    def senders(self):
        """The functions outside of the scheduler that make an op by themselves, or by static
        functions of their own file."""
        found = set()
        more = {("", MAKES_OP)}
        while more:
            found |= more
            more = {key for key, others in self.calls.items()
                    if key not in found and part_of(self.file[key]) != SCHEDULER
                    and any(other == ("", MAKES_OP) or (other in found and other[0])
                            for other in others)}
        return found - {("", MAKES_OP)}

    def wrong_sends(self):
        senders = self.senders()
        for key, others in sorted(self.calls.items()):
            for other in sorted(others & senders):
                if not other[0] and part_of(self.file[key]) != SCHEDULER:
                    yield (f"src/engine/{self.file[key]}: {key[1]}() calls {other[1]}(), which "
                           f"sends an op: only {SCHEDULER}/ may")

    def cycles(self, what, unit_of):
        """The calls between units that are in a cycle with each other."""
        graph = {}
        for key, others in self.calls.items():
            here = unit_of(self.file[key])
            for other in others:
                there = unit_of(self.file[other])
                if there != here:
                    graph.setdefault(here, {}).setdefault(there, []).append((key, other))
        for units in components(graph):
            yield f"{what} that call each other in a cycle: " + ", ".join(sorted(units))
            for here in sorted(units):
                for there in sorted(set(graph.get(here, {})) & units):
                    for key, other in sorted(graph[here][there]):
                        yield (f"  src/engine/{self.file[key]}: {key[1]}() calls {other[1]}() in "
                               f"{self.file[other]}")


def part_of(file):
    """hold/entry.c is of hold; emit.c, and emit.h, of emit."""
    return file.split("/")[0] if "/" in file else file[:-2]


def components(graph):
    """The strongly connected components of more than one unit."""
    def reachable(start):
        seen, more = set(), [start]
        while more:
            for unit in graph.get(more.pop(), ()):
                if unit not in seen:
                    seen.add(unit)
                    more.append(unit)
        return seen

    ways = {unit: reachable(unit) for unit in graph}
    done = set()
    for unit in sorted(graph):
        if unit in ways[unit] and unit not in done:
            component = {other for other in ways[unit] if unit in ways.get(other, ())}
            done |= component
            yield component


def problems(folder):
    engine = Engine(folder)
    if ("", MAKES_OP) not in engine.file or len(engine.file) < 500:
        return [f"only {len(engine.file)} functions were found"]
    return [*engine.cycles("parts", part_of), *engine.cycles("files", lambda file: file),
            *engine.wrong_sends()]


def planted(folder):
    """What is planted and not found."""
    for file, text, says in PLANTED:
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(folder, copy, dirs_exist_ok=True)
            with (pathlib.Path(copy) / file).open("a") as out:
                out.write("\n" + text)
            said = problems(pathlib.Path(copy))
        if not any(says in line for line in said):
            yield "\n  ".join([f"planted in {file}, and not said: {says}", *said])


def main():
    folder = pathlib.Path(sys.argv[1]) / "src/engine"
    said = problems(folder) or list(planted(folder))
    print("\n".join(said), end="\n" if said else "")
    sys.exit(1 if said else 0)


main()
