#!/usr/bin/env python3
"""What only the helper for Ruby has to do, such as forks and TLS: helpers_ruby.py LATCHD. Prints TAP.

helpers/ruby_cases.rb has the cases.
"""
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
from stand import Certs, Stand, need  # noqa: E402


def main():
    need("ruby", "redis-server", "openssl")
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        certs = Certs(folder)
        with Stand(sys.argv[1], certs=certs, level="error", unix=True) as stand:
            done = subprocess.run(["ruby", "-w", HERE / "helpers/ruby_cases.rb", str(stand.port), str(stand.tls_port),
                                   certs.path("ca.pem"), stand.socket], check=False)
    sys.exit(done.returncode)


main()
