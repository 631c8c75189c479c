#!/usr/bin/env python3
"""Celery's beat and APScheduler with what the helper for Python has for them: schedulers_run.py LATCHD BUILD_DIR.
Prints TAP."""
import importlib
import os
import pathlib
import signal
import sys
import tempfile
import threading
import types

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))

# pylint: disable=wrong-import-position
import kits  # noqa: E402
from children import DEADLINE_S, Child, until  # noqa: E402
from helpers_stage import Daemon, waiting  # noqa: E402
from servers import Rack, Redis  # noqa: E402
from tap_report import Report  # noqa: E402

APP = """
import celery, latchd, latchd_celery
app = celery.Celery("app", broker="memory://")
app.conf.update(redbeat_redis_url={redis!r}, redbeat_lock_key=None,
                beat_schedule={{"tick": {{"task": "tick", "schedule": 0.1}}}})
latchd_celery.beat_alone(latchd.Latchd({latchd!r}), name="beat", grace=0)
"""
SENT = "Sending due task tick"


class Beat(Child):
    def __init__(self, folder, paths, name):
        super().__init__(["env", "-C", folder, f"PYTHONPATH={':'.join(map(str, paths))}", sys.executable, "-m", "celery",
                          "-A", "app", "beat", "-S", "redbeat.RedBeatScheduler", "-l", "INFO", "--pidfile="],
                         folder / f"{name}.log")

    def beats(self):
        return SENT in self.log.read_text()


def one_beat_at_a_time(rack, redis, daemon, paths):
    """RedBeat's schedule is in Redis, and its lock, of which it has none, would have to be there, too."""
    (rack.folder / "app.py").write_text(APP.format(redis=redis.url, latchd=daemon.url))
    one = rack.keep(Beat(rack.folder, paths, "one"))
    until(lambda: one.alive() and one.beats(), "the first one beats")
    two = rack.keep(Beat(rack.folder, paths, "two"))
    waiting(daemon, "beat", 1)
    assert two.alive() and not two.beats()
    one.kill()
    until(lambda: two.alive() and two.beats(), "the second one goes on")
    assert daemon.ask("FORCEUNLOCK", "beat", "ANY") == 1
    two.killed = True  # it may have ended when its signal comes
    assert two.child.wait(DEADLINE_S) in (0, -signal.SIGTERM), two.said()


def without_latchd_nothing_beats(rack, redis, _daemon, paths):
    folder = rack.folder / "alone"
    folder.mkdir()
    (folder / "app.py").write_text(APP.format(redis=redis.url, latchd="redis://127.0.0.1:1").replace(
        "')", "', patience=0)"))
    beat = rack.keep(Beat(folder, paths, "beat"))
    beat.killed = True  # so that it may fail
    assert beat.child.wait(DEADLINE_S) == 1, beat.said()
    assert not beat.beats() and "beat has no lock" in beat.said(), beat.said()


def what_has_lost_its_lock_sends_nothing(_rack, _redis, daemon, _paths):
    ticks, told = [], []
    service = types.ModuleType("service")
    service.scheduler = types.SimpleNamespace(tick=lambda: ticks.append("tick"))
    before = signal.signal(signal.SIGTERM, lambda *_: told.append("end"))
    client = importlib.import_module("latchd").Latchd(daemon.url)
    importlib.import_module("latchd_celery").beat_alone(client, "here")
    importlib.import_module("celery.signals").beat_init.send(sender=service)
    service.scheduler.tick()
    assert daemon.ask("FORCEUNLOCK", "here", "ANY") == 1
    until(lambda: told, "it is told to end")
    signal.signal(signal.SIGTERM, before)
    try:
        service.scheduler.tick()
    except SystemExit:
        ticks.append("ended")
    assert ticks == ["tick", "ended"], ticks


class Process:
    """A scheduler with a client of its own, as another process has."""

    def __init__(self, daemon, **options):
        background = importlib.import_module("apscheduler.schedulers.background")
        self.runs, self.goes_on = [], threading.Event()
        client = importlib.import_module("latchd").Latchd(daemon.url)
        executor = importlib.import_module("latchd_apscheduler").LatchdExecutor(client, **options)
        self.scheduler = background.BackgroundScheduler(executors={"default": executor}, timezone="UTC")
        self.scheduler.start()

    def job(self):
        self.runs.append("begun")
        assert self.goes_on.wait(DEADLINE_S)
        self.runs.append("done")

    def add(self, name):
        """Once, and now, however long the lock takes."""
        self.scheduler.add_job(self.job, id=name, misfire_grace_time=None)

    def end(self):
        """Once it has run, or left out, all that it was to run."""
        until(lambda: not self.scheduler.get_jobs(), "all of it has begun")
        self.goes_on.set()
        self.scheduler.shutdown(wait=True)
        return self.runs


def one_process_runs_a_job(_rack, _redis, daemon, _paths):
    one, two, three = (Process(daemon, at_least=600) for _ in range(3))
    one.add("nightly")
    until(lambda: one.runs, "the job runs")
    two.add("nightly")
    assert not two.end(), "two ran it at once"
    assert one.end() == ["begun", "done"]
    three.add("nightly")  # which came late
    three.add("other")
    assert three.end() == ["begun", "done"]
    assert daemon.ask("LOCK", "apscheduler:other", "WAIT", 0) is None, "its name does not rest"


def a_run_is_let_in_after_its_time(_rack, _redis, daemon, _paths):
    for _ in range(2):
        process = Process(daemon, at_least=0.1, prefix="")
        process.add("often")
        assert process.end() == ["begun", "done"]
        token = daemon.ask("LOCK", "often", "WAIT", 60_000, "LEASE", 60_000)
        assert token, "it rests for longer"
        daemon.ask("UNLOCK", "often", "TOKEN", token)


CASES = [one_beat_at_a_time, without_latchd_nothing_beats, what_has_lost_its_lock_sends_nothing, one_process_runs_a_job,
         a_run_is_let_in_after_its_time]


def main():
    program, build = sys.argv[1:]
    report = Report()
    try:
        kit = kits.make("schedulers", pathlib.Path(build).resolve())
    except kits.Missing as why:
        print(f"1..0 # SKIP {why}")
        return 0
    paths = [kit, kits.CLIENTS / "python"]
    sys.path[:0] = map(str, paths)
    os.environ.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory(prefix="latchd-schedulers-") as folder, Rack(folder) as rack:
        redis = rack.keep(Redis(rack.folder)).ready()
        daemon = rack.keep(Daemon(program, rack.folder, redis.url, lease_s=30)).ready()
        for case in CASES:
            report.run(case.__name__.replace("_", " "), case, rack, redis, daemon, paths)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
