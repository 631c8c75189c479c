#!/usr/bin/env python3
"""Calls between the files of a folder of src/: calls.py ROOT. No file calls, or takes the address of
a function of, one that comes back to it. And of the engine only the scheduler, schedule.c, calls
what makes an op for Redis.
"""
import pathlib
import shutil
import sys
import tempfile

from call_graph import CallGraph

SCHEDULER = "schedule.c"
MAKES_OP = "inflight_op"

# What is planted in a copy of the sources, and what is said of it.
PLANTED = [
    ("entry.c", "void mend_entry(struct engine *eng, struct lock *lock)\n{\n"
     "    lock_step(eng, lock);\n}\n",
     "entry.c: mend_entry() calls lock_step() in schedule.c"),
    ("effect.c", "effect_fn *find_effect(void)\n{\n    return effects_add;\n}\n"
     "hook_fn *find_hook(void)\n{\n    return emit_null;\n}\n",
     "effect.c: find_hook() calls emit_null() in emit.c"),
    ("wait_graph.c", "void mend_wait(struct engine *eng, struct waiter *w)\n{\n"
     "    waiter_remove(eng, w);\n}\n",
     "files that call each other in a cycle: wait_graph.c, waiter.c"),
    ("release.c", "void send_twice(struct engine *eng, struct lock *lock)\n{\n"
     "    acquire_ask(eng, lock, lock_head(lock));\n}\n",
     "release.c: send_twice() calls acquire_ask(), which sends an op"),
    ("engine.c", "static void send_it(struct engine *eng, struct inflight_op *w)\n{\n"
     "    (void)inflight_op(eng, w, OP_INSPECT);\n}\n\n"
     "void engine_send(struct engine *eng)\n{\n    send_it(eng, NULL);\n}\n\n"
     "void engine_send_more(struct engine *eng)\n{\n    engine_send(eng);\n}\n",
     "engine.c: engine_send_more() calls engine_send(), which sends an op"),
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
                    if key not in found and self.file[key] != SCHEDULER
                    and any(other == ("", MAKES_OP) or (other in found and other[0])
                            for other in others)}
        return found - {("", MAKES_OP)}

    def wrong_sends(self):
        senders = self.senders()
        for key, others in sorted(self.calls.items()):
            for other in sorted(others & senders):
                if not other[0] and self.file[key] != SCHEDULER:
                    yield (f"src/engine/{self.file[key]}: {key[1]}() calls {other[1]}(), which "
                           f"sends an op: only {SCHEDULER} may")


def problems(folder):
    engine = Engine(folder)
    if ("", MAKES_OP) not in engine.file or len(engine.file) < 500:
        return [f"only {len(engine.file)} functions were found"]
    return [*engine.cycles("files", lambda file: file), *engine.wrong_sends()]


def cycles_of_others(src):
    """The cycles of the other folders."""
    for folder in sorted(path for path in src.iterdir() if path.is_dir() and path.name != "engine"):
        yield from CallGraph(folder).cycles(f"files of src/{folder.name}", lambda file: file)


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
    src = pathlib.Path(sys.argv[1]) / "src"
    said = [*problems(src / "engine"), *cycles_of_others(src)] or list(planted(src / "engine"))
    print("\n".join(said), end="\n" if said else "")
    sys.exit(1 if said else 0)


main()
