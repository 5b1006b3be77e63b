"""Engines: where the units of a sweep are computed, behind one small interface.

`serial` is this process, `processes` are workers on this machine, replaced when they die, `dask`
is a cluster on this machine or a scheduler that is already running.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any

from ..core.checks import one_of, text, whole_number
from ..core.errors import CannotStart, EngineError, InvalidProblem, install_command
from ..core.threads import cores
from ..processes import Call, WorkerPool
from ..simulation import client_of
from .job import MAX_WORKER_DEATHS, Job, Report, run_alone, run_elsewhere, run_job
from .numerics import answers_of

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
