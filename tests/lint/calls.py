#!/usr/bin/env python3
"""Calls between the files of the engine, and between its parts: calls.py ROOT.

A part is a folder of src/engine, or a file that stands in src/engine itself. No file and no part
calls, or takes the address of a function of, one that comes back to it. And only the scheduler,
schedule/, calls what makes an op for Redis.
"""
import pathlib
import shutil
import sys
import tempfile

from call_graph import CallGraph

SCHEDULER = "schedule"
MAKES_OP = "inflight_op"

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


class Engine(CallGraph):
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


def part_of(file):
    """hold/entry.c is of hold; emit.c, and emit.h, of emit."""
    return file.split("/")[0] if "/" in file else file[:-2]


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
