"""The default engine: worker processes of this machine, replaced when they die."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator

from ...errors import CannotStart, EngineError
from ...processes import Answer, Call, Ending, Pool
from ...threads import cores
from ..job import Job, Report
from .alone import run_alone
from .base import Attempt


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
