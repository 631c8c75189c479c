#!/usr/bin/env python3
"""Everything around locks, beside a real redis-server: beside_redis.py LATCHD.

Each scenario of beside_redis_cases.py is said to both, on a connection of its own, in
RESP2 and in RESP3. Replies are compared by type and byte; where the values must differ
(versions, ids, help), by type, or by the keys of a map. What is allowed to differ is
listed there, each with its reason. Prints TAP.
"""
import functools
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from beside_redis_cases import ALLOWED, CLOSED, SCENARIOS, Words
from stand import Stand, start_redis, tap
from resp import Link

DEADLINE_S = 20


class Connection(Link):
    """Requests out, typed replies in: (type byte, value)."""

    def __init__(self, address):
        super().__init__(address, DEADLINE_S)

    def send(self, request):
        if isinstance(request, bytes):
            self.socket.sendall(request)
        else:
            super().send(*(request if isinstance(request, Words) else request.split(" ")))

    def read(self):
        line = self.file.readline()
        if not line:
            return ("closed", None)
        kind, rest = chr(line[0]), line[1:].rstrip(b"\r\n")
        if kind in "$=":
            if rest == b"-1":
                return ("null", None)
            return (kind, self.file.read(int(rest) + 2)[:-2])
        if kind in "*~>%":
            if rest == b"-1":
                return ("null array", None)
            count = int(rest) * (2 if kind == "%" else 1)
            return (kind, [self.read() for _ in range(count)])
        return (kind, rest)


def keys_of(items):
    """Of a map, or of a flat array that stands for one: keys and what they lead to."""
    return [(key[1], value) for key, value in zip(items[0::2], items[1::2])]


def differ(mode, theirs, ours):
    """Why the replies do not match, or None. Modes: "=" the same; "type" of the same
    type; "keys" maps (or arrays of keys and values) with the same keys and types; "items"
    arrays whose items are of the same types; "each" arrays of arrays, each like one of
    theirs."""
    if mode == "=" or theirs[0] != ours[0]:
        return None if theirs == ours else f"{theirs} is here {ours}"
    if mode == "keys":
        for (key, value), (key2, value2) in zip(keys_of(theirs[1]), keys_of(ours[1])):
            if key != key2 or value[0] != value2[0]:
                return f"{key} {value} is here {key2} {value2}"
        if len(theirs[1]) != len(ours[1]):
            return f"{len(theirs[1])} items, here {len(ours[1])}"
    if mode == "each":
        known = {tuple(part[0] for part in item[1]) for item in theirs[1]}
        odd = [item for item in ours[1] if tuple(part[0] for part in item[1]) not in known]
        return f"there is nothing like {odd[0]}" if odd else None
    if mode == "items":
        if [item[0] for item in theirs[1]] != [item[0] for item in ours[1]]:
            return f"{theirs} is here {ours}"
    return None


def step(scenario, number):
    """(request, how to compare, how many replies)."""
    one = scenario[number]
    if isinstance(one, (str, bytes, Words)):
        return one, "=", 1
    return one[0], one[1] if len(one) > 1 else "=", one[2] if len(one) > 2 else 1


class Reference:
    """A redis-server like any other."""

    def __init__(self, folder, *options):
        self.path = str(folder / "reference.sock")
        self.options = options

    def __enter__(self):
        self.server = start_redis(pathlib.Path(self.path), *self.options)
        return self.path

    def __exit__(self, *exception):
        self.server.kill()
        self.server.wait()


USED = set()


def compare(request, mode, theirs, ours):
    """What is wrong, or None."""
    why = differ(mode, theirs, ours)
    if why is not None and request in ALLOWED:
        USED.add(request)
        why = differ("=", ALLOWED[request][1], ours)
    return why


def run(scenario, proto, places):
    sides = redis, latchd = [Connection(place) for place in places]
    wrong = []
    if proto == 3:
        for side in sides:
            side.send("HELLO 3")
            side.read()
    for number in range(len(scenario)):
        request, mode, count = step(scenario, number)
        if request != CLOSED:
            for side in sides:
                side.send(request)
        for _ in range(count):
            why = compare(request, mode, redis.read(), latchd.read())
            if why is not None:
                wrong.append(f"{request!r}: {why}")
    for side in sides:
        side.close()
    if wrong:
        raise AssertionError("\n".join(wrong))


def what_only_redis_has_is_refused_as_such(redis, latchd):
    """Not as unknown, which tells clients that they talk to an older Redis."""
    redis, latchd = Connection(redis), Connection(latchd)
    redis.send("COMMAND LIST")
    latchd.send("COMMAND LIST")
    names = [name for _, name in redis.read()[1] if b"|" not in name]
    served = {name for _, name in latchd.read()[1]}
    redis.send("INFO server")
    is_known = b"redis_version:7.0." in redis.read()[1]
    wrong = []
    for name in sorted(set(names) - served) if is_known else ["SET", "eval"]:
        latchd.send(Words([name, "a"]))
        kind, text = latchd.read()
        if kind != "-" or not text.startswith(b"ERR latchd keeps locks, not data: '"):
            wrong.append(f"{name}: {text}")
    redis.close()
    latchd.close()
    if wrong or len(names) < 200:
        raise AssertionError("\n".join(wrong))


def nothing_is_allowed_without_need():
    unused = set(ALLOWED) - USED
    if unused:
        raise AssertionError(f"these do not differ any more: {unused}")


def main():
    password = "sesame"
    with (Stand(sys.argv[1]) as open_stand,
          Stand(sys.argv[1], "--requirepass", password) as guarded_stand,
          Reference(open_stand.folder) as open_redis,
          Reference(guarded_stand.folder, "--requirepass", password) as guarded_redis):
        opened = (open_redis, ("127.0.0.1", open_stand.port))
        guarded = (guarded_redis, ("127.0.0.1", guarded_stand.port))
        cases = [(f"{name}_in_resp{proto}",
                  functools.partial(run, scenario, proto, guarded if locked else opened))
                 for name, (locked, scenario) in SCENARIOS.items()
                 for proto in ((2,) if locked else (2, 3))]
        failed = tap([*cases, ("what_only_redis_has_is_refused_as_such",
                               functools.partial(what_only_redis_has_is_refused_as_such,
                                                 *opened)), ("nothing_is_allowed_without_need",
                               nothing_is_allowed_without_need)])
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
