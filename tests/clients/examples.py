"""The examples of a page in all languages, with the libraries of this suite's kits."""
import concurrent.futures
import pathlib
import sys

import kits
import snippets
from stand import run

HELPER = pathlib.Path(__file__).resolve().parents[2] / "clients/python"


def python(kit):
    def prepare(code, folder):
        (folder / "example.py").write_text(code)
        return [sys.executable, "example.py"], {"PYTHONPATH": f"{kit}:{HELPER}"}
    return prepare


def node(kit):
    def prepare(code, folder):
        (folder / "example.js").write_text(code)
        return ["node", "example.js"], {"NODE_PATH": str(kit / "node_modules")}
    return prepare


def golang(kit):
    """In the module of the kit, which has what the example imports."""
    def prepare(code, folder):
        place = kit / "examples" / folder.name
        place.mkdir(parents=True, exist_ok=True)
        (place / "main.go").write_text(code)
        build(["go", "build", "-o", folder / "example", f"./examples/{folder.name}"], kit)
        return [folder / "example"], {}
    return prepare


def java(kit):
    def prepare(code, folder):
        (folder / "Example.java").write_text(code)
        path = f".:{(kit / 'classpath').read_text().strip()}"
        build(["javac", "-nowarn", "-cp", path, "Example.java"], folder)
        return ["java", "-cp", path, "Example"], {}
    return prepare


def ruby(_kit):
    def prepare(code, folder):
        (folder / "example.rb").write_text(f"$stdout.sync = true\n{code}")
        return ["ruby", "-I", kits.CLIENTS / "ruby/lib", "example.rb"], {}
    return prepare


def rust(kit):
    def prepare(code, folder):
        (folder / "example.rs").write_text(code)
        return [kits.rust_program(kit, folder / "example.rs", folder / "example")], {}
    return prepare


def php(_kit):
    def prepare(code, folder):
        (folder / "example.php").write_text(code)
        (folder / "vendor").mkdir()
        (folder / "vendor/autoload.php").write_text(f"<?php require '{HELPER.parent}/php/src/autoload.php';")
        return ["php", "example.php"], {}
    return prepare


def build(words, folder):
    done = run(words, folder)
    if done.returncode != 0:
        raise AssertionError(done.stdout)


# language: the kit that it needs, and how its program is made
LANGUAGES = {"python": ("redis-py", python), "js": ("node-6", node), "go": ("go", golang),
             "java": ("java", java), "php": ("phpredis", php), "ruby": ("ruby", ruby),
             "rust": ("rust-helper", rust)}


def check_all(page, stand, made, report):
    """made: the kits' folders."""
    languages = {language: prepare(made[kit])
                 for language, (kit, prepare) in LANGUAGES.items() if kit in made}
    for language, (kit, _) in LANGUAGES.items():
        if language not in languages:
            report.skip(f"the examples in {language}", f"there is no {kit}")
    for title, language, code in snippets.examples(page, languages):
        judge(report, f"{title} in {language}", lambda title=title, language=language,
              code=code: snippets.check(languages[language], code, stand.folder / title,
                                        stand.port))
    # They mostly wait for leases.
    with concurrent.futures.ThreadPoolExecutor(len(snippets.RESTARTS)) as threads:
        for name, check in snippets.cases(page, languages, stand.binary, stand.folder):
            threads.submit(judge, report, name, check)


def judge(report, name, check):
    try:
        check()
    except Exception as error:  # pylint: disable=broad-except
        report.bad(f"the example {name}", f"{type(error).__name__}: {error}")
    else:
        report.ok(f"the example {name}")
