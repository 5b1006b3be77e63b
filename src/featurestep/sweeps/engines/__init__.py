"""Engines: where the units of a sweep are computed, behind one small interface."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial

from ...core.checks import one_of, text, whole_number
from ...core.errors import InvalidProblem
from ..job import Job, Report
from .dask_engine import dask, distributed, refuse_importing_workers
from .local import processes, serial

__all__ = ["ENGINES", "Engine", "EngineChoice", "refuse_importing_workers"]

# Takes jobs and yields reports as they come in, in any order; together they cover every unit once.
# Closing the generator stops the work.
Engine = Callable[[Iterator[Job]], Generator[Report, None, None]]
ENGINES = ("processes", "serial", "dask")
MAX_WORKERS = 4096


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
                raise InvalidProblem("workers", "goes with processes or dask", self.workers)
        if self.scheduler is not None:
            text("scheduler", self.scheduler)
            if self.kind != "dask":
                raise InvalidProblem("scheduler", "goes with the engine dask", self.scheduler)
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
