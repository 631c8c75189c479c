#!/usr/bin/env python3
"""The dashboard for Grafana and the alerts, with a real Prometheus: dashboard.py LATCHD
DASHBOARD.json RULES.yml

It scrapes a latchd under load. Every expression of the dashboard gives numbers, every rule can be
evaluated, and no two panels overlap. Prints TAP."""
import contextlib
import json
import math
import pathlib
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

from http_stand import HttpStand
from children import die_with_parent, until
from resp import Wire
from stand import need, tap

SOON_S = 60
SCRAPE = "250ms"
# What Grafana puts in; a rate needs two scrapes.
VARIABLES = {"$__rate_interval": "3s", "$__range": "60s", "$instance": ".*"}
CLIENTS = 8


class Prometheus:
    """With one latchd to look at."""

    def __init__(self, folder, target, rules):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        (folder / "prometheus.yml").write_text(
            f"global: {{scrape_interval: {SCRAPE}, evaluation_interval: {SCRAPE}}}\n"
            f"rule_files: ['{rules}']\n"
            "scrape_configs:\n"
            f"  - {{job_name: latchd, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}\n")
        self.log = open(folder / "prometheus.log", "w", encoding="utf-8")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
             f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"],
            stdout=self.log, stderr=self.log, preexec_fn=die_with_parent)

    def ask(self, path, **query):
        """The data; None: it does not answer yet."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        assert self.process.poll() is None, pathlib.Path(self.log.name).read_text(encoding="utf-8")
        try:
            with urllib.request.urlopen(url, timeout=SOON_S) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as why:
            if why.code == 503:
                return None
            raise AssertionError(f"{query}: {why.read().decode()}") from why
        except OSError:
            return None

    def numbers(self, expression):
        """Those that are now, or []."""
        data = self.ask("query", query=expression)
        values = [float(one["value"][1]) for one in data["result"]] if data else []
        return [value for value in values if not math.isnan(value)]

    def end(self):
        self.process.terminate()
        self.process.wait(SOON_S)
        self.log.close()


def client(port, number, over):
    """Takes few names for moments, and asks for one that another holds: there is always an
    outcome other than ok."""
    with Wire(port) as wire:
        while not over.is_set():
            name = f"job-{number % 2}"
            if isinstance(wire.ask("LOCK", name, "WAIT", 20), int):
                wire.ask("PING")
                wire.ask("UNLOCK", name)
            wire.ask("LOCK", "renewed", "WAIT", 0)


@contextlib.contextmanager
def load(port):
    over = threading.Event()
    threads = [threading.Thread(target=client, args=(port, number, over)) for number in range(CLIENTS)]
    with Wire(port) as holder:
        holder.ask("LOCK", "renewed")
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()


def expressions(dashboard):
    """(panel, expression as Grafana asks it)."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            assert "$" not in expression, expression
            yield panel["title"], expression


def panels_are_told_apart(dashboard):
    taken, ids = set(), set()
    for panel in dashboard["panels"]:
        assert panel["id"] not in ids and panel["title"], panel
        ids.add(panel["id"])
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def each_expression_gives_numbers(prometheus, dashboard):
    for title, expression in expressions(dashboard):
        until(lambda e=expression: prometheus.numbers(e), f"{title}: {expression}", SOON_S, every_s=0.1)


def each_rule_is_evaluated(prometheus):
    def health():
        rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
        assert rules
        bad = [rule for rule in rules if rule["health"] == "err"]
        assert not bad, bad
        return all(rule["health"] == "ok" for rule in rules)
    until(health, "all rules are evaluated", SOON_S, every_s=0.1)


def the_alerts_are_silent(prometheus):
    alerts = prometheus.ask("alerts")["alerts"]
    assert not [a for a in alerts if a["state"] == "firing"], alerts


def the_instances_are_found(prometheus, dashboard):
    """As the dashboard's variable asks for them."""
    variable, = [v for v in dashboard["templating"]["list"] if v["name"] == "instance"]
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
    series = prometheus.ask("series", **{"match[]": metric})
    assert len(series) == 1 and series[0][label].startswith("127.0.0.1:"), series


def main():
    need("prometheus", "redis-server")
    latchd, path, rules = sys.argv[1:]
    dashboard = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    with HttpStand(latchd, "--watchdog-timeout", "500ms") as stand:
        prometheus = Prometheus(stand.folder, stand.http_port, rules)
        try:
            with load(stand.port):
                failed = tap([
                    ("panels_are_told_apart", lambda: panels_are_told_apart(dashboard)),
                    ("each_expression_gives_numbers", lambda: each_expression_gives_numbers(prometheus, dashboard)),
                    ("each_rule_is_evaluated", lambda: each_rule_is_evaluated(prometheus)),
                    ("the_instances_are_found", lambda: the_instances_are_found(prometheus, dashboard)),
                    ("the_alerts_are_silent", lambda: the_alerts_are_silent(prometheus)),
                ])
        finally:
            prometheus.end()
    sys.exit(1 if failed else 0)


main()
