#!/usr/bin/env python3
"""The helpers as packages: packages.py ROOT. Each has what a registry shows, and one version.

The newest heading of its CHANGELOG.md says the version, and the tag of its release is `clients/FOLDER/vVERSION`.
Where a file of the package has to repeat it, it says the same. So it is with latchd's own version.
"""
import pathlib
import re
import sys

# Folder: the manifest, and the file and the pattern of the version where it is repeated
PACKAGES = {
    "go": ("go.mod", None, None),
    "java": ("pom.xml", "pom.xml", r"<artifactId>latchd</artifactId>\s*<version>(.*)</version>"),
    "node": ("package.json", "package.json", r'"version": "(.*)"'),
    "php": ("composer.json", "composer.json", r'"version": "(.*)"'),
    "python": ("pyproject.toml", "latchd.py", r'__version__ = "(.*)"'),
    "ruby": ("latchd.gemspec", "lib/latchd.rb", r"VERSION = '(.*)'"),
    "rust": ("Cargo.toml", "Cargo.toml", r'(?m)^version = "(.*)"'),
}
SAID = ["Locks of latchd: renewed in the background, with fencing tokens, told when lost", "MIT", "The latchd authors"]
# latchd's own version: the newest heading of CHANGELOG.md with a date says it, and these repeat it.
OWN = {
    "meson.build": r"^  version: '(.*)',",
    "conf/helm/latchd/Chart.yaml": r"^appVersion: (.*)",
    "conf/rpm/latchd.spec": r"^Version: +(.*)",
    "debian/changelog": r"^latchd \((.*)\) ",
}
NOT_SAID = {"go.mod"}  # it has no place for that
HEADING = re.compile(r"^## (\d+\.\d+\.\d+)(?: - \d{4}-\d\d-\d\d)?$", re.MULTILINE)


def faults(root, name, manifest, file, pattern):
    folder = root / "clients" / name
    for wanted in ("README.md", "LICENSE", "CHANGELOG.md", manifest):
        if not (folder / wanted).is_file():
            yield f"there is no {wanted}"
            return
    if (folder / "LICENSE").read_text() != (root / "LICENSE").read_text():
        yield "LICENSE is not that of the tree"
    if manifest not in NOT_SAID:
        yield from (f"{manifest} does not say {said!r}" for said in SAID
                    if said not in (folder / manifest).read_text())
    versions = HEADING.findall((folder / "CHANGELOG.md").read_text())
    headings = re.findall(r"^## .*", (folder / "CHANGELOG.md").read_text(), re.MULTILINE)
    if not versions or len(versions) != len(headings):
        yield "CHANGELOG.md: a heading is `## MAJOR.MINOR.PATCH`, with ` - YYYY-MM-DD` once that is released"
    elif file is not None:
        repeated = re.search(pattern, (folder / file).read_text())
        if repeated is None or repeated.group(1) != versions[0]:
            yield f"{file} has another version than CHANGELOG.md, {versions[0]}"


def own_faults(root):
    version = re.search(r"^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    for path, pattern in OWN.items():
        repeated = re.search(pattern, (root / path).read_text(), re.MULTILINE)
        if version is None or repeated is None or repeated.group(1) != version.group(1):
            yield f"{path} has another version than CHANGELOG.md"


def main():
    root = pathlib.Path(sys.argv[1])
    bad = [f"clients/{name}: {fault}" for name, row in PACKAGES.items() for fault in faults(root, name, *row)]
    bad += [f"{folder.relative_to(root)}: the lint does not know this package"
            for folder in sorted((root / "clients").iterdir()) if folder.is_dir() and folder.name not in PACKAGES]
    bad += own_faults(root)
    print("\n".join(bad) or f"{len(PACKAGES)} packages")
    sys.exit(1 if bad else 0)


main()
