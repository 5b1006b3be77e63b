"""The Dask engine: a cluster of this machine, or a scheduler that is already running."""

from __future__ import annotations

import logging
import signal
import tempfile
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from itertools import islice
from typing import Any

from ...errors import EngineError
from ...simulation.cluster import ClusterError, client_of
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
        """Reports as they come; Dask itself tries jobs of dead workers again."""
        with self._client() as client:
            flight = _Flight(client)
            try:
                yield from flight.reports(jobs)
            finally:
                flight.cancel()

    @contextmanager
    def _client(self) -> Iterator[Any]:
        with ExitStack() as stack:
            if self.scheduler is None:
                cluster = stack.enter_context(_local_cluster(self.workers))
                client = stack.enter_context(_distributed().Client(cluster, set_as_default=False))
                client.run(_leave_interrupts)
                yield client
            else:
                yield stack.enter_context(_connected(self.scheduler))


class _Flight:
    """Jobs on a scheduler.

    Dask tries a job again when its worker dies, and gives it up after several deaths, but it
    blames every job that the worker held. So those given up are tried again one at a time, with
    nothing beside them: whoever is given up then is to blame, and is halved down to one unit.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._jobs: dict[Any, Job] = {}
        self._suspects: deque[Job] = deque()

    def reports(self, jobs: Iterator[Job]) -> Iterator[Report]:
        for future, job in self._landing(jobs, IN_FLIGHT):
            report = self._report(future, job)
            if report is None:
                self._suspects.append(job)
            else:
                yield report
        while self._suspects:
            alone = iter([self._suspects.popleft()])
            for future, job in self._landing(alone, 1):
                report = self._report(future, job)
                if report is None and len(job.units) > 1:
                    self._suspects.extend(job.halves())
                else:
                    yield report or job.lost("its worker died several times")

    def _landing(self, jobs: Iterator[Job], most: int) -> Iterator[tuple[Any, Job]]:
        """Jobs with their futures as they end, so many at a time."""
        ended = _distributed().as_completed(loop=self._client.loop)
        for job in islice(jobs, most):
            self._submit(job, ended)
        for future in ended:
            landed = self._jobs.pop(future)
            for job in islice(jobs, most - len(self._jobs)):
                self._submit(job, ended)
            yield future, landed

    def _submit(self, job: Job, ended: Any) -> None:
        future = self._client.submit(run_elsewhere, job, job.task.numerics, pure=False)
        self._jobs[future] = job
        ended.add(future)

    def _report(self, future: Any, job: Job) -> Report | None:
        """What came back, or None from a job that was given up."""
        if future.cancelled():
            raise EngineError("the Dask scheduler dropped a job: is it still running?")
        error = future.exception()
        if error is None:
            report = future.result()
            assert isinstance(report, Report)
            return report
        if isinstance(error, _distributed().KilledWorker):
            return None
        return job.lost(f"{type(error).__name__}: {error}")

    def cancel(self) -> None:
        for future in self._jobs:
            future.cancel()


@contextmanager
def _local_cluster(workers: int | None) -> Iterator[Any]:
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
        with cluster:
            yield cluster


def _leave_interrupts() -> None:
    """On a worker of ours: Ctrl-C is the driver's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _connected(scheduler: str) -> Any:
    """A client of a scheduler, by its address or by the file it wrote."""
    try:
        return client_of(scheduler)
    except ClusterError as error:
        raise EngineError(str(error)) from None
