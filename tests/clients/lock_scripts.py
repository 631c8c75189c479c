#!/usr/bin/env python3
"""The Lua of lock libraries: lock_scripts.py PRINTER BUILD_DIR KNOWN [--write]. Prints TAP.

Gets each library's package, takes every script out of it that calls Redis, and lets PRINTER
(lock_script_print.c) say which operation it is. Each must be one, and KNOWN, which is
src/lockscript/known_scripts.inc, must say the same under its SHA1. --write makes KNOWN anew:
then it must be looked through, as a library may have changed what it does.
"""
import ast
import hashlib
import pathlib
import re
import struct
import subprocess
import sys
import tarfile
import zipfile

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parent))

import kits  # noqa: E402  pylint: disable=wrong-import-position

GO_MOD = "module scripts\n\ngo 1.21\n"
CARGO = '[package]\nname = "scripts"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n'


def python_texts(data):
    for node in ast.walk(ast.parse(data)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.encode()


def backtick_texts(data):
    """Of JavaScript and Go: what is assigned, or an argument; with `${NAME}` put in."""
    named = dict(re.findall(rb"(\w+)\s*=\s*`([^`]*)`", data))
    for text in re.findall(rb"[=(,]\s*`([^`]*)`", data):
        yield re.sub(rb"\$\{(\w+)\}", lambda m: named.get(m[1], m[0]), text)


def rust_texts(data):
    return [m[1] for m in re.findall(rb'=\s*r(#*)"(.*?)"\1', data, re.S)]


# Bytes of the entries of a class file's constant pool, by their tag; 5 and 6 count twice.
JAVA_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2,
              17: 4, 18: 4, 19: 2, 20: 2}


def java_texts(data):
    count, at, index = struct.unpack(">H", data[8:10])[0], 10, 1
    while index < count:
        tag = data[at]
        if tag == 1:
            size = struct.unpack(">H", data[at + 1:at + 3])[0]
            yield data[at + 3:at + 3 + size]
            at += 3 + size
        else:
            at += 1 + JAVA_SIZES[tag]
            index += tag in (5, 6)
        index += 1


TEXTS = {".py": python_texts, ".js": backtick_texts, ".go": backtick_texts, ".rs": rust_texts,
         ".class": java_texts}


def members(archive):
    """Names and bytes of the files of a wheel, a jar or a tar."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as z:
            yield from ((name, z.read(name)) for name in z.namelist())
    else:
        with tarfile.open(archive) as t:
            yield from ((m.name, t.extractfile(m).read()) for m in t if m.isfile())


def files(folder):
    return ((p.relative_to(folder).as_posix(), p.read_bytes())
            for p in sorted(folder.rglob("*")) if p.is_file())


def from_pip(folder, name, version):
    kits.get([kits.with_pip(folder), "-m", "pip", "download", "--quiet", "--no-deps",
              "--disable-pip-version-check", "--dest", folder, f"{name}=={version}"],
             folder, name)
    return members(next(p for p in folder.iterdir() if p.suffix in (".whl", ".gz")))


def from_npm(folder, name, version):
    kits.tool("npm")
    kits.get(["npm", "pack", "--silent", f"{name}@{version}"], folder, name)
    return members(next(folder.glob("*.tgz")))


def from_go(folder, name, version):
    kits.tool("go")
    (folder / "go.mod").write_text(GO_MOD)
    kits.get(["go", "mod", "download", f"{name}@{version}"], folder, name,
             GOFLAGS="-modcacherw", GOMODCACHE=str(folder / "cache"))
    return files(folder / "cache" / f"{name}@{version}")


def from_cargo(folder, name, version):
    kits.tool("cargo")
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src/lib.rs").touch()
    (folder / "Cargo.toml").write_text(f'{CARGO}{name} = "={version}"\n')
    kits.get(["cargo", "vendor", "--quiet", "--versioned-dirs"], folder, name)
    return files(folder / "vendor" / f"{name}-{version}")


def from_maven(folder, name, version):
    kits.tool("mvn")
    kits.get(["mvn", "-q", "-B", "-ntp", "dependency:copy", f"-Dartifact={name}:{version}",
              f"-DoutputDirectory={folder}"], folder, name)
    return members(next(folder.glob("*.jar")))


# Who gets it, its name and version, where in it the scripts of its lock are, and how many.
LIBRARIES = [
    (from_pip, "redis", "8.1.0", r"redis/(asyncio/)?lock\.py", 3),
    (from_pip, "redis", "3.5.3", r"redis/lock\.py", 3),
    (from_pip, "redlock-py", "1.0.8", r".*/redlock/__init__\.py", 1),
    (from_pip, "aioredlock", "0.7.3", r"aioredlock/redis\.py", 3),
    (from_pip, "pottery", "3.0.1", r"pottery/redlock\.py", 3),
    (from_npm, "redlock", "4.2.0", r"package/redlock\.js", 3),
    (from_npm, "redlock", "5.0.0-beta.2", r"package/dist/.*\.js", 3),
    (from_npm, "@sesamecare-oss/redlock", "1.4.0", r"package/build/scripts\.js", 3),
    (from_npm, "redis-semaphore", "5.8.0", r"package/lib/mutex/.*\.js", 2),
    (from_go, "github.com/go-redsync/redsync/v4", "v4.18.0", r"scripts\.go", 3),
    (from_go, "github.com/bsm/redislock", "v0.9.4", r"redislock\.go", 4),
    (from_cargo, "rslock", "0.10.0", r"src/lock\.rs", 2),
    (from_cargo, "redlock", "2.0.0", r"src/redlock\.rs", 1),
    (from_maven, "org.springframework.integration:spring-integration-redis", "7.1.0",
     r".*RedisLockRegistry.*\.class", 4),
]


def scripts_of(get, folder, name, version, where):
    """SHA1 -> text of the scripts of a library."""
    folder = folder / re.sub(r"[^\w.]", "_", f"{get.__name__}-{name}-{version}")
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for path, data in get(folder, name, version):
        texts = TEXTS.get(pathlib.PurePath(path).suffix)
        if texts is None or not re.fullmatch(where, path):
            continue
        for text in texts(data):
            if re.search(rb"redis\.p?call", text) and b"KEYS" in text:
                found[hashlib.sha1(text).hexdigest()] = text
    return found


def rows_of(printer, scripts, folder):
    """SHA1 -> what the printer says: a row of KNOWN, or a comment why there is none."""
    paths = []
    for sha1, text in sorted(scripts.items()):
        paths.append(folder / sha1)
        paths[-1].write_bytes(text)
    said = subprocess.run([printer, *paths], capture_output=True, text=True, check=False).stdout
    return split_rows(said)


def split_rows(text):
    found = re.findall(r'^\{ "(\w{40})".*?^\} \},\n|^/\* (\w{40}):.*?\*/\n', text, re.S | re.M)
    rows = [m.group() for m in
            re.finditer(r'^\{ "\w{40}".*?^\} \},\n|^/\* \w{40}:.*?\*/\n', text, re.S | re.M)]
    return {a or b: row for (a, b), row in zip(found, rows)}


def check(library, rows, known):
    """What is wrong, as lines."""
    bad = [] if len(rows) == library[4] else [f"{len(rows)} scripts instead of {library[4]}"]
    for sha1, row in rows.items():
        if row.startswith("/*"):
            bad.append(row)
        elif known.get(sha1) != row:
            bad.append(f"{sha1}: the table {'says otherwise' if sha1 in known else 'lacks it'}")
    return bad


def main():
    printer, build, path = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), \
        pathlib.Path(sys.argv[3])
    writes = sys.argv[4:] == ["--write"]
    folder = build / "lock-scripts"
    (folder / "texts").mkdir(parents=True, exist_ok=True)
    known, everything, failed = split_rows(path.read_text()), {}, 0
    print(f"1..{len(LIBRARIES)}")
    for number, library in enumerate(LIBRARIES, 1):
        get, name, version, where, _ = library
        try:
            scripts = scripts_of(get, folder, name, version, where)
        except kits.Missing as why:
            print(f"ok {number} - {name} {version} # SKIP {why}", flush=True)
            continue
        rows = rows_of(printer, scripts, folder / "texts")
        everything.update(rows)
        bad = check(library, rows, rows if writes else known)
        failed += bool(bad)
        for line in bad:
            print("# " + line.replace("\n", " "))
        print(f"{'not ok' if bad else 'ok'} {number} - {name} {version}: "
              f"{len(rows)} scripts are lock operations", flush=True)
    if writes and not failed:
        path.write_text("".join(row for _, row in sorted({**known, **everything}.items())))
    sys.exit(1 if failed else 0)


main()
