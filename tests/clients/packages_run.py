#!/usr/bin/env python3
"""The helpers of clients/ as packages: built, installed into an empty environment, and used there.

packages_run.py LATCHD BUILD_DIR [PART OF A NAME...]: prints TAP.

Each package has a function in PACKAGES. It gets a folder with a copy of clients/, and returns the command of a
program that takes and gives back a lock with what was installed (packages/take.*). What needs a registry is got by
kits.get(), and is a reason to skip; all that follows is done without one, and has to go well.
"""
import concurrent.futures
import json
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
from helpers_stage import Daemon  # noqa: E402
from servers import Rack, Redis  # noqa: E402
from tap_report import Report  # noqa: E402

CLIENTS = HERE.parents[1] / "clients"
PROGRAMS = HERE / "packages"


def said(words, **env):
    return subprocess.run([str(w) for w in words], env={**os.environ, **env}, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def kit(name):
    return kits.make(name, pathlib.Path(sys.argv[2]).resolve())


def pip(folder):
    """`pip install ./clients/python`; and a wheel by way of the source distribution, as it is published."""
    house, interpreter = kit("wheelhouse"), kits.with_pip(folder)
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(house), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def install(name, *packages):
        kits.compile_([interpreter, "-m", "venv", "--without-pip", name], folder)
        kits.compile_([interpreter, "-m", "pip", "--python", name, "install", "--quiet", *packages], folder, **offline)
        return folder / name / "bin/python"

    tools = install("tools", "build", "hatchling", "mypy")
    kits.compile_([tools, "-m", "build", "--no-isolation", "--outdir", "made", "python"], folder)
    names = zipfile.ZipFile(next(folder.glob("made/*.whl"))).namelist()
    for name in ("latchd/__init__.py", "latchd/py.typed", "latchd_celery.py", "latchd_apscheduler.py", "LICENSE"):
        assert any(path.endswith(name) for path in names), names

    python = install("empty", folder / "python")
    site = next(folder.glob("empty/lib/python*/site-packages"))
    kits.compile_([tools, "-m", "mypy", "--strict", "--follow-imports", "silent", "--python-version", "3.10",
                   "--python-executable", python, PROGRAMS / "typed.py"], folder)
    assert sorted(p.name for p in (site / "latchd").glob("*.*")) == ["__init__.py", "py.typed"]
    return [python, PROGRAMS / "take.py"]


def npm(folder):
    """The tarball, in an empty project with one Redis library; and its types."""
    typescript = kit("typescript")
    project = folder / "project"
    project.mkdir()
    (project / "package.json").write_text('{ "type": "module" }')
    kits.get(["npm", "install", "--no-audit", "--no-fund", "--prefer-offline", "redis"], project, "redis")
    kits.compile_(["npm", "pack", "--pack-destination", folder, folder / "node"], folder)
    kits.compile_(["npm", "install", "--no-audit", "--no-fund", "--offline", *folder.glob("latchd-*.tgz")], project)
    for name in ("LICENSE", "CHANGELOG.md", "README.md", "latchd.d.ts"):
        assert (project / "node_modules/latchd" / name).is_file(), name
    for program in ("take.mjs", "typed.ts"):
        shutil.copy(PROGRAMS / program, project)
    kits.compile_(["node", typescript / "node_modules/typescript/bin/tsc", "--strict", "--noEmit", "--target", "esnext",
                   "--module", "nodenext", "--typeRoots", typescript / "node_modules/@types", "--types", "node",
                   "typed.ts"], project)
    return ["node", project / "take.mjs"]


ASKS = """try {
  await new Latchd('redis://127.0.0.1:1', { patience: 0 }).lock('job', { wait: 0 });
} catch (error) { console.log(error.code ?? error.message); }
"""


def npm_linked_folder(folder):
    """As `npm install FOLDER` makes it: the folder itself does not see the program's packages."""
    kits.tool("node", "npm")
    program = folder / "program"
    program.mkdir()
    (program / "main.mjs").write_text(f"import {{ Latchd }} from 'latchd';\n{ASKS}")
    (program / "main.cjs").write_text("const { Latchd } = require('latchd');\n"
                                      f"(async () => {{ {ASKS} }})();")
    for library in ("redis", "ioredis"):
        (program / "package.json").write_text("{}")
        kits.get(["npm", "install", "--no-audit", "--no-fund", "--prefer-offline", library, folder / "node"], program,
                 library)
        assert (program / "node_modules/latchd").is_symlink()
        for words in (["node", program / "main.mjs"], ["node", "--no-warnings", program / "main.cjs"],
                      ["sh", "-c", f"cd {program} && node --input-type=module -e \"$(cat main.mjs)\""]):
            assert said(words) == "UNREACHABLE", said(words)
        kits.compile_(["npm", "uninstall", library], program)
    assert said(["node", program / "main.mjs"]) == \
        "latchd needs the package redis or ioredis: npm install redis"


def go_proxy(folder, module, version):
    """A folder of versions of modules, as a Go proxy answers them; with the one that is there."""
    path = re.search(r"^module (.*)$", (module / "go.mod").read_text(), re.MULTILINE).group(1)
    versions = folder / path / "@v"
    versions.mkdir(parents=True)
    (versions / "list").write_text(version)
    (versions / f"{version}.info").write_text(json.dumps({"Version": version}))
    shutil.copy(module / "go.mod", versions / f"{version}.mod")
    with zipfile.ZipFile(versions / f"{version}.zip", "w") as archive:
        for file in sorted(module.iterdir()):
            archive.write(file, f"{path}@{version}/{file.name}")
    return path


def go(folder):
    """`go get` into an empty module, from a proxy that is a folder; with a `replace`; `go vet` with the oldest Go."""
    kits.tool("go")
    oldest = re.search(r"^go (.*)$", (folder / "go/go.mod").read_text(), re.MULTILINE).group(1)
    for version in ("local", f"go{oldest}.0"):
        env = {**kits.GO_ENV, "GOTOOLCHAIN": version}
        kits.get(["go", "mod", "download"], folder / "go", f"Go {version}, or what it needs,", **env)
        kits.compile_(["go", "vet", "./..."], folder / "go", **env)

    project = folder / "project"
    project.mkdir()
    shutil.copy(PROGRAMS / "take.go", project)
    path = go_proxy(folder / "proxy", folder / "go", "v0.1.0")
    cache = pathlib.Path(said(["go", "env", "GOMODCACHE"])) / "cache/download"
    env = {"GOPROXY": f"file://{folder / 'proxy'},file://{cache}", "GONOSUMDB": "*", "GOTOOLCHAIN": "local",
           "GOMODCACHE": str(folder / "modules"), "GOFLAGS": "-modcacherw -trimpath"}
    for words in (["mod", "init", "example/take"], ["get", f"{path}@latest"], ["build", "-o", "take", "."]):
        kits.compile_(["go", *words], project, **env)
    replaced = f"-replace={path}={folder / 'go'}"  # as the documents have it, until it is published
    for words in (["mod", "edit", f"-droprequire={path}", replaced], ["mod", "tidy"], ["vet", "."]):
        kits.compile_(["go", *words], project, **env)
    return [project / "take"]


UNRESOLVED = re.compile(r"could not be resolved|Could not (resolve|transfer|find artifact)|was not found in")


def mvn(folder, *words):
    done, good = kits.run(["mvn", "-q", "-B", "-ntp", *words], folder,
                          MAVEN_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    if not good and UNRESOLVED.search(done):
        raise kits.Missing("what Maven needs cannot be had")
    if not good:
        raise RuntimeError(done)


def maven(folder):
    """`mvn install` into an empty repository, and a project that finds it there.

    All else comes from the machine's own repository, once it has it: of that a copy is enough.
    """
    kits.tool("java", "mvn")
    machine = re.search(r"[^:]*(?=/redis/clients/jedis/)", (kit("java") / "classpath").read_text()).group()
    settings = folder / "settings.xml"

    def install(name):
        settings.write_text(
            f"<settings><localRepository>{folder / name}</localRepository><mirrors><mirror><id>machine</id>"
            f"<mirrorOf>*</mirrorOf><url>file://{machine}</url></mirror></mirrors></settings>")
        mvn(folder / "java", "-s", settings, "install")

    try:
        install("empty")
    except kits.Missing:
        mvn(folder / "java", "package", "org.apache.maven.plugins:maven-install-plugin:help")
        install("empty too")
    version = re.search("<version>(.*)</version>", (folder / "java/pom.xml").read_text()).group(1)
    for kind, name in (("", "latchd/Latchd$Lock.class"), ("", "META-INF/LICENSE"),
                       ("-sources", "latchd/Latchd.java"), ("-javadoc", "latchd/Latchd.Lock.html")):
        made = next(folder.glob(f"empty*/latchd/latchd/{version}/latchd-{version}{kind}.jar"))
        assert name in zipfile.ZipFile(made).namelist(), f"{made.name} has no {name}"

    source = folder / "project/src/main/java"
    source.mkdir(parents=True)
    shutil.copy(PROGRAMS / "Take.java", source)
    shutil.copy(PROGRAMS / "pom.xml", folder / "project")
    mvn(folder / "project", "-s", settings, "compile", "dependency:build-classpath",
        f"-Dmdep.outputFile={folder / 'classpath'}")
    return ["java", "-cp", f"{folder / 'project/target/classes'}:{(folder / 'classpath').read_text()}", "Take"]


def composer(folder):
    """Into an empty project, from the folder as a repository, and from no other."""
    kits.tool("php", "composer")
    if not kits.run(["php", "-r", "exit(!(@include 'Predis/autoload.php'));"], folder)[1]:
        raise kits.Missing("Predis is not installed")
    project = folder / "project"
    project.mkdir()
    (project / "composer.json").write_text(json.dumps({
        "repositories": [{"type": "path", "url": str(folder / "php"), "options": {"symlink": False}},
                         {"packagist.org": False}],
        "require": {"latchd/latchd": "*"}}))
    kits.compile_(["composer", "validate", "--strict", "--no-check-version", folder / "php/composer.json"], folder,
                  COMPOSER_ALLOW_SUPERUSER="1", COMPOSER_HOME=str(folder / "home"))
    kits.compile_(["composer", "install", "--no-interaction", "--classmap-authoritative"], project,
                  COMPOSER_ALLOW_SUPERUSER="1", COMPOSER_HOME=str(folder / "home"))
    shutil.copy(PROGRAMS / "take.php", project)
    return ["env", "-C", project, "php", "take.php"]


def cargo(folder):
    """The crate, in an empty project whose registry is a folder."""
    env = kits.cargo(min)
    kits.compile_(["cargo", "package", "--offline", "--quiet"], folder / "rust", **env)
    crate = next((folder / "rust/target/package").glob("latchd-*.crate"))
    shutil.unpack_archive(crate, folder / "registry", "gztar")
    crate_folder = folder / "registry" / crate.stem
    for name in ("LICENSE", "CHANGELOG.md", "README.md"):
        assert (crate_folder / name).is_file(), name
    (crate_folder / ".cargo-checksum.json").write_text('{ "files": {}, "package": null }')

    project = folder / "project"
    kits.compile_(["cargo", "init", "--quiet", "--vcs", "none", "--name", "take", project], folder, **env)
    (project / ".cargo").mkdir()
    (project / ".cargo/config.toml").write_text(
        f'[source.crates-io]\nreplace-with = "folder"\n[source.folder]\ndirectory = "{folder / "registry"}"\n')
    with (project / "Cargo.toml").open("a") as manifest:
        manifest.write(f'latchd = "{crate.stem.rpartition("-")[2]}"\n')
    shutil.copy(PROGRAMS / "take.rs", project / "src/main.rs")
    kits.compile_(["cargo", "build", "--offline", "--quiet"], project, **env)
    return [project / "target/debug/take"]


def gem(folder):
    """`gem install` of what `gem build` made, into an empty home."""
    kits.tool("ruby", "gem")
    home = folder / "home"
    kits.compile_(["gem", "build", "latchd.gemspec", "--output", folder / "latchd.gem"], folder / "ruby")
    kits.compile_(["gem", "install", "--local", "--no-document", "--install-dir", home, "latchd.gem"], folder)
    made = next(home.glob("gems/latchd-*"))
    for name in ("lib/latchd.rb", "sig/latchd.rbs", "LICENSE"):
        assert (made / name).is_file(), name
    return ["env", f"GEM_HOME={home}", f"GEM_PATH={home}", "ruby", "-w", PROGRAMS / "take.rb"]


PACKAGES = [pip, npm, npm_linked_folder, go, maven, composer, cargo, gem]


def take(command, daemon, name, log):
    """The program takes the lock, others do not get it meanwhile, and it gives it back."""
    with log.open("wb") as errors, daemon.wire() as other, subprocess.Popen(
            [*map(str, command), daemon.url, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=errors) as program:
        first = program.stdout.readline()
        held = first and other.ask("LOCK", name, "WAIT", 0) is None
        program.stdin.close()
        assert program.wait() == 0 and held, f"{first} {held}: {log.read_text()}"
        later = other.ask("LOCK", name, "WAIT", 0)
        assert later is not None and later > int(first), f"{first}, then {later}"


def check(report, package, daemon):
    name = package.__name__.replace("_", " ")
    with tempfile.TemporaryDirectory(prefix="latchd-packages-") as scratch:
        folder = pathlib.Path(scratch)
        shutil.copytree(CLIENTS, folder, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("target", "dist", "node_modules"))

        try:
            command = package(folder)
            if command is not None:
                take(command, daemon, f"package:{name}", folder / "errors")
        except kits.Missing as why:
            report.line(True, f"{name} # SKIP {why}")
        except Exception as error:  # pylint: disable=broad-except
            report.line(False, name, f"{type(error).__name__}: {error}")
        else:
            report.line(True, name)


def main():
    program, _, *parts = sys.argv[1:]
    report = Report()
    wanted = [p for p in PACKAGES if all(part in p.__name__ for part in parts)]
    with tempfile.TemporaryDirectory(prefix="latchd-packages-") as folder, Rack(folder) as rack, \
            concurrent.futures.ThreadPoolExecutor(len(PACKAGES)) as threads:
        redis = rack.keep(Redis(rack.folder)).ready()
        daemon = rack.keep(Daemon(program, rack.folder, redis.url)).ready()
        for future in [threads.submit(check, report, package, daemon) for package in wanted]:
            future.result()
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
