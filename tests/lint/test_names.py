"""The names of tests: of a program in C, a script in Python, a file of scenarios."""
import re

FORMS = {
    ".c": re.compile(r"START_TEST\((\w+)[,)]", re.M),
    ".py": re.compile(r"^def (\w+)\(", re.M),
    ".scn": re.compile(r"^scenario (.+)$", re.M),
}


def names_in(path):
    """A scenario's name is its sentence, as one word; it is the test's name everywhere."""
    form = FORMS.get(path.suffix)
    return {name.replace(" ", "_") for name in form.findall(path.read_text())} if form else set()


def files(root):
    """path -> its tests."""
    return {path: names_in(path) for suffix in FORMS
            for path in (root / "tests").glob(f"**/*{suffix}")}
