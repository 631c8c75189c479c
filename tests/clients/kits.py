#!/usr/bin/env python3
"""What the clients need: got from the machine's registries, or built, in folders of the
build directory; or found on the machine. `kits.py BUILD_DIR` makes all of it beforehand.

Nothing is written anywhere else, but what npm, cargo, go and Maven keep for themselves.
A kit that was made is used again, also by programs that run beside each other. `Missing`:
what cannot be had here, a tool chain or a registry, is a reason to skip; a program of ours
that does not compile is an error.
"""
import concurrent.futures
import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import locks_list
from clients import PROGRAMS, version_of

COLLECTOR = pathlib.Path(__file__).resolve().parents[1] / "integration/daemon/collector"
CLIENTS = pathlib.Path(__file__).resolve().parents[2] / "clients"
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
        done = subprocess.run(["nice", "-n", "19", *map(str, words)], cwd=folder,
                              text=True, check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=PATIENCE_S,
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


def copy(folder, name, programs=PROGRAMS):
    """With the time of now, which is what Cargo looks at."""
    shutil.copytree(programs / name, folder, dirs_exist_ok=True,
                    copy_function=shutil.copyfile)


def with_pip(folder):
    """An interpreter that has pip; the one that runs this need not."""
    paths = os.environ.get("PATH", "").split(":")
    for name in [sys.executable, *(f"{path}/python3" for path in paths)]:
        if shutil.which(name) and run([name, "-m", "pip", "--version"], folder)[1]:
            return name
    raise Missing("pip is not installed")


def python(*packages):
    def make(folder):
        get([with_pip(folder), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "--target", folder, *packages], folder, " and ".join(packages))
    return make


REDIS_PY = "redis==" + version_of("redis-py", "redis-py")


def wheelhouse(*packages):
    """Packages that pip then installs without a registry."""
    def make(folder):
        get([with_pip(folder), "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
             "--dest", folder, *packages], folder, " and ".join(packages))
    return make


def python_locks(package, name):
    """A lock library, over the Redis library that is tried."""
    return python(f"{package}=={locks_list.version_of(name, package)}", REDIS_PY)


def node(*packages):
    def make(folder):
        get_node(folder, [f"{p}@{version_of(n, folder.name)}" for p, n in packages])
    return make


def get_node(folder, wanted):
    """Some lock libraries ask for an ioredis that is older than the one that is tried."""
    tool("node", "npm")
    get(["npm", "install", "--prefix", folder, "--no-package-lock", "--no-audit",
         "--no-fund", "--legacy-peer-deps", "--loglevel", "error", *wanted], folder,
        " and ".join(wanted))


def node_locks(*packages):
    """Lock libraries, over ioredis."""
    def make(folder):
        get_node(folder, ["ioredis@" + version_of("ioredis", "node-5"), *(
            f"{p}@{locks_list.version_of(n, folder.name)}" for p, n in packages)])
        for program in locks_list.LOCKS.glob("*.mjs"):
            shutil.copy(program, folder)
    return make


GO_ENV = {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}


def golang(folder):
    tool("go")
    copy(folder, "go")
    get(["go", "list", "-deps", "./..."], folder, "what Go needs", **GO_ENV)
    (folder / "bin").mkdir(exist_ok=True)
    compile_(["go", "build", "-o", folder / "bin", "./goredis", "./rueidis"], folder, **GO_ENV)


def golang_locks(folder):
    tool("go")
    copy(folder, "go", locks_list.LOCKS)
    get(["go", "list", "-deps", "."], folder, "what Go needs", **GO_ENV)
    compile_(["go", "vet", "."], folder, **GO_ENV)
    compile_(["go", "build", "-o", folder / "agent", "."], folder, **GO_ENV)


def collector(folder):
    """The receiver of a collector of traces."""
    tool("go")
    copy(folder, "collector", COLLECTOR.parent)
    get(["go", "list", "-deps", "."], folder, "what the collector needs", **GO_ENV)
    compile_(["go", "build", "-o", folder / "collector", "."], folder, **GO_ENV)


def java(folder, programs=PROGRAMS):
    tool("java", "javac", "mvn")
    copy(folder, "java", programs)
    get(["mvn", "-q", "-B", "-ntp", "dependency:build-classpath",
         f"-Dmdep.outputFile={folder / 'classpath'}"], folder, "what Java needs")
    compile_(["javac", "-nowarn", "-d", folder, "-cp",
              (folder / "classpath").read_text().strip(),
              *folder.glob("*.java")], folder)


def jedis(version):
    """Another Jedis than that of the programs."""
    def make(folder):
        tool("java", "mvn")
        pom = (PROGRAMS / "java/pom.xml").read_text()
        (folder / "pom.xml").write_text(pom.replace(version_of("Jedis", "java"), version))
        get(["mvn", "-q", "-B", "-ntp", "dependency:build-classpath",
             f"-Dmdep.outputFile={folder / 'classpath'}"], folder, f"Jedis {version}")
    return make


def cargo(choose):
    """An environment with the newest Rust of the machine (choose: max), or the oldest one (min)."""
    found = {}
    for place in os.environ.get("PATH", "").split(":"):
        if shutil.which("cargo", path=place):
            version = re.findall(r"\d+", run([f"{place}/cargo", "--version"], place)[0])
            found[tuple(map(int, version[:2]))] = place
    if not found:
        raise Missing("cargo is not installed")
    return {"PATH": f"{found[choose(found)]}:{os.environ['PATH']}"}


def rust(folder):
    env = cargo(max)
    copy(folder, "rust")
    get(["cargo", "fetch"], folder, "what Rust needs", **env)
    said, good = run(["cargo", "build", "--offline", "--quiet"], folder, **env)
    if not good:
        if re.search(r"openssl-sys|linker .* not found", said):
            raise Missing("a C compiler or OpenSSL's headers are not installed")
        raise RuntimeError(said)
    shutil.copy(folder / "target/debug/clients", folder / "clients")


def rust_locks(folder):
    env = cargo(max)
    copy(folder, "rust", locks_list.LOCKS)
    get(["cargo", "fetch"], folder, "what Rust needs", **env)
    compile_(["cargo", "build", "--offline", "--quiet"], folder, **env)
    shutil.copy(folder / "target/debug/rslock-agent", folder / "agent")


def rust_helper(folder):
    """The crate of clients/, which needs no other."""
    env = cargo(min)
    copy(folder, "rust", CLIENTS)
    compile_(["cargo", "build", "--offline", "--quiet"], folder, RUSTFLAGS="-D warnings", **env)


def rust_program(kit, source, program):
    """A program of one file over that crate."""
    compile_(["rustc", "--edition", "2021", "-D", "warnings", "--extern",
              f"latchd={kit / 'target/debug/liblatchd.rlib'}", "-o", program, source], kit, **cargo(min))
    return program


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
    "ruby": there("ruby", "-e", "require 'socket'"),
    "redis-rb": there("ruby", "-e", "require 'redis'"),
    "redis-pm": there("perl", "-e", "use Redis; use IO::Socket::SSL"),
    "predis": there("php", "-r", "require 'Predis/Autoloader.php';"),
    "phpredis": there("php", "-r", "new Redis();"),
    "laravel": there("php", "-r", "require 'Illuminate/Cache/autoload.php';"
                     "require 'Illuminate/Redis/autoload.php'; new Redis();"),
    "symfony": there("php", "-r", "require 'Symfony/Component/Lock/autoload.php'; new Redis();"),
    "redis-py": python(REDIS_PY),
    "redis-py-least": python("redis==4.3.4"),
    "wheelhouse": wheelhouse("build", "hatchling", "mypy==1.18.2", REDIS_PY),
    "typescript": lambda folder: get_node(folder, ["typescript@5.9.3", "@types/node@24.10.1"]),
    "node-4": node(("redis", "node-redis")),
    "node-5": node(("ioredis", "ioredis"), ("redis", "node-redis")),
    "node-6": node(("ioredis", "ioredis"), ("redis", "node-redis")),
    "go": golang,
    "java": java,
    "jedis-5": jedis("5.2.0"),
    "rust": rust,
    "redlock-py": python_locks("redlock-py", "redlock-py"),
    "pottery": python_locks("pottery", "Pottery"),
    "redis-lock-py": python_locks("redis-lock-py", "redis-lock-py"),
    "python-redis-lock": python_locks("python-redis-lock", "python-redis-lock"),
    "sherlock": python_locks("sherlock", "sherlock"),
    "cashews": python_locks("cashews", "cashews"),
    "dramatiq": python_locks("dramatiq", "dramatiq ConcurrentRateLimiter"),
    "django-redis": python("django-redis==" + locks_list.version_of(
        "django-redis cache.lock", "django-redis"),
        "django==" + locks_list.version_of("Django cache.add", "django-redis"), REDIS_PY),
    "celery": python(*(f"{n}=={locks_list.version_of(n, 'celery')}" for n in (
        "celery-once", "celery-singleton")), REDIS_PY),
    "schedulers": python("celery-redbeat==2.4.2", "celery==5.7.0", "apscheduler==3.11.3", REDIS_PY),
    "aioredlock": python("aioredlock==" + locks_list.version_of("aioredlock", "aioredlock")),
    "redlock-4": node_locks(("redlock", "node-redlock")),
    "redlock-5": node_locks(("redlock", "node-redlock"), ("redis-semaphore", "redis-semaphore")),
    "redlock-sesamecare": node_locks(("@sesamecare-oss/redlock", "@sesamecare-oss/redlock")),
    "node-locks": node_locks(*((name, name) for name in (
        "redlock-universal", "ioredis-lock", "@microfleet/ioredis-lock"))),
    "locks-go": golang_locks,
    "locks-java": lambda folder: java(folder, locks_list.LOCKS),
    "locks-rust": rust_locks,
    "rust-helper": rust_helper,
    "otlp": python("opentelemetry-proto==1.39.1"),
}
# What no client needs, and so nobody makes beforehand.
RARE = {"collector": collector}

# Folders and files that a kit is made of.
SOURCES = {
    **{name: [PROGRAMS / name] for name in ("go", "java", "rust")},
    **{f"locks-{name}": [locks_list.LOCKS / name] for name in ("go", "java", "rust")},
    "rust-helper": [CLIENTS / "rust"],
    "collector": [COLLECTOR],
    **{name: [locks_list.LOCKS] for name in (
        "redlock-4", "redlock-5", "redlock-sesamecare", "node-locks")},
}


def fingerprint(name):
    here = pathlib.Path(__file__).parent
    parts = [(here / part).read_bytes() for part in ("kits.py", "clients.py", "locks_list.py")]
    for folder in SOURCES.get(name, []):
        parts += [p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


@contextlib.contextmanager
def alone(name, build):
    """Nobody else makes that kit meanwhile: neither another thread nor another program."""
    path = build / "kits" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make(name, build):
    """The folder of that kit."""
    folder = build / "kits" / name
    stamp = folder / f"made-{fingerprint(name)}"
    with alone(name, build):
        if not stamp.exists():
            for old in folder.glob("made-*"):
                old.unlink()
            folder.mkdir(parents=True, exist_ok=True)
            {**KITS, **RARE}[name](folder)
            stamp.touch()
    return folder


def make_all(build):
    """What cannot be had is said, and is for the tests to skip."""
    with concurrent.futures.ThreadPoolExecutor(len(KITS)) as threads:
        coming = {name: threads.submit(make, name, build) for name in KITS}
    for name, future in coming.items():
        try:
            print(f"{name}: {future.result()}")
        except Missing as why:
            print(f"{name}: {why}")


if __name__ == "__main__":
    make_all(pathlib.Path(sys.argv[1]).resolve())
