"""A JVM that dies in the middle of several checks at once: one is started for all."""
import threading

from peers import DEADLINE_S


def kills_a_jvm(check):
    """Marks a check that calls world.doom.kill()."""
    check.kills = True
    return check


class Doom:
    """It is killed once each of so many checks has asked for it, or is over without."""

    def __init__(self, jvm, checks):
        self.jvm, self.missing = jvm, checks
        self.asked = set()
        self.changed = threading.Condition()

    def kill(self):
        """It is dead when this returns."""
        with self.changed:
            self.one_less()
            if not self.changed.wait_for(lambda: self.missing == 0, DEADLINE_S):
                raise TimeoutError(f"{self.missing} checks want the JVM to live")

    def leave(self):
        """The check of this thread is over."""
        with self.changed:
            if threading.get_ident() not in self.asked:
                self.one_less()

    def one_less(self):
        self.asked.add(threading.get_ident())
        self.missing -= 1
        if self.missing == 0:
            self.jvm.kill()
            self.changed.notify_all()
