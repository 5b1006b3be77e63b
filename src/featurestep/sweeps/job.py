"""Jobs: bundles of units on their way to a worker, and the reports that come back."""

from __future__ import annotations

import platform
import time
import traceback
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Literal, NamedTuple

from ..core.display import json_value
from ..core.errors import FeaturestepError
from ..core.threads import blas_libraries, one_thread, set_workers
from ..simulation import InsufficientMemory
from .numerics import TOLERANCE, Answers, answers_of, difference
from .tasks import Task, Unit, Values

MAX_WORKER_DEATHS = 3  # of workers, before a unit is to blame
Status = Literal["ok", "refused", "failed"]


class Outcome(NamedTuple):
    """What became of one unit.

    `refused`: the theory or the simulation has no number here, and says why. `failed`: something
    went wrong that another try may mend.
    """

    status: Status
    values: Values | None = None
    error: str = ""
    trace: str = ""


@dataclass(frozen=True)
class Job:
    """Units of one task that are computed together, by one worker."""

    units: tuple[Unit, ...]
    deaths: int = 0  # of workers that had it

    @property
    def task(self) -> Task:
        """What to do."""
        return self.units[0].task

    @property
    def keys(self) -> tuple[bytes, ...]:
        """Those of its units."""
        return tuple(unit.key for unit in self.units)

    def halves(self, deaths: int = 0) -> list[Job]:
        """The same units as two jobs."""
        middle = len(self.units) // 2
        return [Job(self.units[:middle], deaths), Job(self.units[middle:], deaths)]

    def lost(self, reason: str, trace: str = "") -> Report:
        """The report of a job that no worker survives."""
        outcome = Outcome("failed", error=reason, trace=trace)
        return Report(self.keys, [outcome] * len(self.units), 0.0, origin())


@dataclass(frozen=True)
class Report:
    """The outcomes of a job's units, how long they took together, and where."""

    keys: tuple[bytes, ...]
    outcomes: list[Outcome]
    seconds: float
    origin: dict[str, str]
    finished: float = field(default_factory=time.time)


def run_job(job: Job) -> Report:
    """Compute a job here and now; whatever a unit raises becomes its outcome."""
    started = time.perf_counter()
    outcomes = _outcomes(job)
    return Report(job.keys, outcomes, time.perf_counter() - started, origin())


def run_alone(job: Job) -> Report:
    """Compute a job with one thread, beside other workers on the same machine."""
    set_workers(1)
    with one_thread():
        return run_job(job)


def run_elsewhere(job: Job, answers: Answers) -> Report:
    """The same on a machine of its own installation, if that has the driver's probe answers."""
    gap = difference(answers_of(job.task), answers)
    if gap > TOLERANCE:
        told = f"its check values differ from the driver's by up to {gap:.1e}"
        return job.lost(f"install the driver's version of featurestep on the worker: {told}")
    return run_alone(job)


def _outcomes(job: Job) -> list[Outcome]:
    """Units that share work fail together, so a failing bundle is halved down to its culprits."""
    try:
        found = job.task.compute(job.units)
    except Exception as error:
        if len(job.units) == 1:
            return [_failure(error)]
        return [outcome for half in job.halves() for outcome in _outcomes(half)]
    return [
        # numbers that are not finite become None: strict JSON has no word for them
        _failure(each) if isinstance(each, Exception) else Outcome("ok", json_value(each))
        for each in found
    ]


def _failure(error: Exception) -> Outcome:
    refused = isinstance(error, FeaturestepError) and not isinstance(error, InsufficientMemory)
    text = " ".join(str(error).split())
    name = type(error).__name__
    trace = "".join(traceback.format_exception(error))
    if refused:
        return Outcome("refused", error=text, trace=trace)
    return Outcome("failed", error=f"{name}: {text}" if text else name, trace=trace)


def installed(name: str, otherwise: str = "unknown") -> str:
    """The version of a package, or what to say where there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return otherwise


@cache
def origin() -> dict[str, str]:
    """What computed: host, versions and BLAS of this process."""
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "python": platform.python_version(),
        **{name: installed(name) for name in ("featurestep", "numpy", "scipy")},
        "blas": blas_libraries(),
    }
