"""The lock libraries that are tried, and what each does; the table of docs/clients.md is made of it.

A new one: an adapter in locks/ (locks/README.md), a row here, and a kit in kits.py.
"""
import pathlib
import sys

LOCKS = pathlib.Path(__file__).resolve().parent / "locks"

# What a release says when the lease is long over, and another holds the name.
REFUSED, SILENT, FREES = "is refused", "is not told", "frees the next one's"
RENEWS = "by itself"
# What a process that goes straight to Redis makes of a name that latchd has: refused, or an error.
ONE_BY_ONE, AT_ONCE = "one at a time", "all at once"
LEFT_OVER = "all at once, when its keys have ended"  # a free lock leaves a key behind at Redis


class Library:
    """One library in one version. `command`: function of the kit's folder -> words."""

    def __init__(self, name, version, kit, command, **more):
        self.name, self.version, self.kit, self.command = name, version, kit, command
        self.prefix = more.get("prefix", "")  # of its keys
        self.polls = more.get("polls", "every 100 ms")
        self.extends = more.get("extends", "yes")
        self.late = more.get("late", REFUSED)
        self.moves = more.get("moves", ONE_BY_ONE)
        self.asks = more.get("asks", False)  # whether a name is held
        self.by_script = more.get("by_script", False)  # it acquires so
        self.masters = more.get("masters", False)  # of several Redis it asks the majority

    @property
    def title(self):
        return f"{self.name} {self.version}"

    def row(self):
        key = f"`{self.prefix}NAME`" if self.prefix else "`NAME`"
        return [self.name, self.version, key, self.polls, self.extends, self.late, self.moves]


def python(name, *how):
    return lambda kit: ["env", f"PYTHONPATH={kit}", sys.executable, LOCKS / name, *how]


def debian(name):
    return lambda kit: ["/usr/bin/python3", LOCKS / name]


def node(name, *how):
    """A module is looked for beside the file that asks for it: kits.py puts them there."""
    return lambda kit: ["node", kit / name, *how]


def golang(name):
    return lambda kit: [kit / "agent", name]


def java(name):
    def command(kit):
        path = f"{kit}:{(kit / 'classpath').read_text().strip()}"
        return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m", "-cp", path,
                "Locks", name]
    return command


def php(name):
    return lambda kit: ["php", LOCKS / name]


LIBRARIES = [
    Library("redis-py", "8.1.0", "redis-py", python("redis_py.py"), asks=True),
    Library("redis-py, asyncio", "8.1.0", "redis-py", python("redis_py_asyncio.py"), asks=True),
    Library("redis-py", "4.3.4", "debian-redis-py", debian("redis_py.py"), asks=True),
    Library("redis-py, asyncio", "4.3.4", "debian-redis-py", debian("redis_py_asyncio.py"),
            asks=True),
    Library("redlock-py", "1.0.8", "redlock-py", python("redlock_py.py"),
            polls="every 200 ms", extends="no", late=SILENT, masters=True),
    Library("Pottery", "3.0.1", "pottery", python("pottery_py.py"),
            prefix="redlock:", polls="every 0 to 200 ms"),
    Library("aioredlock", "0.7.3", "aioredlock", python("aioredlock_py.py"),
            polls="every 100 to 300 ms", asks=True, by_script=True),
    Library("redis-lock-py", "1.3.0", "redis-lock-py", python("redislock_py.py"),
            polls="as it is told, and after 500 ms and more"),
    Library("python-redis-lock", "4.0.1", "python-redis-lock", python("python_redis_lock_py.py"),
            prefix="lock:", polls="no, and cannot wait", asks=True, moves=AT_ONCE),
    Library("sherlock", "0.4.1", "sherlock", python("sherlock_py.py"), extends="no",
            by_script=True),
    Library("cashews", "7.6.0", "cashews", python("cashews_py.py"), extends="no", asks=True),
    Library("django-redis cache.lock", "7.0.0", "django-redis", python("django_redis_py.py", "lock"),
            prefix=":1:"),
    Library("django-redis cache.add", "7.0.0", "django-redis", python("django_redis_py.py", "add"),
            prefix=":1:", polls="no", late=FREES),
    Library("Django cache.add", "5.2.19", "django-redis", python("django_redis_py.py", "django"),
            prefix=":1:", polls="no", late=FREES),
    Library("celery-once", "3.0.1", "celery", python("celery_py.py", "once"), extends="no",
            polls="no", late=FREES),
    Library("celery-singleton", "0.3.1", "celery", python("celery_py.py", "singleton"),
            extends="no", polls="no", late=FREES),
    Library("dramatiq ConcurrentRateLimiter", "2.2.1", "dramatiq", python("dramatiq_py.py"),
            extends="no", polls="no", late=FREES, moves=LEFT_OVER),
    Library("node-redlock", "5.0.0-beta.2", "redlock-5", node("redlock_5.mjs"),
            polls="every 100 to 300 ms", by_script=True, masters=True),
    Library("node-redlock", "4.2.0", "redlock-4", node("redlock_4.mjs"),
            polls="every 100 to 300 ms", by_script=True, masters=True),
    Library("@sesamecare-oss/redlock", "1.4.0", "redlock-sesamecare",
            node("redlock_sesamecare.mjs"), polls="every 100 to 300 ms", by_script=True,
            masters=True),
    Library("redis-semaphore", "5.8.0", "redlock-5", node("redis_semaphore.mjs"),
            prefix="mutex:", polls="every 10 ms", extends=RENEWS, late=SILENT),
    Library("redlock-universal", "0.8.5", "node-locks", node("redlock_universal.mjs")),
    Library("ioredis-lock", "4.0.0", "node-locks", node("ioredis_lock.mjs", "plain"),
            polls="every 50 ms"),
    Library("@microfleet/ioredis-lock", "6.0.1", "node-locks",
            node("ioredis_lock.mjs", "microfleet"), polls="every 50 ms"),
    Library("redsync", "4.18.0", "locks-go", golang("redsync"), polls="every 50 to 250 ms"),
    Library("bsm/redislock", "0.9.4", "locks-go", golang("redislock"),
            polls="as it is told", by_script=True, moves=AT_ONCE),
    Library("Spring RedisLockRegistry", "7.1.0", "locks-java", java("spring"),
            prefix="locks:", by_script=True, moves=AT_ONCE),
    Library("Spring RedisLockRegistry, PUB_SUB_LOCK", "7.1.0", "locks-java", java("spring-pubsub"),
            prefix="locks:", polls="as it is told", by_script=True, moves=AT_ONCE),
    Library("ShedLock", "7.10.1", "locks-java", java("shedlock"),
            prefix="job-lock:default:", polls="no", late=FREES),
    Library("rslock", "0.10.0", "locks-rust", lambda kit: [kit / "agent"],
            polls="every 0 to 200 ms", late=SILENT),
    Library("Laravel Cache::lock", "8.83.26", "laravel", php("laravel.php"),
            prefix="laravel_cache:", polls="every 250 ms", extends="no"),
]

# They keep locks in something else than a string, and are to get an error at once.
NOT_SERVED = [
    Library("Symfony Lock", "5.4.53", "symfony", php("symfony.php")),
]


def version_of(name, kit):
    """For kits: the version of that library in that kit."""
    return next(c.version for c in LIBRARIES if c.name == name and c.kit == kit)


HEAD = ["library", "version", "key", "asks while it waits", "extends", "a late release", "processes move"]


def table():
    rows = [HEAD, ["---"] * len(HEAD), *(c.row() for c in LIBRARIES)]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)
