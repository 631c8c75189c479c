"""Celery's beat in one process at a time, whatever its scheduler keeps and where.

    latchd_celery.beat_alone(Latchd("redis://localhost:5625"), name="celery-beat")  # in the module of the app

celery-redbeat's own lock is then not needed: redbeat_lock_key = None.
"""
from __future__ import annotations

import atexit
import contextlib
import os
import signal
from typing import Any

from celery.signals import beat_init

from latchd import Latchd, LatchdError

__all__ = ["beat_alone"]


def beat_alone(latchd: Latchd, name: str = "celery-beat", **options: Any) -> None:
    """Each beat waits until it holds the lock, and ends when it has lost it: a supervisor starts it again.

    options: those of Latchd.lock().
    """

    def end() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    def give_back(lock: Any) -> None:
        with contextlib.suppress(LatchdError):
            lock.release()

    def begin(sender: Any, **_: Any) -> None:
        lock = latchd.lock(name, on_lost=end, **options)
        try:
            token = lock.acquire()
        except Exception as error:  # of others Celery would only write a line, and beat
            raise SystemExit(f"beat has no lock: {error}") from error
        if token is None:
            raise SystemExit(f"beat has no lock: somebody else has {name}")
        atexit.register(give_back, lock)
        tick = sender.scheduler.tick

        def tick_if_held(*args: Any, **more: Any) -> Any:
            """After it stood still, the signal may come too late."""
            if lock.lost:
                raise SystemExit(f"beat has lost {name}")
            return tick(*args, **more)

        sender.scheduler.tick = tick_if_held

    beat_init.connect(begin, weak=False)
