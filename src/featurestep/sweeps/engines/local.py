"""Engines of this machine: worker processes, replaced when they die, or this process alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from ...errors import CannotStart, EngineError
from ...processes import Answer, Call, Ending, Pool
from ...threads import cores
from ..job import Job, Report, run_job
from .base import MOST_DEATHS, run_alone


class Serial:
    """Computes in this process, with all the threads that BLAS has here."""

    def run(self, jobs: Iterator[Job]) -> Generator[Report, None, None]:
        """Reports in the order of the jobs."""
        for job in jobs:
            yield run_job(job)


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
        if len(self.job.units) > 1:
            if deaths < 2:
                return [Attempt(self.job, deaths)]
            return [Attempt(half, deaths - 1) for half in self.job.halves()]
        if deaths < MOST_DEATHS:
            return [Attempt(self.job, deaths)]
        return self.job.lost(f"its worker died {deaths} times, the last time {reason}", trace)


class Processes:
    """So many workers, by default one for each core."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or cores()

    def run(self, jobs: Iterator[Job]) -> Generator[Report, None, None]:
        """Reports as they come; a job whose worker died is tried again, and its killer given up."""
        pool = Pool(run_alone, self.workers)
        waiting: deque[Attempt] = deque()

        def supply() -> Call | None:
            if not waiting and (job := next(jobs, None)) is not None:
                waiting.append(Attempt(job))
            return Call((waiting[0].job,), waiting.popleft()) if waiting else None

        try:
            for answer in pool.work(supply):
                outcome = _outcome(answer)
                if isinstance(outcome, Report):
                    yield outcome
                else:
                    waiting.extend(outcome)
        except CannotStart as error:
            raise EngineError(str(error)) from None
        finally:
            pool.close()


def _outcome(answer: Answer) -> Report | list[Attempt]:
    """The report that came back, or what to try after a worker's death."""
    if answer.kind == "done":
        assert isinstance(answer.value, Report)
        return answer.value
    attempt, ending = answer.call.name, answer.value
    assert isinstance(attempt, Attempt)
    assert isinstance(ending, Ending)
    return attempt.after_death(ending.how, ending.words)
