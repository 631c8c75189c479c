#!/usr/bin/env python3
"""The documents: documents.py ROOT. Links lead somewhere; files, folders, functions and structs of
ours that a document names are there; so are the documents that a source names."""
import pathlib
import re
import sys

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)")
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:[\w.-]+/)+(?:[\w.-]+\.\w+)?")
FUNCTION = re.compile(r"(?<![.\w])(\w+)\(\)")  # not a method of somebody else's
STRUCT = re.compile(r"struct (\w+)")
# What a document may call a path from: the tree, the sources, the tests, a folder of them.
BASES = ("", "src", "src/engine", "src/backend", "src/backend/script", "src/backend/script/lua",
         "src/cmd", "src/daemon", "tests")
# A document that a source names, from the top or from the source's folder.
DOCUMENT = re.compile(r"(?<![\w*{}/$.-])(?:[\w.-]+/)*[\w-]+\.md\b")
SOURCES = ("src", "tests", "clients", "conf", ".ci")
KINDS = {".build", ".c", ".go", ".h", ".java", ".js", ".lua", ".mjs", ".php", ".pl", ".py", ".rb",
         ".rs", ".sh", ".ts", ".1", ".5", ".7", ".8", ""}


def anchors(path):
    """As the web shows headings."""
    return {re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
            for line in path.read_text().splitlines() if line.startswith("#")}


def bad_links(path):
    for target, anchor in LINK.findall(path.read_text()):
        file = (path.parent / target) if target else path
        if not file.exists():
            yield f"there is no {target}"
        elif anchor and file.suffix == ".md" and anchor[1:] not in anchors(file):
            yield f"{target or path.name} has no heading {anchor}"


def bad_names(path, root, sources):
    for code in CODE.findall(path.read_text()):
        if PATH.fullmatch(code) and "<" not in code:
            if not any((root / base / code).exists() for base in BASES):
                yield f"there is no {code}"
        for name in FUNCTION.findall(code):
            if not re.search(rf"\b{name}\(", sources):
                yield f"there is no function {name}()"
        for name in STRUCT.findall(code):
            if not re.search(rf"\bstruct {name} {{", sources):
                yield f"there is no struct {name}"


def lost_documents(root):
    for folder in SOURCES:
        for path in sorted((root / folder).glob("**/*")):
            if path.suffix not in KINDS or not path.is_file() or "corpus" in path.parts:
                continue
            for name in DOCUMENT.findall(path.read_text(errors="replace")):
                if not any((base / name).exists() for base in (root, path.parent)):
                    yield f"{path.relative_to(root)}: there is no {name}"


def main():
    root = pathlib.Path(sys.argv[1])
    sources = "\n".join(path.read_text() for folder in ("src", "tests/support")
                        for pattern in ("**/*.[ch]", "**/*.py")
                        for path in (root / folder).glob(pattern))
    bad = []
    for path in [root / "CONTRIBUTING.md", root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        where = path.relative_to(root)
        bad += [f"{where}: {why}" for why in bad_links(path)]
        if where.name != "README.md":
            bad += [f"{where}: {why}" for why in bad_names(path, root, sources)]
    for path in sorted((root / "clients").glob("*/README.md")):
        bad += [f"{path.relative_to(root)}: {why}" for why in bad_links(path)]
    bad += lost_documents(root)
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
