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
# The script, what is changed in it, and what the C that calls it has then, or the compiler says.
FOLLOWED = [
    (ATTACH, [], "LUA_ATTACH,\n                 3, 12);"),
    (ATTACH, [("--@arg 8 lease", "--@arg 8 helper_ttl"), ("--@arg 9 helper_ttl", "--@arg 9 lease"),
              ("instance, lease, helper_ttl =", "instance, helper_ttl, lease =")],
     "put_keeper_of(from);\n    put_helper_ttl(from);\n    put_lease(from);\n    put_exact(from);"),
    (ATTACH, [("--@arg 12", "--@arg 12 seen\n--@arg 13"), ("ARGV[12]", "ARGV[13]"),
              (USED, "\nlocal seen = ARGV[12]" + USED)],
     "put_asked(from);\n    put_seen(from);\n    put_since(from);"),
    (ATTACH, [("--@arg 12", "--@arg 12 seen\n--@arg 13"), ("ARGV[12]", "ARGV[13]"),
              (USED, "\nlocal seen = ARGV[12]" + USED)], "LUA_ATTACH,\n                 3, 13);"),
    (ACQUIRE, [], "5 + (size_t)is_named_or_lent(from));"),
]
REFUSED = [
    (ATTACH, [("--@arg 12", "--@arg 12 hue\n--@arg 13"), ("ARGV[12]", "ARGV[13]"),
              (USED, "\nlocal hue = ARGV[12]" + USED)], "put_hue"),
    (ACQUIRE, [("--@if is_named_or_lent", "--@if is_purple")], "is_purple"),
    ("fair/fair_leave.lua", [("for each member:", "for each stranger:")], "count_strangers"),
    (INSPECT, [("--@arg 1 most  ", "--@arg 1 lease"), ("holds_key, most =", "holds_key, lease ="),
               ("\nlocal fields,", "\nlocal most = lease\nlocal fields,")], "put_most"),
]


def write_calls(folder, program, script, changes):
    """Returns the path of the C that the build makes if the script is changed so."""
    shutil.copytree(program, folder / "script")
    path = folder / "script/lua" / script
    text = path.read_text()
    for old, new in changes:
        assert old in text, f"{script}: {old}"
        text = text.replace(old, new)
    path.write_text(text)
    scripts = sorted(path for path in folder.glob("script/lua/*/*.lua")
                     if path.parent.name != "include")
    subprocess.run([sys.executable, "-B", folder / "script/embed_lua.py", folder / "scripts.c",
                    folder / "calls.c", *scripts], check=True)
    return folder / "calls.c"


def compile_calls(root, compiler, calls):
    """Returns what the compiler says; nothing: all is well."""
    return subprocess.run([*compiler, "-c", "-o", "/dev/null", "-std=gnu11", "-D_GNU_SOURCE", "-Wall",
                           "-Werror", "-I", root / "src", calls],
                          capture_output=True, text=True).stderr


def main():
    root, compiler = pathlib.Path(sys.argv[1]), sys.argv[2:]
    bad = []
    for cases, is_followed in ((FOLLOWED, True), (REFUSED, False)):
        for script, changes, expected in cases:
            with tempfile.TemporaryDirectory() as folder:
                calls = write_calls(pathlib.Path(folder), root / "src/backend/script", script,
                                    changes)
                said, text = compile_calls(root, compiler, calls), calls.read_text()
            if said if is_followed else not re.search(rf"\b{expected}\b", said):
                bad.append(f"{script} with {changes}: the compiler says {said or 'nothing'}")
            elif is_followed and expected not in text:
                bad.append(f"{script} with {changes}: nothing like {expected}")
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
