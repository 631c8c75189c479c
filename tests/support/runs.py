"""Cases that each run in a process of their own, some at once, as cases of tap()."""
import subprocess

from children import die_with_parent
from stand import Skip

SKIPPED = 77  # the exit code of a case that this machine cannot have; why is its last line


class Runs:
    """Processes of the cases, a few at a time, in order. Each is the command and its
    name; what it says is said when it is finished."""

    def __init__(self, command, names, at_once, limit_s):
        self.command, self.waiting, self.running = command, list(names), {}
        self.at_once, self.limit_s = at_once, limit_s
        self.more()

    def more(self):
        while self.waiting and len(self.running) < self.at_once:
            name = self.waiting.pop(0)
            self.running[name] = subprocess.Popen(  # pylint: disable=consider-using-with
                [*self.command, name], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                preexec_fn=die_with_parent)

    def finish(self, name):
        """As a case of tap()."""
        run = self.running[name]
        said, _ = run.communicate(timeout=self.limit_s)
        del self.running[name]
        self.more()
        for line in said.splitlines():
            print("# " + line.removeprefix("# "))
        if run.returncode == SKIPPED:
            raise Skip(said.splitlines()[-1].removeprefix("# "))
        if run.returncode != 0:
            raise AssertionError(f"{name} failed")

    def cases(self):
        """For tap(), in the order of their start."""
        names = [*self.running, *self.waiting]
        return [(name, lambda name=name: self.finish(name)) for name in names]
