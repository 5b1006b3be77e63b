"""Runs an experiment: every group of points on every draw, here or on a cluster, with progress."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from ..core.results import Progress
from .cluster import Cluster
from .network.by_rows import Task
from .network.experiment import Experiment
from .network.run import Count

Planned = TypeVar("Planned", bound=Experiment)
TaskOutcome = TypeVar("TaskOutcome")  # the numbers of a task: a group on some of the seeds
Found = TypeVar("Found")


class Runner(ABC, Generic[Planned, TaskOutcome, Found]):
    """Runs the tasks of an experiment, and counts flops; a subclass says what a task finds."""

    def __init__(self, experiment: Planned, progress: Progress | None) -> None:
        self.experiment = experiment
        self.progress = progress
        self.total = experiment.estimate.flops
        self.done = 0
        self.promised = 0  # for the tasks that have ended
        self.saved = 0  # promised, and not needed

    @staticmethod
    @abstractmethod
    def execute(experiment: Planned, task: Task, count: Count) -> TaskOutcome:
        """The numbers of a task; `count` is told the flops as they are done."""

    @abstractmethod
    def shares_rows(self, index: int) -> bool:
        """True if the work of a group is sums over rows, which workers can share."""

    @abstractmethod
    def execute_by_rows(self, cluster: Cluster, task: Task) -> TaskOutcome:
        """The numbers of one draw, its rows over all workers."""

    @abstractmethod
    def place(self, task: Task, outcome: TaskOutcome) -> None:
        """Keep the numbers of a task."""

    @abstractmethod
    def result(self, wall_time: float, where: Mapping[str, str]) -> Found:
        """What was found; `where` says on which cluster, if on any."""

    def run(self, cluster: Cluster | None = None) -> Found:
        """All of it, one task after the other or on a cluster."""
        started, where = time.perf_counter(), dict[str, str]()
        listed = list(tasks(self.experiment))
        if cluster is not None:
            where = self._share(cluster, listed)
        else:
            for task in listed:
                self._end(task, self.execute(self.experiment, task, self.count))
        return self.result(time.perf_counter() - started, where)

    def _share(self, cluster: Cluster, listed: list[Task]) -> dict[str, str]:
        """Draws to workers, or one draw's rows where draws are few; the record of it."""
        few = len(listed) < cluster.workers
        by_rows = [task for task in listed if few and self.shares_rows(task[0])]
        whole = [task for task in listed if task not in by_rows]
        futures = {
            cluster.submit(_executed, self.execute, self.experiment, task): task for task in whole
        }
        for future in cluster.ended(list(futures)):
            outcome, flops = cluster.result(future)
            self.count(flops)
            self._end(futures[future], outcome)
        for index, seeds in by_rows:
            for seed in range(seeds.start, seeds.stop):
                task = (index, slice(seed, seed + 1))
                self._end(task, self.execute_by_rows(cluster, task))
        return cluster.record("rows" if by_rows else "draws")

    def count(self, flops: int) -> None:
        """So many more are done."""
        self.done += flops
        if self.progress is not None:
            self.progress(self.done + self.saved, self.total)

    def _end(self, task: Task, outcome: TaskOutcome) -> None:
        """Keep what a task found, and count what it was promised."""
        index, seeds = task
        self.place(task, outcome)
        self.promised += (seeds.stop - seeds.start) * self.experiment.groups[index].flops
        if self.promised > self.done:
            self.saved = self.promised - self.done
            self.count(0)


def tasks(experiment: Experiment) -> Iterator[Task]:
    """Every group on every draw; draws that are small go many at a time."""
    seeds = len(experiment.draws.seeds)
    for index in range(len(experiment.groups)):
        step = experiment.batch(index)
        for start in range(0, seeds, step):
            yield index, slice(start, min(seeds, start + step))


def _executed(execute: Any, experiment: Experiment, task: Task) -> tuple[Any, int]:
    """What a task finds on a worker, and the flops it took."""
    done: list[int] = []
    return execute(experiment, task, done.append), sum(done)
