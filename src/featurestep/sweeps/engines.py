"""Engines: where the units of a sweep are computed, behind one small interface.

`serial` is this process, `processes` are workers on this machine, replaced when they die, `dask`
is a cluster on this machine or a scheduler that is already running. Jobs are bundles of units on
their way to a worker; reports come back.
"""

from __future__ import annotations

import logging
import multiprocessing
import platform
import signal
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import Any, Literal, NamedTuple

from ..core.checks import one_of, text, whole_number
from ..core.display import json_value
from ..core.errors import (
    CannotStart,
    EngineError,
    FeaturestepError,
    InvalidProblem,
    install_command,
)
from ..core.threads import blas_libraries, cores, one_thread, set_workers
from ..processes import Call, WorkerPool
from ..simulation import InsufficientMemory, client_of
from .identity import TOLERANCE, Answers, answers_of, difference
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


# Takes jobs and yields reports as they come in, in any order; together they cover every unit once.
# Closing the generator stops the work.
Engine = Callable[[Iterator[Job]], Generator[Report, None, None]]
ENGINES = ("processes", "serial", "dask")
MAX_WORKERS = 4096
GUARD = (
    "A script that its own worker processes import, as those of a local Dask cluster do, "
    "must call sweep below `if __name__ == '__main__':`."
)
MAX_JOBS_SUBMITTED = 512  # jobs that the scheduler holds at a time


@dataclass(frozen=True)
class EngineChoice:
    """Which engine, of how many workers; a scheduler's address goes with Dask."""

    kind: str = "processes"
    workers: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        one_of("kind", self.kind, ENGINES)
        if self.workers is not None:
            object.__setattr__(self, "workers", whole_number("workers", self.workers))
            if self.workers > MAX_WORKERS:
                raise InvalidProblem("workers", f"must be at most {MAX_WORKERS}", self.workers)
            if self.kind == "serial":
                raise InvalidProblem("workers", "needs the engine processes or dask", self.workers)
        if self.scheduler is not None:
            text("scheduler", self.scheduler)
            if self.kind != "dask":
                raise InvalidProblem("scheduler", "needs the engine dask", self.scheduler)
            if self.workers is not None:
                rule = "must not be given with a scheduler, which has its own"
                raise InvalidProblem("workers", rule, self.workers)

    def make(self) -> Engine:
        """The engine itself; nothing is started yet."""
        if self.kind == "serial":
            return serial
        if self.kind == "processes":
            return partial(processes, workers=self.workers)
        distributed()  # refused before anything starts where it is not installed
        return partial(dask, workers=self.workers, scheduler=self.scheduler)


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
    if deaths < MAX_WORKER_DEATHS:
        return [Job(job.units, deaths)]
    return job.lost(f"its worker died {deaths} times, the last time {reason}", trace)


def distributed() -> Any:
    """The package, loaded when it is needed."""
    try:
        return import_module("distributed")
    except ImportError:
        text = f"the engine dask needs its package: {install_command('dask')}"
        raise EngineError(text) from None


def refuse_importing_workers() -> None:
    """A worker that is importing the user's script must not start the sweep all over."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise EngineError(GUARD)


def dask(
    jobs: Iterator[Job], *, workers: int | None = None, scheduler: str | None = None
) -> Generator[Report, None, None]:
    """In so many workers on this machine, or in those of the scheduler at an address.

    Dask tries a job again when its worker dies, and gives it up after several deaths, but it
    blames every job that the worker held. So those given up are tried again one at a time, with
    nothing beside them: whoever is given up then is to blame, and is halved down to one unit.
    """
    flight: dict[Any, Job] = {}
    suspects: deque[Job] = deque()
    with _local_client(workers) if scheduler is None else client_of(scheduler) as client:
        try:
            for job, report in _landing(client, jobs, flight):
                if report is None:
                    suspects.append(job)
                else:
                    yield report
        finally:
            for future in flight:
                future.cancel()
        while suspects:
            job = suspects.popleft()
            report = _report(_submitted(client, job), job)
            if report is None and len(job.units) > 1:
                suspects.extend(job.halves())
            else:
                yield report or job.lost("its worker died several times")


def _landing(
    client: Any, jobs: Iterator[Job], flight: dict[Any, Job]
) -> Iterator[tuple[Job, Report | None]]:
    """Jobs with their reports as they end; `flight` has those that the scheduler holds."""
    ended = distributed().as_completed(loop=client.loop)

    def top_up() -> None:
        for job in islice(jobs, MAX_JOBS_SUBMITTED - len(flight)):
            future = _submitted(client, job)
            flight[future] = job
            ended.add(future)

    top_up()
    for future in ended:
        job = flight.pop(future)
        top_up()
        yield job, _report(future, job)


def _submitted(client: Any, job: Job) -> Any:
    return client.submit(run_elsewhere, job, answers_of(job.task), pure=False)


def _report(future: Any, job: Job) -> Report | None:
    """What came back, in the end, or None from a job that was given up."""
    error = future.exception()
    if future.cancelled():
        raise EngineError("the Dask scheduler dropped a job: is it still running?")
    if error is None:
        report = future.result()
        assert isinstance(report, Report)
        return report
    if isinstance(error, distributed().KilledWorker):
        return None
    return job.lost(f"{type(error).__name__}: {error}")


@contextmanager
def _local_client(workers: int | None) -> Iterator[Any]:
    """Single-threaded workers here, quiet, with their files in a folder that goes away."""
    settings = {
        "distributed.scheduler.allowed-failures": MAX_WORKER_DEATHS - 1,
        # Nannies restart their workers. A cluster that also counts the missing closes the nanny
        # of one that happens to be starting again just then, and in the end has none.
        "distributed.deploy.lost-worker-timeout": "1000 days",
    }
    with tempfile.TemporaryDirectory() as folder, import_module("dask").config.set(settings):
        try:
            cluster = distributed().LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
                local_directory=folder,
            )
        except (RuntimeError, OSError) as error:
            raise EngineError(f"the local Dask cluster does not start: {error} {GUARD}") from None
        with cluster, distributed().Client(cluster, set_as_default=False) as client:
            client.run(_leave_interrupts)
            yield client


def _leave_interrupts() -> None:
    """On a worker of ours: Ctrl-C is the driver's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
