"""What is done to servers. kill(), pause() and resume() are those of Child; here is what
stands between them: a proxy, in a process of its own, as the network."""
import pathlib
import subprocess
import sys

from children import Child
from servers import PORTS

PROGRAM = pathlib.Path(__file__).resolve().parent / "proxy.py"


class Network(Child):
    """Ports that stand for others, and what passes there. Who comes is known by the
    process that it is, if that was named, or else by the address that it comes from."""

    def __init__(self, folder):
        self.ports = {}  # of the server: the one that stands for it
        super().__init__([sys.executable, PROGRAM], folder / "network.log",
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def order(self, *words):
        self.child.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        self.child.stdin.flush()
        if self.child.stdout.readline() != b"ok\n":
            raise RuntimeError(f"the proxy does not: {words}: {self.said()}")

    def stands_for(self, target):
        """A port that leads to this one."""
        if target not in self.ports:
            port = PORTS.take()
            self.order("route", port, target)
            self.ports[target] = port
        return self.ports[target]

    def moves(self, target, new):
        """What stands for `target` leads to `new` from now on; open connections stay."""
        self.order("move", self.ports[target], new)

    def introduce(self, daemons):
        """From now on their connections come from them by name; those that they have
        are ended, so that they make new ones."""
        for daemon in daemons:
            self.order("name", daemon.child.pid, daemon.label)
        for target in self.ports:
            self.between("127.0.0.1", target, "cut")
            self.between("*", target, "pass")

    def between(self, who, target, how, way="both"):
        """How it is from now on for those who come from `who` ("*": all, and
        former rules are forgotten)."""
        self.order("rule", self.ports[target], who, way, how)

    def stop(self):
        self.kill()
        self.child.stdin.close()
        self.child.stdout.close()
        self.output.close()
