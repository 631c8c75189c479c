"""Programs that take locks as they are told, a line each: WHAT KEY WORD... They answer with lines
that begin with the key of what they answer."""
import itertools
import queue
import subprocess
import threading

from children import Child

HEARS_S = 60  # how long anything may take on a busy machine


class Agent(Child):
    """Such a program; what it says is sorted by the key that a request came with."""

    serial = itertools.count(1)

    def __init__(self, folder, command):
        super().__init__(command, folder / f"agent-{next(self.serial)}.log",
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.heard, self.serial_key = {}, itertools.count(1)
        threading.Thread(target=self.read, args=(self.child.stdout,), daemon=True).start()

    def read(self, out):
        for line in out:
            key, *words = line.decode().split()
            self.queue(key).put(words)

    def queue(self, key):
        return self.heard.setdefault(key, queue.Queue())

    def tell(self, what, *words, key=None):
        """The key that its answers come with."""
        key = key or f"k{next(self.serial_key)}"
        self.queue(key)
        self.child.stdin.write(" ".join(map(str, (what, key, *words))).encode() + b"\n")
        self.child.stdin.flush()
        return key

    def hear(self, key, within_s=HEARS_S):
        try:
            return self.heard[key].get(timeout=within_s)
        except queue.Empty:
            raise AssertionError(f"nothing about {key} in {within_s} s: {self.said()}") from None

    def expect(self, key, *wanted, within_s=HEARS_S):
        """The rest of its next answer, which is this."""
        words = self.hear(key, within_s)
        assert words[:len(wanted)] == list(wanted), f"{key}: {words}, not {wanted}: {self.said()}"
        return words[len(wanted):]

    def stop(self):
        self.kill()
        self.child.stdin.close()
        self.output.close()
