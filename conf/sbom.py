#!/usr/bin/env python3
"""Prints which libraries a build of latchd uses, as CycloneDX 1.5: sbom.py VERSION HOW
LIBRARY=VERSION... HOW is shared or static. The same arguments give the same bytes.
"""
import json
import sys
import uuid

LICENSES = {"glibc": "LGPL-2.1-or-later", "hiredis": "BSD-3-Clause", "libmicrohttpd": "LGPL-2.1-or-later",
            "libuv": "MIT", "openssl": "Apache-2.0"}


def component(kind, name, version, license_):
    ref = f"pkg:generic/{name}@{version}"
    return {"type": kind, "bom-ref": ref, "name": name, "version": version, "purl": ref,
            "licenses": [{"license": {"id": license_}}]}


def main():
    version, how, *libraries = sys.argv[1:]
    latchd = component("application", "latchd", version, "MIT")
    used = []
    for library in libraries:
        name, library_version = library.split("=")
        used.append({**component("library", name, library_version, LICENSES[name]),
                     "scope": "required", "properties": [{"name": "latchd:linked", "value": how}]})
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_OID, " ".join(sys.argv[1:])).urn,
        "version": 1,
        "metadata": {"component": latchd},
        "components": used,
        "dependencies": [{"ref": latchd["bom-ref"], "dependsOn": [c["bom-ref"] for c in used]},
                         *({"ref": c["bom-ref"]} for c in used)],
    }
    print(json.dumps(bom, indent=2))


main()
