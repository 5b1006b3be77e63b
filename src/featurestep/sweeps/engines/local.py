"""Engines of this machine: worker processes, replaced when they die, or this process alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator

from ...core.errors import CannotStart, EngineError
from ...core.threads import cores
from ...processes import Call, WorkerPool
from ..job import MOST_DEATHS, Job, Report, run_alone, run_job


def serial(jobs: Iterator[Job]) -> Generator[Report, None, None]:
    """In this process, with all the threads that BLAS has here, in the order of the jobs."""
    for job in jobs:
        yield run_job(job)


def processes(jobs: Iterator[Job], *, workers: int | None = None) -> Generator[Report, None, None]:
    """In so many workers, by default one for each core.

    A job whose worker died is tried again, and its killer given up.
    """
    pool = WorkerPool(run_alone, workers or cores())
    waiting: deque[Job] = deque()

    def supply() -> Call | None:
        job = waiting.popleft() if waiting else next(jobs, None)
        return None if job is None else Call((job,), job)

    try:
        for answer in pool.work(supply):
            if answer.kind == "done":
                yield answer.value
                continue
            outcome = after_death(answer.call.name, answer.value.how, answer.value.message)
            if isinstance(outcome, Report):
                yield outcome
            else:
                waiting.extend(outcome)
    except CannotStart as error:
        raise EngineError(str(error)) from None
    finally:
        pool.close()


def after_death(job: Job, reason: str, trace: str = "") -> list[Job] | Report:
    """What to try after one more worker has died of a job, or the report that gives a unit up.

    A death may be an accident, so the job is tried again as it is; a second death halves it,
    until the unit that kills its workers is alone.
    """
    deaths = job.deaths + 1
    if len(job.units) > 1 and deaths > 1:
        return job.halves(deaths - 1)
    if deaths < MOST_DEATHS:
        return [Job(job.units, deaths)]
    return job.lost(f"its worker died {deaths} times, the last time {reason}", trace)
