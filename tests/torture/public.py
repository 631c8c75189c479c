#!/usr/bin/env python3
"""What clients saw, in the forms of others: EDN as Jepsen writes it, one map an invocation or
completion; and JSON lines, one object an operation, for porcupine (tests/proof).

`public.py HISTORY FOLDER` converts a history that torture kept.
"""
import json
import pathlib
import sys

sys.dont_write_bytecode = True  # nothing is written beside the sources
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))

# pylint: disable=wrong-import-position
from record import Record, plain  # noqa: E402

REFUSED = "-refused"  # ends the name of a history with a violation of these kinds
JUDGED = {"two holders", "too many permits", "token", "fenced write"}  # by tests/proof, too
STALL_NS = 50_000_000  # so late was the load, which is told of nothing meanwhile
VERBS = {"LOCK": "lock", "UNLOCK": "unlock", "RENEW": "renew", "LEAVE": "leave"}


def operations(record):
    """Objects in the order of their calls. A request whose outcome is unknown has no return."""
    found = [{
        "client": a.who, "daemon": a.daemon, "f": VERBS[a.verb], "name": a.name,
        "call": a.sent, "return": a.answered, "value": plain(a.value), "kind": a.kind,
        "wait": a.wait_ms, "lease": a.lease_ms, "request": a.request or "",
        "permits": a.permits, "limit": a.limit, "rests": bool(a.atleast_ms)}
        for a in record.asks if a.verb in VERBS]
    found += [{"client": t.who, "daemon": t.daemon, "f": "told", "name": t.name,
               "call": t.at, "return": None} for t in record.told]
    found += [{"client": c.who, "daemon": c.daemon, "f": "closed", "name": "",
               "call": c.at, "return": None} for c in record.closed]
    found += [{"client": w.who, "daemon": w.daemon, "f": "write", "name": w.name,
               "call": w.at, "return": w.at, "kind": w.kind, "token": w.token,
               "accepted": w.vouched or w.token >= w.fence} for w in record.writes]
    found += [{"client": f.target, "daemon": "", "f": "fault", "name": f.kind,
               "call": f.start, "return": f.end} for f in record.faults]
    found += [{"client": "", "daemon": "", "f": "paused", "name": "",
               "call": start, "return": end}
              for start, end in [*record.pauses, *((at - ns, at) for at, ns in record.stalls
                                                   if ns >= STALL_NS)]]
    return sorted(found, key=lambda o: o["call"])


def edn(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f":{key} {edn(v)}" for key, v in value.items()) + "}"
    if isinstance(value, Keyword):
        return f":{value}"
    return "nil" if value is None else json.dumps(value)


class Keyword(str):
    """Of EDN."""


def jepsen(record):
    """Invocations and completions in the order of time. As in Jepsen, a process whose request
    has no known outcome does nothing more: its client goes on as another one."""
    events = []
    for op in operations(record):
        if op["f"] not in VERBS.values() and op["f"] != "write":
            events.append((op["call"], 0, op, "info"))
            continue
        events.append((op["call"], 0, op, "invoke"))
        end = record.ended if op["return"] is None else op["return"]
        failed = isinstance(op.get("value"), str) or op.get("accepted") is False
        events.append((max(end, op["call"]), 1, op, "info" if op["return"] is None or (
            failed and not str(op.get("value")).startswith("NOTHELD") and "token" not in op)
            else "fail" if failed else "ok"))
    processes, running = {}, {}
    for index, (at, _, op, kind) in enumerate(sorted(events, key=lambda e: e[:2])):
        who, process = op["client"], Keyword("nemesis")
        if op["f"] in VERBS.values() or op["f"] == "write":
            if kind == "invoke":
                while who in processes and processes[who] in running:
                    who += "'"  # a client with two requests under way is two processes
                process = processes.setdefault(who, len(processes))
                running[process], op["process"] = who, process
            else:
                process = op.pop("process")
                owner = running.pop(process)
                if kind == "info":
                    processes[f"{owner} {index}"] = processes.pop(owner)
        value = {key: v for key, v in op.items() if key not in ("call", "return", "f", "process")}
        if kind == "invoke":
            value.pop("value", None)
        yield {"index": index, "time": at, "process": process, "type": Keyword(kind),
               "f": Keyword(op["f"]), "value": value}


def save(record, folder, stem, kinds=()):
    """Both forms, in files of that name. kinds: of the violations that checks.py found."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{stem}[.-]*"):
        old.unlink()
    stem += REFUSED if JUDGED & set(kinds) else ""
    with open(folder / f"{stem}.edn", "w", encoding="utf-8") as file:
        file.writelines(edn(event) + "\n" for event in jepsen(record))
    with open(folder / f"{stem}.porcupine.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(op) + "\n" for op in operations(record))


if __name__ == "__main__":
    history = pathlib.Path(sys.argv[1])
    save(Record.load(history), pathlib.Path(sys.argv[2]), history.stem)
