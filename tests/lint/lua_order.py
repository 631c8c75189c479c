#!/usr/bin/env python3
"""What a script says that it is called with is what the C side sends: lua_order.py ROOT CC..."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ATTACH, ACQUIRE, INSPECT = "plain/attach.lua", "plain/acquire.lua", "plain/inspect.lua"
USED = "\n\n--@include include/part_time.lua"
# An argument that ATTACH does not have, and what its words begin with.
ONE_MORE = [("ARGV[12]", "ARGV[13]")]


def with_word(name, tags=""):
    return [("--@arg 12", f"--@arg 12 {name}\n{tags}--@arg 13"), *ONE_MORE,
            (USED, f"\nlocal {name} = ARGV[12]{USED}")]


# The script, what is changed in it, and what the C that calls it has then.
FOLLOWED = [
    (ATTACH, [], "LUA_ATTACH,\n                 3, 12);"),
    (ATTACH, [("--@arg 8 lease", "--@arg 8 helper_ttl"), ("--@arg 9 helper_ttl", "--@arg 9 lease"),
              ("instance, lease, helper_ttl =", "instance, helper_ttl, lease =")],
     "put_keeper_of(from);\n    put_helper_ttl(from);\n    put_lease(from);\n    put_exact(from);"),
    (ATTACH, with_word("seen"), "put_asked(from);\n    put_seen(from);\n    put_since(from);"),
    (ATTACH, with_word("seen"), "LUA_ATTACH,\n                 3, 13);"),
    (ATTACH, with_word("hue", "--@word hue u64 op->attach.asked_ago_ms\n"),
     "command_uint(from->out, (uint64_t)(from->op->attach.asked_ago_ms));"),
    (ACQUIRE, [], "5 + (size_t)(from->claim->owner_kind == OWNER_NAMED || from->claim->block_us != 0));"),
]
# The same, and what the build or the compiler says.
REFUSED = [
    (ATTACH, with_word("hue"), "attach.lua: there is no --@word hue"),
    (ATTACH, with_word("hue", "--@word hue u64 op->attach.hue\n"), "no member named .hue"),
    (ATTACH, with_word("hue", "--@word hue c\n"), "put_hue"),
    (ATTACH, with_word("hue", "--@word hue u46 lease_ms\n"), "cannot read --@word hue u46"),
    (ATTACH, with_word("seen", "--@word seen u64 lease_ms\n"), "--@word seen is not the first one"),
    (ACQUIRE, [("--@if claim->owner_kind ==", "--@if claim->is_purple ==")], "is_purple"),
    ("fair/fair_leave.lua", [("for each member:", "for each stranger:")], "no --@each stranger"),
    (INSPECT, [("--@arg 1 most  ", "--@arg 1 lease"), ("holds_key, most =", "holds_key, lease ="),
               ("\nlocal fields,", "\nlocal most = lease\nlocal fields,")],
     "--@word most: no script has it"),
]


def write_calls(folder, program, script, changes):
    """Changes the script so. Returns what the build says, nothing if all is well."""
    shutil.copytree(program, folder / "script")
    path = folder / "script/lua" / script
    text = path.read_text()
    for old, new in changes:
        assert old in text, f"{script}: {old}"
        text = text.replace(old, new)
    path.write_text(text)
    scripts = sorted(path for path in folder.glob("script/lua/*/*.lua")
                     if path.parent.name != "include")
    (folder / "backend").mkdir()
    return subprocess.run([sys.executable, "-B", folder / "script/embed_lua.py", folder / "scripts.c",
                           folder / "backend/script_words.h", *scripts],
                          capture_output=True, text=True).stderr


def compile_calls(root, compiler, folder):
    """Returns what the compiler says; nothing: all is well."""
    return subprocess.run([*compiler, "-fsyntax-only", "-std=gnu11", "-D_GNU_SOURCE", "-Wall",
                           "-Werror", "-I", folder, "-I", root / "src", "-I", root / "include",
                           root / "src/backend/script/script_codec.c"],
                          capture_output=True, text=True).stderr


def main():
    root, compiler = pathlib.Path(sys.argv[1]), sys.argv[2:]
    bad = []
    for cases, is_followed in ((FOLLOWED, True), (REFUSED, False)):
        for script, changes, expected in cases:
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                said = write_calls(folder, root / "src/backend/script", script, changes)
                if said == "" and (changes or not is_followed):
                    said = compile_calls(root, compiler, folder)
                made = folder / "backend/script_words.h"
                text = made.read_text() if made.exists() else ""
            if said if is_followed else not re.search(expected, said):
                bad.append(f"{script} with {changes}: the build says {said or 'nothing'}")
            elif is_followed and expected not in text:
                bad.append(f"{script} with {changes}: nothing like {expected}")
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
