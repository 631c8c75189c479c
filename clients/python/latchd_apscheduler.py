"""APScheduler 3: of all processes that have a job, one runs it each time.

    executor = LatchdExecutor(Latchd("redis://localhost:5625"), at_least=30)
    scheduler = BackgroundScheduler(executors={"default": executor})
    scheduler.add_job(clean_up, "cron", hour=3, id="clean-up")
"""
from __future__ import annotations

from typing import Any, Optional

from apscheduler.executors.base import run_job
from apscheduler.executors.pool import ThreadPoolExecutor

from latchd import Latchd, LockTimeout

__all__ = ["LatchdExecutor"]


class LatchdExecutor(ThreadPoolExecutor):
    """The lock of a job has its ID as name, after `prefix`: give each job an ID that is the same in all processes.

    at_least: seconds from the begin of a run in which no other process begins it: more than clocks and threads differ,
    and less than the job's interval. A run that another process has is left out. options: others of Latchd.lock().
    """

    def __init__(self, latchd: Latchd, *, at_least: float, prefix: str = "apscheduler:", max_workers: int = 10,
                 pool_kwargs: Optional[dict[str, Any]] = None, **options: Any) -> None:
        super().__init__(max_workers, pool_kwargs)
        self._latchd, self._prefix, self._options = latchd, prefix, {**options, "at_least": at_least}

    def _do_submit_job(self, job: Any, run_times: Any) -> None:
        def done(future: Any) -> None:
            error = future.exception()
            if error is None:
                self._run_job_success(job.id, future.result())
            else:
                self._run_job_error(job.id, error, error.__traceback__)

        self._pool.submit(self._run, job, run_times).add_done_callback(done)

    def _run(self, job: Any, run_times: Any) -> Any:
        """The events of the runs. A job's own error is one of them."""
        try:
            with self._latchd.lock(self._prefix + job.id, wait=0, **self._options):
                return run_job(job, job._jobstore_alias, run_times, self._logger.name)
        except LockTimeout:
            return []
