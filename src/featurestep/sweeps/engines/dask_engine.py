"""The Dask engine: a cluster of this machine, or a scheduler that is already running."""

from __future__ import annotations

import logging
import signal
import tempfile
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any

from ...errors import EngineError
from ...simulation.cluster import client_of
from ..job import Job, Report
from .base import GUARD, MOST_DEATHS, run_elsewhere

IN_FLIGHT = 512  # jobs that the scheduler holds at a time


def _distributed() -> Any:
    """The package, loaded when it is needed."""
    try:
        return import_module("distributed")
    except ImportError:
        text = "the engine dask needs its package: pip install 'featurestep[dask]'"
        raise EngineError(text) from None


class Dask:
    """So many workers on this machine, or those of the scheduler at an address."""

    def __init__(self, workers: int | None = None, scheduler: str | None = None) -> None:
        _distributed()  # refused before anything starts where it is not installed
        self.workers = workers
        self.scheduler = scheduler

    def run(self, jobs: Iterator[Job]) -> Generator[Report, None, None]:
        """Reports as they come.

        Dask tries a job again when its worker dies, and gives it up after several deaths, but it
        blames every job that the worker held. So those given up are tried again one at a time, with
        nothing beside them: whoever is given up then is to blame, and is halved down to one unit.
        """
        flight: dict[Any, Job] = {}
        suspects: deque[Job] = deque()
        with self._client() as client:
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

    def _client(self) -> Any:
        if self.scheduler is None:
            return _local_client(self.workers)
        return client_of(self.scheduler)


def _landing(
    client: Any, jobs: Iterator[Job], flight: dict[Any, Job]
) -> Iterator[tuple[Job, Report | None]]:
    """Jobs with their reports as they end; `flight` has those that the scheduler holds."""
    ended = _distributed().as_completed(loop=client.loop)

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
    return client.submit(run_elsewhere, job, job.task.numerics, pure=False)


def _report(future: Any, job: Job) -> Report | None:
    """What came back, in the end, or None from a job that was given up."""
    error = future.exception()
    if future.cancelled():
        raise EngineError("the Dask scheduler dropped a job: is it still running?")
    if error is None:
        report = future.result()
        assert isinstance(report, Report)
        return report
    if isinstance(error, _distributed().KilledWorker):
        return None
    return job.lost(f"{type(error).__name__}: {error}")


@contextmanager
def _local_client(workers: int | None) -> Iterator[Any]:
    """Single-threaded workers here, quiet, with their files in a folder that goes away."""
    distributed = _distributed()
    settings = {
        "distributed.scheduler.allowed-failures": MOST_DEATHS - 1,
        # Nannies restart their workers. A cluster that also counts the missing closes the nanny
        # of one that happens to be starting again just then, and in the end has none.
        "distributed.deploy.lost-worker-timeout": "1000 days",
    }
    with tempfile.TemporaryDirectory() as folder, import_module("dask").config.set(settings):
        try:
            cluster = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
                local_directory=folder,
            )
        except (RuntimeError, OSError) as error:
            raise EngineError(f"the local Dask cluster does not start: {error} {GUARD}") from None
        with cluster, distributed.Client(cluster, set_as_default=False) as client:
            client.run(_leave_interrupts)
            yield client


def _leave_interrupts() -> None:
    """On a worker of ours: Ctrl-C is the driver's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
