"""Reads Prometheus's text format 0.0.4 as strictly as its own tools do."""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)?\}})? (\S+)")
UNITS = ("_seconds", "_bytes", "_info", "_fds", "_max", "_total")


class Family:
    def __init__(self, name, kind, text):
        self.name, self.kind, self.text = name, kind, text
        self.samples = {}


def base_of(name, families):
    for suffix in ("_bucket", "_sum", "_count"):
        base = name[:-len(suffix)]
        if name.endswith(suffix) and base in families and families[base].kind == "histogram":
            return base
    return name


def check_histogram(family):
    buckets = [(float(dict(labels)["le"]), value)
               for (name, labels), value in family.samples.items()
               if name.endswith("_bucket")]
    assert buckets == sorted(buckets), f"{family.name}: buckets out of order"
    counts = [value for _, value in buckets]
    assert counts == sorted(counts), f"{family.name}: buckets are not cumulative"
    assert buckets[-1][0] == float("inf"), f"{family.name}: no +Inf"
    assert counts[-1] == family.samples[family.name + "_count", ()], family.name
    assert (family.name + "_sum", ()) in family.samples, family.name


def check_name(family):
    name = family.name
    assert family.text and family.text.endswith("."), f"{name}: {family.text}"
    assert name.startswith(("latchd_", "process_")), name
    assert (family.kind == "counter") == name.endswith("_total"), f"{name}: {family.kind}"
    assert family.kind != "histogram" or name.endswith("_seconds"), name
    assert not re.search("_(ms|us|milliseconds|microseconds|kb|minutes)(_|$)", name), name


def parse(text):
    """{name: Family}; fails where the text is wrong."""
    families, current = {}, None
    assert text.endswith("\n")
    lines = text.split("\n")[:-1]
    for i, line in enumerate(lines):
        if line.startswith("# HELP "):
            _, _, name, text = line.split(" ", 3)
            kind = re.fullmatch(rf"# TYPE {name} (counter|gauge|histogram)", lines[i + 1])
            assert kind, f"no type after {line}"
            assert name not in families, f"{name} comes twice"
            current = families[name] = Family(name, kind[1], text)
        elif not line.startswith("# TYPE "):
            sample = SAMPLE.fullmatch(line)
            assert sample, f"not a sample: {line!r}"
            name = sample[1]
            assert current and base_of(name, families) == current.name, f"stray {line}"
            labels = tuple(re.findall(LABEL, sample[2] or ""))
            assert (name, labels) not in current.samples, f"twice: {line}"
            current.samples[name, labels] = float(sample[7])
    for family in families.values():
        check_name(family)
        if family.kind == "histogram":
            check_histogram(family)
    return families


def value(families, name, **labels):
    samples = families[base_of(name, families)].samples
    return samples[name, tuple(labels.items())]
