"""The call graph of C sources, read from their text: the functions of a folder, and which of them
name each other. An inline function of a header counts as part of its callers, as a field does."""
import re

NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^#[^\n]*$', re.S | re.M)
FUNCTION = re.compile(r"^((?:\w+[ *]+)+)(\w+)\(([^;{}]*)\)\n\{\n(.*?)^\}", re.S | re.M)
# A name that is called, or given away as a function: no field, tag or declared variable.
USE = re.compile(r"(?:(->|\.|\bstruct |\benum )\s*)?\b([a-z_]\w*)\b(?=\s*([(),;:?}]))")


class CallGraph:
    """The functions below a folder: where each is, and which others it names."""

    def __init__(self, folder):
        self.file = {}   # (file of a static function or "", name): its file
        self.calls = {}  # the same: the keys of the functions that it names
        bodies = {}
        for path in sorted([*folder.glob("**/*.c"), *folder.glob("**/*.h")]):
            own = path.relative_to(folder).as_posix()
            for head, name, _, body in FUNCTION.findall(NOISE.sub(" ", path.read_text())):
                inline = own.endswith(".h")
                key = (own if "static" in head and not inline else "", name)
                self.file[key] = own
                bodies[key] = (own, body)
        names = {name for _, name in self.file}
        for key, (own, body) in bodies.items():
            self.calls[key] = set()
            for before, name, after in USE.findall(body):
                if before or name not in names:
                    continue
                if after != "(" and not re.search(
                        r"[(,=?:]\s*" + name + r"\s*[),;:]|return " + name + ";", body):
                    continue
                for other in ((own, name), ("", name)):
                    if other in self.file:
                        self.calls[key].add(other)
                        break
        inline = [key for key, own in self.file.items() if own.endswith(".h")]
        for key in inline * 2:  # twice: one may call another
            for others in self.calls.values():
                if key in others:
                    others |= self.calls[key]
        for others in self.calls.values():
            others.difference_update(inline)
        for key in inline:
            del self.calls[key]

    def cycles(self, what, unit_of):
        """The calls between units that are in a cycle with each other."""
        graph = {}
        for key, others in self.calls.items():
            here = unit_of(self.file[key])
            for other in others:
                there = unit_of(self.file[other])
                if there != here:
                    graph.setdefault(here, {}).setdefault(there, []).append((key, other))
        for units in components(graph):
            yield f"{what} that call each other in a cycle: " + ", ".join(sorted(units))
            for here in sorted(units):
                for there in sorted(set(graph.get(here, {})) & units):
                    for key, other in sorted(graph[here][there]):
                        yield (f"  {self.file[key]}: {key[1]}() calls {other[1]}() in "
                               f"{self.file[other]}")


def components(graph):
    """The strongly connected components of more than one unit."""
    def reachable(start):
        seen, more = set(), [start]
        while more:
            for unit in graph.get(more.pop(), ()):
                if unit not in seen:
                    seen.add(unit)
                    more.append(unit)
        return seen

    ways = {unit: reachable(unit) for unit in graph}
    done = set()
    for unit in sorted(graph):
        if unit in ways[unit] and unit not in done:
            component = {other for other in ways[unit] if unit in ways.get(other, ())}
            done |= component
            yield component
