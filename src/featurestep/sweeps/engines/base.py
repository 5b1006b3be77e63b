"""The one interface of engines, and what their workers do, here or on another machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Generator, Iterator
from typing import Protocol

from ...errors import EngineError
from ...threads import one_thread, set_workers
from ..job import Job, Report, run_job

GUARD = (
    "A script that its own worker processes import, as those of a local Dask cluster do, "
    "must call sweep below `if __name__ == '__main__':`."
)
MOST_DEATHS = 3  # of workers, before a unit is to blame


class Engine(Protocol):
    """Computes jobs somewhere."""

    def run(self, jobs: Iterator[Job]) -> Generator[Report, None, None]:
        """Reports as they come in, in any order; together they cover every unit once.

        Closing the iterator stops the work.
        """


def refuse_importing_workers() -> None:
    """A worker that is importing the user's script must not start the sweep all over."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise EngineError(GUARD)


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
