#!/usr/bin/env python3
"""Turns the page into C: one document, and the policy that lets nothing else run.

embed_page.py OUT page.html page.css page.js   The lines `<!-- css -->` and `<!-- js -->` of
the page are where the other two go. The policy names both by their hashes.
"""
import base64
import hashlib
import pathlib
import sys

POLICY = ("default-src 'none'; style-src '%s'; script-src '%s'; connect-src 'self'; "
          "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def hashed(text):
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


def literal(line):
    return '"' + line.replace('\\', '\\\\').replace('"', '\\"') + '\\n"'


def main():
    page, css, js = (pathlib.Path(arg).read_text() for arg in sys.argv[2:])
    css, js = "\n" + css, "\n" + js
    text = page.replace("<!-- css -->", f"<style>{css}</style>")
    text = text.replace("<!-- js -->", f"<script>{js}</script>")
    out = ['/* Made by embed_page.py. */', '#include "http/http.h"', '', 'const char HTTP_PAGE[] =']
    out += ['    ' + literal(line) for line in text.splitlines()]
    out[-1] += ';'
    out += ['const size_t HTTP_PAGE_LEN = sizeof(HTTP_PAGE) - 1;',
            'const char HTTP_PAGE_POLICY[] =',
            '    ' + literal(POLICY % (hashed(css), hashed(js)))[:-3] + '";', '']
    pathlib.Path(sys.argv[1]).write_text('\n'.join(out))


main()
