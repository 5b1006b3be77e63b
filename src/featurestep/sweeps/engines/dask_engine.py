"""The Dask engine: a cluster of this machine, or a scheduler that is already running."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import tempfile
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any

from ...core.errors import EngineError
from ...simulation.cluster import client_of
from ..job import MOST_DEATHS, Job, Report, run_elsewhere
from ..numerics import answers_of

GUARD = (
    "A script that its own worker processes import, as those of a local Dask cluster do, "
    "must call sweep below `if __name__ == '__main__':`."
)
IN_FLIGHT = 512  # jobs that the scheduler holds at a time


def distributed() -> Any:
    """The package, loaded when it is needed."""
    try:
        return import_module("distributed")
    except ImportError:
        text = "the engine dask needs its package: pip install 'featurestep[dask]'"
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
        for job in islice(jobs, IN_FLIGHT - len(flight)):
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
        "distributed.scheduler.allowed-failures": MOST_DEATHS - 1,
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
