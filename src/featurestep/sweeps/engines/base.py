"""The one interface of engines, and what becomes of a job whose worker died."""

from __future__ import annotations

import multiprocessing
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Protocol

from ...errors import EngineError
from ..job import Job, Report

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


@dataclass(frozen=True)
class Attempt:
    """A job, and how many workers have died of it."""

    job: Job
    deaths: int = 0

    def after_death(self, reason: str, trace: str = "") -> list[Attempt] | Report:
        """What to try next, or the report that gives a unit up.

        A death may be an accident, so the job is tried again as it is; a second death halves it,
        until the unit that kills its workers is alone.
        """
        deaths = self.deaths + 1
        if len(self.job.work) > 1:
            if deaths < 2:
                return [Attempt(self.job, deaths)]
            return [Attempt(half, deaths - 1) for half in self.job.halves()]
        if deaths < MOST_DEATHS:
            return [Attempt(self.job, deaths)]
        return self.job.lost(f"its worker died {deaths} times, the last time {reason}", trace)
