#!/usr/bin/env python3
"""The alerts in conf/prometheus ask for what /metrics has: prometheus.py ROOT LATCHD.

Every metric of every expression is there and is used as its type wants it, every
function is one that is known, and each rule says what it is about. With promtool on the
PATH, that looks at the rules and the metrics as well.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT, LATCHD = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import http_metrics  # noqa: E402

PATIENCE_S = 30
OF_COUNTERS = {"rate", "increase"}
WORDS = OF_COUNTERS | {"deriv", "histogram_quantile", "sum", "by", "and", "or", "offset", "up"}
FOREIGN = {"up"}  # Prometheus's own


def metrics():
    """What a daemon says that has nothing to do, and no Redis."""
    with tempfile.TemporaryDirectory(prefix="latchd-test-") as folder:
        log = pathlib.Path(folder) / "log"
        with log.open("w") as out:
            daemon = subprocess.Popen(
                [LATCHD, "--port", "0", "--unixsocket", f"{folder}/s", "--http-port", "auto",
                 "--redis", f"unix://{folder}/none"], stdout=out, stderr=out)
        try:
            end = time.monotonic() + PATIENCE_S
            while not (at := re.search(r"http: listening on (\S+)", log.read_text())):
                assert daemon.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.02)
            with urllib.request.urlopen(at[1] + "metrics", timeout=PATIENCE_S) as reply:
                return reply.read().decode()
        finally:
            daemon.terminate()
            daemon.wait(PATIENCE_S)


def rules(text):
    """(name, expression, the rest of the rule), for the YAML that we write."""
    for rule in re.split(r"\n      - alert: ", text)[1:]:
        found = re.search(r"\n        expr: (?:>-\n((?:          .*\n)+)|(.*)\n)", rule)
        assert found, f"no expression in {rule}"
        yield rule.split("\n")[0], found[1] or found[2], rule


def metrics_of(expression):
    """(function around it or None, metric) for each metric, after a look at the words."""
    plain = re.sub(r'"[^"]*"', '""', expression)
    plain = re.sub(r"\{[^}]*\}|\bby \([^)]*\)", "", plain)
    assert plain.count("(") == plain.count(")"), "brackets"
    for found in re.finditer(r"(?:\b(\w+)\(\s*)?\b([a-zA-Z_]\w*)\b(\[\d+[smhd]\])?", plain):
        around, word, span = found.groups()
        for name in (around, word):
            if name and name not in WORDS and not name.startswith(("latchd_", "process_")):
                raise AssertionError(f"{name} is not known")
        if word not in WORDS - FOREIGN:
            yield around if span else None, word


def check(expression, families):
    for around, word in metrics_of(expression):
        if word in FOREIGN:
            continue
        family = families.get(http_metrics.base_of(word, families))
        assert family, f"/metrics has no {word}"
        counts = family.kind != "gauge"
        assert counts == (around in OF_COUNTERS), f"{word} is a {family.kind}, in {around}"
        if family.kind == "histogram":
            assert word.endswith("_bucket") and "histogram_quantile(" in expression, word


def ask_promtool(rules_path, text):
    promtool = shutil.which("promtool")
    if promtool:
        subprocess.run([promtool, "check", "rules", rules_path], check=True)
        subprocess.run([promtool, "check", "metrics"], input=text, text=True, check=True)


def main():
    path = ROOT / "conf" / "prometheus" / "latchd.rules.yml"
    text = metrics()
    families = http_metrics.parse(text)
    names, bad = [], 0
    for name, expression, rule in rules(path.read_text()):
        names.append(name)
        try:
            check(expression, families)
            assert name.startswith("Latchd") and "severity: " in rule, "name or severity"
            assert "summary: " in rule, "no summary"
        except AssertionError as why:
            print(f"{path.name}: {name}: {why}")
            bad += 1
    if len(set(names)) != len(names) or len(names) < 10:
        print(f"{path.name}: {len(names)} rules, {len(set(names))} names")
        bad += 1
    ask_promtool(path, text)
    sys.exit(1 if bad else 0)


main()
