"""README.md's examples in all languages, with the libraries of this suite's kits."""
import os
import sys

import snippets
from stand import run


def python(kit):
    def work(code, folder):
        (folder / "example.py").write_text(code)
        return run([sys.executable, "example.py"], folder,
                   env={**os.environ, "PYTHONPATH": str(kit)})
    return work


def node(kit):
    def work(code, folder):
        (folder / "example.js").write_text(code)
        return run(["node", "example.js"], folder,
                   env={**os.environ, "NODE_PATH": str(kit / "node_modules")})
    return work


def golang(kit):
    """In the module of the kit, which has what the example imports."""
    def work(code, folder):
        place = kit / "example"
        place.mkdir(exist_ok=True)
        (place / "main.go").write_text(code)
        done = run(["go", "build", "-o", folder / "example", "./example"], kit)
        return done if done.returncode else run([folder / "example"], folder)
    return work


def java(kit):
    def work(code, folder):
        (folder / "Example.java").write_text(code)
        path = f".:{(kit / 'classpath').read_text().strip()}"
        done = run(["javac", "-nowarn", "-cp", path, "Example.java"], folder)
        return done if done.returncode else run(["java", "-cp", path, "Example"], folder)
    return work


# language: the kit that it needs, and how it is run
LANGUAGES = {"python": ("redis-py", python), "js": ("node-6", node), "go": ("go", golang),
             "java": ("java", java)}


def check_all(readme, stand, made, report):
    """made: the kits' folders."""
    for title, language, code in snippets.examples(readme, LANGUAGES):
        kit, work = LANGUAGES[language]
        name = f"README's example {title} in {language}"
        if kit not in made:
            report.skip(name, f"there is no {kit}")
            continue
        try:
            snippets.check(work(made[kit]), code, stand.folder / title, stand.port)
        except AssertionError as error:
            report.bad(name, str(error))
        else:
            report.ok(name)
