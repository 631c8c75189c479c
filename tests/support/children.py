"""Processes that tests start: they end with the test, whatever ends that."""
import ctypes
import pathlib
import signal
import subprocess
import time

DEADLINE_S = 60
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def die_with_parent():
    """For preexec_fn. The parent is the thread that starts it: to be one that stays."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def until(condition, what, within_s=DEADLINE_S, every_s=0.002):
    """Waits for something that happens elsewhere."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(every_s)
    raise TimeoutError(f"not within {within_s} s: {what}")


class Child:
    """A process. It is to end well when it is stopped, unless somebody killed it."""

    def __init__(self, command, log, **how):
        self.name = pathlib.Path(str(command[0])).name
        self.command, self.log, self.how = list(map(str, command)), log, how
        self.output = None
        self.launch()

    def launch(self):
        """Also again, after it ended."""
        self.killed = self.paused = False
        if self.output is not None:
            self.output.close()
        self.output = open(self.log, "ab")  # pylint: disable=consider-using-with
        self.child = subprocess.Popen(  # pylint: disable=consider-using-with
            self.command, stderr=self.output, preexec_fn=die_with_parent,
            **{"stdout": self.output, "stdin": subprocess.DEVNULL, **self.how})

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.stop()

    def said(self):
        return self.log.read_text(errors="replace")[-4000:]

    def alive(self):
        if self.child.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self.child.returncode}:\n{self.said()}")
        return True

    def kill(self):
        self.killed = True
        self.child.kill()
        self.child.wait()

    def pause(self):
        """Until resume() it stands still; after this call it does."""
        self.paused = True
        self.child.send_signal(signal.SIGSTOP)
        status = pathlib.Path(f"/proc/{self.child.pid}/stat")
        until(lambda: status.read_text().rpartition(")")[2].split()[0] == "T",
              f"{self.name} stands still")

    def resume(self):
        self.paused = False
        self.child.send_signal(signal.SIGCONT)

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        if self.paused:  # SIGCONT makes LeakSanitizer hang that is at its work already
            self.resume()

    def stop(self):
        if self.child.poll() is None:
            self.end()
            try:
                self.child.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise RuntimeError(f"{self.name} does not end:\n{self.said()}") from None
        self.output.close()
        if self.child.returncode != 0 and not self.killed:
            raise RuntimeError(f"{self.name} ended with {self.child.returncode}:\n{self.said()}")
