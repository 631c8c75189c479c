"""The clients that are tried, and what each can do; the table of docs/clients.md is made of it.

A new one: a program in programs/ that understands README.md's scenarios, a row here, and,
when it does not come with Debian, a kit in kits.py that gets or builds it.
"""
import pathlib
import sys

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"

LOCKS = ["hello", "busy", "reenter", "lose", "share"]
ALL = [*LOCKS, "pipeline", "multi", "events"]
CROWD = [*ALL, "crowd"]  # many share its one connection
SHARED = [*CROWD, "turns"]
JS = [*SHARED, "admin"]
PY = [*ALL, "admin", "options", "threads"]

# How a client waits for a lock that is busy for long.
ONE_CALL = 30_000  # it stays in the call, or its library sends that again by itself
POLL = 0           # its connection is shared: it asks now and then


class Client:
    """One library in one version."""

    def __init__(self, name, version, kit, command, **more):
        self.name, self.version, self.kit = name, version, kit
        self.command = command                    # function: the kit's folder -> words
        self.scenarios = more.get("scenarios", ALL)
        # "-": as it comes; without a choice that is RESP2.
        self.protocols = more.get("protocols", ["-"])
        self.tls = more.get("tls", True)
        self.patience = more.get("patience", ONE_CALL)  # WAIT that suits it
        self.once = more.get("once", True)  # one call lasts, however long it waits
        # It sends a call that is not answered again, for so long in all; 0: it does not.
        self.sends_again_s = more.get("sends_again_s", 0)
        self.notices = more.get("notices", ["SUBSCRIBE"])

    @property
    def title(self):
        return f"{self.name} {self.version}"

    def waits(self):
        if self.patience == POLL:
            return "`WAIT 0`, asked again"
        if self.sends_again_s:
            return "in one call, which it sends again itself"
        return "in one call" if self.once else f"`WAIT {self.patience}`, asked again"

    def row(self):
        says = ", ".join(self.notices) if "events" in self.scenarios else "no"
        return [self.name, self.version,
                "RESP2" if self.protocols == ["-"] else "RESP2, RESP3",
                "yes" if self.tls else "no",
                self.waits() if self.patience is not None else "not tried", says]


def script(interpreter, name):
    return lambda folder: [interpreter, PROGRAMS / name]


def with_python(name):
    return lambda folder: ["env", f"PYTHONPATH={folder}", sys.executable, PROGRAMS / name]


def with_node(name):
    return lambda folder: ["env", f"NODE_PATH={folder}/node_modules", "node",
                           PROGRAMS / name]


def with_java(name):
    def command(folder):
        path = f"{folder}:{(folder / 'classpath').read_text().strip()}"
        return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path, name]
    return command


def built(*words):
    return lambda folder: [folder / words[0], *words[1:]]


BOTH = ["-", "2", "3"]
PUSHES = ["SUBSCRIBE", "CLIENT TRACKING"]  # see notices_run.py

CLIENTS = [
    Client("redis-cli", "7.0.15", "redis-cli", script(sys.executable, "redis_cli.py"),
           protocols=["-", "3"], scenarios=[*ALL, "interactive"]),
    Client("telnet", "any", "telnet", script(sys.executable, "telnet.py"),
           scenarios=LOCKS, tls=False, patience=None),
    Client("hiredis", "0.14.1", "hiredis", built("../../client_hiredis"), tls=False),
    Client("redis-py", "4.3.4", "debian-redis-py",
           script("/usr/bin/python3", "redis_py.py"), scenarios=PY),
    Client("redis-py, asyncio", "4.3.4", "debian-redis-py",
           script("/usr/bin/python3", "redis_py_asyncio.py")),
    Client("redis-py", "8.1.0", "redis-py", with_python("redis_py.py"), protocols=BOTH,
           scenarios=PY, sends_again_s=50, notices=PUSHES),
    Client("redis-py, asyncio", "8.1.0", "redis-py", with_python("redis_py_asyncio.py"),
           protocols=BOTH, sends_again_s=50),
    Client("ioredis", "5.11.1", "node-5", with_node("ioredis.js"), patience=POLL,
           scenarios=JS),
    Client("ioredis", "6.0.0", "node-6", with_node("ioredis.js"), patience=POLL,
           scenarios=JS, protocols=BOTH),
    Client("node-redis", "4.7.1", "node-4", with_node("node_redis.js"), patience=POLL,
           scenarios=JS),
    Client("node-redis", "5.12.1", "node-5", with_node("node_redis.js"), patience=POLL,
           scenarios=JS, protocols=BOTH),
    Client("node-redis", "6.3.1", "node-6", with_node("node_redis.js"), patience=POLL,
           scenarios=JS, protocols=BOTH, notices=PUSHES),
    Client("go-redis", "9.23.0", "go", built("bin/goredis"), protocols=BOTH,
           sends_again_s=20),
    Client("rueidis", "1.0.79", "go", built("bin/rueidis"), protocols=["-", "2"],
           scenarios=[*ALL, "turns"]),
    Client("Jedis", "8.0.2", "java", with_java("JedisClient"), protocols=BOTH,
           patience=1500, once=False),
    Client("Lettuce", "7.7.0", "java", with_java("LettuceClient"), protocols=BOTH,
           patience=POLL, scenarios=SHARED),
    Client("redis-rs", "1.8.1", "rust", built("clients", "sync"), protocols=["-", "3"]),
    Client("redis-rs, tokio", "1.8.1", "rust", built("clients", "async"),
           protocols=["-", "3"], patience=POLL, scenarios=CROWD),
    Client("redis-rb", "4.8.0", "redis-rb", script("ruby", "redis_rb.rb"), patience=4000,
           once=False),
    Client("Predis", "1.1.10", "predis", script("php", "predis.php")),
    Client("phpredis", "5.3.7", "phpredis", script("php", "phpredis.php")),
    Client("Redis.pm", "2.000", "redis-pm", script("perl", "redis_pm.pl")),
]

# What comes from a registry has exactly the version that is asked for.
PINNED = {"redis-py", "node-4", "node-5", "node-6", "go", "java", "rust"}


def version_of(name, kit):
    """For kits: the version of that library in that kit."""
    return next(c.version for c in CLIENTS if c.name == name and c.kit == kit)


HEAD = ["client", "version", "connects", "TLS", "a lock busy for 12 s", "notices"]


def table():
    rows = [HEAD, ["---"] * len(HEAD), *(c.row() for c in CLIENTS)]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)
