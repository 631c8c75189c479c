"""What the clients need: got from the machine's registries, or built, in folders of the
build directory; or found on the machine.

Nothing is written anywhere else, but what npm, cargo, go and Maven keep for themselves.
A kit that was made is used again. `Missing`: what cannot be had here, a tool chain or a
registry, is a reason to skip; a program of ours that does not compile is an error.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

from clients import PROGRAMS, version_of

PATIENCE_S = 900  # a cold cache on a busy machine


class Missing(Exception):
    """Something that the machine would have to have."""


def tool(*names):
    for name in names:
        if shutil.which(name) is None:
            raise Missing(f"{name} is not installed")


def run(words, folder, **env):
    """What it said, and whether it went well.

    Compilers take no processor from the tests that run meanwhile, some of which have leases
    of a few seconds to renew.
    """
    try:
        done = subprocess.run(["nice", "-n", "19", *map(str, words)], cwd=folder, text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=PATIENCE_S,
                              env={**os.environ, **env})
    except subprocess.TimeoutExpired:
        return f"{words[0]}: nothing within {PATIENCE_S} s", False
    return done.stdout, done.returncode == 0


def get(words, folder, what, **env):
    """What needs a registry."""
    said, good = run(words, folder, **env)
    if not good:
        (folder / "log").write_text(said)
        lines = [line for line in said.splitlines() if line.strip()] or ["nothing said"]
        raise Missing(f"{what} cannot be had: {re.sub(r'://[^ ]*', '', lines[-1])[:120]}")


def compile_(words, folder, **env):
    """What needs our own programs to be right."""
    said, good = run(words, folder, **env)
    if not good:
        raise RuntimeError(said)


def copy(folder, name):
    """With the time of now, which is what Cargo looks at."""
    shutil.copytree(PROGRAMS / name, folder, dirs_exist_ok=True,
                    copy_function=shutil.copyfile)


def with_pip(folder):
    """An interpreter that has pip; the one that runs this need not."""
    paths = os.environ.get("PATH", "").split(":")
    for name in [sys.executable, *(f"{path}/python3" for path in paths)]:
        if shutil.which(name) and run([name, "-m", "pip", "--version"], folder)[1]:
            return name
    raise Missing("pip is not installed")


def python(folder):
    get([with_pip(folder), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--target", folder, "redis==" + version_of("redis-py", "redis-py")],
        folder, "redis-py")


def node(*packages):
    def make(folder):
        tool("node", "npm")
        wanted = [f"{p}@{version_of(n, folder.name)}" for p, n in packages]
        get(["npm", "install", "--prefix", folder, "--no-package-lock", "--no-audit",
             "--no-fund", "--loglevel", "error", *wanted], folder, " and ".join(wanted))
    return make


def golang(folder):
    tool("go")
    copy(folder, "go")
    env = {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}
    get(["go", "list", "-deps", "./..."], folder, "what Go needs", **env)
    (folder / "bin").mkdir(exist_ok=True)
    compile_(["go", "build", "-o", folder / "bin", "./goredis", "./rueidis"], folder, **env)


def java(folder):
    tool("java", "javac", "mvn")
    copy(folder, "java")
    get(["mvn", "-q", "-B", "-ntp", "dependency:build-classpath",
         f"-Dmdep.outputFile={folder / 'classpath'}"], folder, "what Java needs")
    compile_(["javac", "-nowarn", "-d", folder, "-cp",
              (folder / "classpath").read_text().strip(),
              *folder.glob("*.java")], folder)


def rust(folder):
    tool("cargo")
    copy(folder, "rust")
    get(["cargo", "fetch"], folder, "what Rust needs")
    said, good = run(["cargo", "build", "--offline", "--quiet"], folder)
    if not good:
        if re.search(r"openssl-sys|linker .* not found", said):
            raise Missing("a C compiler or OpenSSL's headers are not installed")
        raise RuntimeError(said)
    shutil.copy(folder / "target/debug/clients", folder / "clients")


def there(*words):
    """What Debian has."""
    def make(folder):
        tool(words[0])
        if not run(words, folder)[1]:
            raise Missing(f"{folder.name} is not installed")
    return make


KITS = {
    "redis-cli": there("redis-cli", "--version"),
    "telnet": there("sh", "-c", "command -v telnet"),
    "hiredis": lambda folder: None,  # latchd needs it as well, so meson built this
    "debian-redis-py": there("/usr/bin/python3", "-c", "import redis.asyncio"),
    "redis-rb": there("ruby", "-e", "require 'redis'"),
    "redis-pm": there("perl", "-e", "use Redis; use IO::Socket::SSL"),
    "predis": there("php", "-r", "require 'Predis/Autoloader.php';"),
    "phpredis": there("php", "-r", "new Redis();"),
    "redis-py": python,
    "node-4": node(("redis", "node-redis")),
    "node-5": node(("ioredis", "ioredis"), ("redis", "node-redis")),
    "node-6": node(("ioredis", "ioredis"), ("redis", "node-redis")),
    "go": golang,
    "java": java,
    "rust": rust,
}

SOURCES = {"go": "go", "java": "java", "rust": "rust"}


def fingerprint(name):
    parts = [pathlib.Path(__file__).read_bytes(),
             (pathlib.Path(__file__).parent / "clients.py").read_bytes()]
    if name in SOURCES:
        parts += [p.read_bytes() for p in sorted((PROGRAMS / SOURCES[name]).rglob("*"))
                  if p.is_file()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def make(name, build):
    """The folder of that kit."""
    folder = build / "kits" / name
    stamp = folder / f"made-{fingerprint(name)}"
    if not stamp.exists():
        for old in folder.glob("made-*"):
            old.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        KITS[name](folder)
        stamp.touch()
    return folder
