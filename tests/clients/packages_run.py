#!/usr/bin/env python3
"""The helpers of clients/ as packages of their ecosystems: packages_run.py BUILD_DIR. Prints TAP."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
import kits  # noqa: E402
from stand import Skip, tap  # noqa: E402

CLIENTS = HERE.parents[1] / "clients"
TYPES = """import { Latchd, Lock, LockLost } from 'latchd';
const latchd = new Latchd(['redis://localhost:5625'], { timeout: 5000, password: 'x' });
const lock: Lock | null = await latchd.lock(['from', 'to'], { wait: 10, fair: true, other: { later: 'x' } });
// @ts-expect-error: there is no such option
latchd.lock('job', { urgency: 9 });
const token: number | undefined = lock?.tokens.get('from');
const done: string = await latchd.using('job', async (held) => `${held.token} ${held.signal.aborted}`);
const locked: boolean = await latchd.locked(['from', 'to']) || (lock?.held ?? false);
console.log(locked, token, done, new LockLost('x').code);
"""
MYPY = """from latchd import AsyncLatchd, Latchd, Lost
lock = Latchd("redis://localhost:5625").lock("job", wait=1, fair=True, grace=0.5, other={"later": 1})
lost: Lost = lock.lost
lost.wait(1, 2)  # type: ignore[call-arg]
locked: bool = lock.locked() or lock.held
AsyncLatchd("redis://localhost:5625").lock("job", priority=9, urgency=9)  # type: ignore[call-arg]
"""
TYPESCRIPT = ["typescript@5.9.3", "@types/node@24.10.1"]


def said(words, **env):
    return subprocess.run([str(w) for w in words], env={**os.environ, **env}, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def wheel(folder):
    """From the source distribution, as who has only that builds it."""
    python = kits.with_pip(folder)
    kits.get([python, "-m", "pip", "install", "--quiet", "--target", folder / "tools", "build"],
             folder, "build")
    kits.get([python, "-m", "build", "--outdir", folder / "made", folder / "python"], folder,
             "hatchling", PYTHONPATH=str(folder / "tools"))
    made = next((folder / "made").glob("*.whl"))
    names = zipfile.ZipFile(made).namelist()
    assert "latchd/__init__.py" in names and "latchd/py.typed" in names, names
    zipfile.ZipFile(made).extractall(folder / "site")
    redis = kits.make("redis-py", pathlib.Path(sys.argv[1]).resolve())
    assert said([python, "-c", "import latchd; print(latchd.Latchd.__name__)"],
                PYTHONPATH=f"{folder / 'site'}:{redis}") == "Latchd"
    kits.get([python, "-m", "pip", "install", "--quiet", "--target", folder / "tools", "mypy==1.18.2"], folder, "mypy")
    (folder / "typed.py").write_text(MYPY)
    kits.compile_([python, "-m", "mypy", "--strict", "--follow-imports", "silent", "--python-version", "3.10",
                   "typed.py"], folder, PYTHONPATH=str(folder / "tools"), MYPYPATH=str(folder / "site"))


def tarball(folder):
    kits.tool("node", "npm")
    kits.compile_(["npm", "pack", "--pack-destination", folder, folder / "node"], folder)
    (folder / "package.json").write_text('{ "type": "module" }')
    kits.get(["npm", "install", "--no-audit", "--no-fund", *TYPESCRIPT,
              next(folder.glob("latchd-*.tgz"))], folder, "TypeScript")
    (folder / "program.ts").write_text(TYPES)
    kits.compile_(["npx", "tsc", "--strict", "--noEmit", "--target", "esnext", "--module", "nodenext",
                   "program.ts"], folder)
    assert said(["node", "-e", f"import('{folder}/node_modules/latchd/latchd.mjs')"
                 ".then((m) => console.log(m.Latchd.name))"]) == "Latchd"


ASKS = """try {
  await new Latchd('redis://127.0.0.1:1', { patience: 0 }).lock('job', { wait: 0 });
} catch (error) { console.log(error.code ?? error.message); }
"""


def linked_folder(folder):
    """As `npm install FOLDER` makes it: the folder itself does not see the program's packages."""
    kits.tool("node", "npm")
    program = folder / "program"
    program.mkdir()
    for library in ("redis", "ioredis"):
        (program / "package.json").write_text("{}")
        kits.get(["npm", "install", "--no-audit", "--no-fund", library, folder / "node"], program, library)
        assert (program / "node_modules/latchd").is_symlink()
        (program / "main.mjs").write_text(f"import {{ Latchd }} from 'latchd';\n{ASKS}")
        (program / "main.cjs").write_text("const { Latchd } = require('latchd');\n"
                                          f"(async () => {{ {ASKS} }})();")
        for words in (["node", program / "main.mjs"], ["node", "--no-warnings", program / "main.cjs"],
                      ["sh", "-c", f"cd {program} && node --input-type=module -e \"$(cat main.mjs)\""]):
            assert said(words) == "UNREACHABLE", said(words)
        kits.compile_(["npm", "uninstall", library], program)
    assert said(["node", program / "main.mjs"]) == \
        "latchd needs the package redis or ioredis: npm install redis"


def module(folder):
    """With this Go, and with the oldest that it is for."""
    kits.tool("go")
    oldest = re.search(r"^go (.*)$", (folder / "go/go.mod").read_text(), re.MULTILINE).group(1)
    for go in ("local", f"go{oldest}.0"):
        env = {**kits.GO_ENV, "GOTOOLCHAIN": go}
        kits.get(["go", "list", "-deps", "./..."], folder / "go", f"Go {go}, or what it needs,", **env)
        kits.compile_(["go", "vet", "./..."], folder / "go", **env)


def jar(folder):
    kits.tool("java", "mvn")
    kits.get(["mvn", "-q", "-B", "-ntp", "package"], folder / "java", "what Maven needs")
    names = zipfile.ZipFile(next((folder / "java/target").glob("latchd-*.jar"))).namelist()
    assert "latchd/Latchd$Lock.class" in names, names


def check(make):
    with tempfile.TemporaryDirectory(prefix="latchd-packages-") as scratch:
        folder = pathlib.Path(scratch)
        shutil.copytree(CLIENTS, folder, dirs_exist_ok=True)
        try:
            make(folder)
        except kits.Missing as why:
            raise Skip(str(why)) from None


sys.exit(tap([(f"a {make.__name__} is made".replace("_", " "), lambda make=make: check(make))
              for make in (wheel, tarball, linked_folder, module, jar)]))
