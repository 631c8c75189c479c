"""TAP, written line by line; the plan comes last."""
import threading


class Report:
    """Of cases that run beside each other."""

    def __init__(self):
        self.lock, self.count, self.failed = threading.Lock(), 0, 0

    def line(self, good, text, why=""):
        with self.lock:
            self.count += 1
            self.failed += not good
            for line in why.strip().splitlines()[-40:]:
                print("#", line)
            print("ok" if good else "not ok", self.count, "-", text, flush=True)

    def run(self, name, case, *words):
        try:
            case(*words)
        except Exception as error:  # pylint: disable=broad-except
            self.line(False, name, f"{type(error).__name__}: {error}")
        else:
            self.line(True, name)

    def end(self):
        print(f"1..{self.count}", flush=True)
        return 1 if self.failed else 0
