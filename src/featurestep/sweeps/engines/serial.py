"""The serial engine: everything in this process, one job after the other."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from ..job import Job, Report, run_job


class Serial:
    """Computes in this process, with all the threads that BLAS has here."""

    def run(self, jobs: Iterator[Job]) -> Generator[Report, None, None]:
        """Reports in the order of the jobs."""
        for job in jobs:
            yield run_job(job)
