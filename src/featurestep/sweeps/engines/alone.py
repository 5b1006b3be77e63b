"""What a worker does, on this machine or on another: one job, with one thread."""

from __future__ import annotations

from ...threads import one_thread, set_workers
from ..job import Job, Report, run_job


def run_alone(job: Job) -> Report:
    """Compute a job with one thread, beside other workers on the same machine."""
    set_workers(1)
    with one_thread():
        return run_job(job)
