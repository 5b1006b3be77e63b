"""What a worker does, on this machine or on another: one job, with one thread."""

from __future__ import annotations

from ...threads import one_thread, set_workers
from ..job import Job, Report, run_job


def run_alone(job: Job) -> Report:
    """Compute a job with one thread, beside other workers on the same machine."""
    set_workers(1)
    with one_thread():
        return run_job(job)


def run_elsewhere(job: Job, numerics: str) -> Report:
    """The same on a machine of its own installation, if that computes the driver's numbers."""
    own = job.task.numerics
    if own != numerics:
        rule = "install the featurestep of the driver there"
        return job.lost(f"its worker has numerics {own}, the driver {numerics}: {rule}")
    return run_alone(job)
