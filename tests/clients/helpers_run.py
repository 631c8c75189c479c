#!/usr/bin/env python3
"""The helpers of clients/, each with its language's Redis library, against real servers.

helpers_run.py LATCHD BUILD_DIR [PART OF A NAME...]: prints TAP.
"""
import concurrent.futures
import pathlib
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
import helpers_cases  # noqa: E402
import helpers_readme  # noqa: E402
import kits  # noqa: E402
from helpers_stage import Daemon, Stage  # noqa: E402
from servers import Rack, Redis  # noqa: E402
from tap_report import Report  # noqa: E402

AGENTS = HERE / "helpers"
AT_ONCE = 7  # cases that mostly wait, beside two that do not only wait
HEAVY_AT_ONCE = 2


def oldest_python():
    """The oldest that the helper is for."""
    for path in [shutil.which("python3.10"), *pathlib.Path.home().glob(".pyenv/versions/3.10.*/bin/python3.10")]:
        if path is not None and kits.run([path, "--version"], HERE)[1]:
            return path
    raise kits.Missing("Python 3.10 is not installed")


def python(interpreter, kind):
    def make(kit):
        env = [f"PYTHONPATH={kit}"] if kit.name.startswith("redis-py") else []
        if interpreter is None:
            return [oldest_python(), AGENTS / "agent.py", kind], env
        return [interpreter, AGENTS / "agent.py", kind], env
    return make


def node(library):
    """A module is looked for beside the file that asks for it, so both are put into the kit."""
    def make(kit):
        helper = kit / "node_modules/latchd"
        shutil.copytree(HERE.parents[1] / "clients/node", helper, dirs_exist_ok=True)
        shutil.copy(AGENTS / "agent.mjs", kit)
        return ["node", kit / "agent.mjs"], [f"LATCHD_LIBRARY={library}"]
    return make


def golang_least(kit, name="helpers-go-least"):
    """The helper's module, with the agent as a program in it."""
    module = kit.parent / name
    shutil.copytree(HERE.parents[1] / "clients/go", module, dirs_exist_ok=True)
    shutil.copytree(AGENTS / "goagent", module / "goagent", dirs_exist_ok=True)
    if name == "helpers-go":  # what the programs of the kit need
        (module / "go.mod").write_text((kit / "go.mod").read_text().replace("example/clients", "example/latchd"))
        shutil.copy(kit / "go.sum", module)
    kits.get(["go", "list", "-deps", "./..."], module, "what Go needs")
    kits.compile_(["go", "vet", "./..."], module)
    kits.compile_(["go", "build", "-race", "-o", module / "agent", "./goagent"], module)
    return [module / "agent"], []


def golang(kit):
    """With the newest go-redis rather than the oldest."""
    return golang_least(kit, "helpers-go")


def java(kit, name="helpers-java"):
    folder = kit.parent / name
    folder.mkdir(exist_ok=True)
    path = f"{folder}:{(kit / 'classpath').read_text().strip()}"
    kits.compile_(["javac", "-nowarn", "-d", folder, "-cp", path, AGENTS / "HelperAgent.java",
                   HERE.parents[1] / "clients/java/src/main/java/latchd/Latchd.java"], folder)
    return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path, "HelperAgent"], []


def java_of_newest(kit):
    """Compiled for the newest Jedis, as a package is."""
    command, env = java(kits.make("java", kit.parents[1]), f"helpers-{kit.name}")
    path = command[command.index("-cp") + 1].split(":")[0]
    return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp",
            f"{path}:{(kit / 'classpath').read_text().strip()}", "HelperAgent"], env


def rust(kit):
    return [kits.rust_program(kit, AGENTS / "rust_agent.rs", kit / "agent")], []


def ruby(_kit):
    return ["ruby", AGENTS / "agent.rb"], []


def php(library):
    return lambda kit: (["php", AGENTS / "agent.php", library], [])


# Title, kit, function: the kit's folder -> command and environment, cases that do not apply
LANGUAGES = [
    ("Python, threads", "redis-py", python(sys.executable, "threads"),
     helpers_cases.CANNOT_GIVE_UP),
    ("Python, asyncio", "redis-py", python(sys.executable, "tasks"), set()),
    ("Python, threads, redis-py 4", "debian-redis-py", python("/usr/bin/python3", "threads"),
     helpers_cases.CANNOT_GIVE_UP),
    ("Python, asyncio, redis-py 4", "debian-redis-py", python("/usr/bin/python3", "tasks"), set()),
    ("Python 3.10, threads, redis-py 4", "redis-py-least", python(None, "threads"),
     helpers_cases.CANNOT_GIVE_UP),
    ("Node, node-redis 6", "node-6", node("redis"), set()),
    ("Node, node-redis 5", "node-5", node("redis"), set()),
    ("Node, node-redis 4", "node-4", node("redis"), set()),
    ("Node, ioredis 6", "node-6", node("ioredis"), set()),
    ("Node, ioredis 5", "node-5", node("ioredis"), set()),
    ("Go", "go", golang, set()),
    ("Go, go-redis 9.0", "go", golang_least, set()),
    ("Java", "java", java, set()),
    ("Java, Jedis 5", "jedis-5", java_of_newest, set()),
    ("PHP, phpredis", "phpredis", php("phpredis"), helpers_cases.CANNOT_GIVE_UP | helpers_cases.NO_BACKGROUND),
    ("PHP, Predis", "predis", php("predis"), helpers_cases.CANNOT_GIVE_UP | helpers_cases.NO_BACKGROUND),
    ("Ruby", "ruby", ruby, set()),
    ("Rust", "rust-helper", rust, set()),
]


# Of each language one is enough for cases in which its library plays no part.
FIRST = {title.split()[0].rstrip(","): title for title, *_ in reversed(LANGUAGES)}.values()


def run_case(report, program, title, language, case):
    name = f"{title}: {case.__name__}".replace("_", " ")

    def run():
        with tempfile.TemporaryDirectory(prefix="latchd-helpers-") as folder, \
                Stage(program, folder, language) as stage:
            case(stage)

    report.run(name, run)


def prepare(build, kit):
    """The folder of a kit, and its languages: title, command and environment, cases left out."""
    folder = kits.make(kit, build)
    return folder, [(title, make(folder), left_out)
                    for title, of, make, left_out in LANGUAGES if of == kit]


def run_readme(report, program, made):
    with tempfile.TemporaryDirectory(prefix="latchd-helpers-") as folder, Rack(folder) as rack:
        redis = rack.keep(Redis(rack.folder)).ready()
        helpers_readme.check_all(report, made, rack.keep(
            Daemon(program, rack.folder, redis.url)).ready())


def main():
    program, build, *parts = sys.argv[1:]
    build = pathlib.Path(build).resolve()
    report, made = Report(), {}
    # The children of a thread end with it, so each case has one that stays until it is over.
    wanted = list(dict.fromkeys(kit for _, kit, _, _ in LANGUAGES))
    with concurrent.futures.ThreadPoolExecutor(len(wanted)) as makers, \
            concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads, \
            concurrent.futures.ThreadPoolExecutor(HEAVY_AT_ONCE) as heavy:
        coming = {makers.submit(prepare, build, kit): kit for kit in wanted}
        running = []
        for future in concurrent.futures.as_completed(coming):
            kit = coming[future]
            try:
                made[kit], languages = future.result()
            except kits.Missing as why:
                report.line(True, f"{kit} # SKIP {why}")
                continue
            running += [(heavy if case in helpers_cases.HEAVY else threads).submit(
                            run_case, report, program, title, language, case)
                        for title, language, left_out in languages
                        for case in helpers_cases.CASES if case not in left_out
                        and (case not in helpers_cases.LONG or title in FIRST)
                        and all(part in f"{title}: {case.__name__}" for part in parts)]
        if not parts or "README" in parts:
            running.append(threads.submit(run_readme, report, program, made))
        for future in running:
            future.result()
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
