#!/usr/bin/env python3
"""The list of libraries that latchd is built from is CycloneDX, and names every library that
the programs load: sbom.py LIST VERSION PROGRAM... Exit code 77 (skipped) without readelf.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

SKIP = 77
# The library that a file belongs to, where that is not its name.
OF = {"libcrypto": "openssl", "libssl": "openssl", "libc": "glibc", "libm": "glibc", "ld-linux-x86-64": "glibc",
      "ld-linux-aarch64": "glibc", "libhiredis": "hiredis"}


def loaded(program):
    text = subprocess.run(["readelf", "--dynamic", program], capture_output=True, text=True,
                          check=True).stdout
    names = re.findall(r"\(NEEDED\).*\[(.+?)\.so", text)
    return {OF.get(name, name) for name in names}


def check(bom, version, programs):
    """Yields what is wrong."""
    if (bom["bomFormat"], bom["specVersion"], bom["version"]) != ("CycloneDX", "1.5", 1):
        yield "not a CycloneDX 1.5"
    if not re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bom["serialNumber"]):
        yield f"serialNumber {bom['serialNumber']}"
    about = bom["metadata"]["component"]
    if (about["type"], about["name"], about["version"]) != ("application", "latchd", version):
        yield f"it is about {about}"
    for part in [about, *bom["components"]]:
        if not re.fullmatch(r"\d+(\.\d+)+\S*", part["version"]):
            yield f"{part['name']} has the version {part['version']}"
        if part["purl"] != part["bom-ref"] or not part["licenses"][0]["license"]["id"]:
            yield f"{part['name']} has no package URL or license"
    refs = [c["bom-ref"] for c in bom["components"]]
    if [d["ref"] for d in bom["dependencies"]] != [about["bom-ref"], *refs]:
        yield "the dependencies are not those of the components"
    if bom["dependencies"][0]["dependsOn"] != refs or len(set(refs)) != len(refs):
        yield "latchd depends on other parts, or on one twice"
    for program in programs:
        for name in sorted(loaded(program) - {c["name"] for c in bom["components"]}):
            yield f"{program} loads {name}, which is not listed"


def main():
    if shutil.which("readelf") is None:
        print("readelf is not installed")
        sys.exit(SKIP)
    path, version, *programs = sys.argv[1:]
    wrong = list(check(json.loads(pathlib.Path(path).read_text()), version, programs))
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
