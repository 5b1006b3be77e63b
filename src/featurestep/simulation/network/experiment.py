"""An experiment, checked and costed before a number is drawn, and the runner of its tasks.

Networks and spectra share both: what a task finds is all that they say for themselves.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from ...core.checks import whole_number
from ...core.display import gibibytes
from ...core.errors import InvalidProblem
from ...core.grid import Grid
from ...core.problem import Problem
from ...core.results import Progress, quantities_of
from ..cluster import Cluster
from ..draw import Draw, check_sizes
from ..setting import Setting
from ..streams import Streams, checked_seed, checked_streams
from .plan import GroupCost, Resources, default_test_size, group_cost, make_groups
from .run import Count, GroupRun, uncounted
from .step import Variant, parse_variants

GroupTask = tuple[int, slice]  # a group, and some of the seeds
MAX_BATCHED_SIZE = 2000  # samples and neurons up to which several draws are computed at once
MAX_DRAWS_AT_ONCE = 128
SEEDS = 8  # draws of every verb that simulates, unless it is told otherwise


@dataclass(frozen=True)
class Draws:
    """Which networks are drawn, and which variants of each are looked at."""

    seeds: tuple[int, ...]
    variants: tuple[Variant, ...]
    setting: Setting
    streams: Mapping[str, int]


def make_draws(
    *,
    seeds: int | Iterable[int],
    variants: Iterable[str],
    setting: Setting | None,
    streams: Mapping[str, int] | None = None,
    beside: tuple[str, ...] = (),
) -> Draws:
    """The checked draws; `beside` names variants that are no feature maps."""
    setting = Setting() if setting is None else setting
    if not isinstance(setting, Setting):
        raise InvalidProblem("setting", "must be a Setting", setting)
    parsed = parse_variants(variants, beside)
    return Draws(checked_seeds(seeds), parsed, setting, checked_streams(streams))


def checked_seeds(seeds: Any) -> tuple[int, ...]:
    """The seeds behind a number or a list, or InvalidProblem."""
    whole = isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool)
    if whole and seeds >= 1:
        return tuple(range(int(seeds)))
    if isinstance(seeds, (str, bytes)) or not isinstance(seeds, Iterable):
        raise InvalidProblem("seeds", "must be a number >= 1 or a list of seeds", seeds)
    listed = tuple(checked_seed("seeds", seed) for seed in seeds)
    if not listed or len(set(listed)) < len(listed):
        raise InvalidProblem("seeds", "must be distinct, and at least one", listed)
    return listed


def check_variants(problem: Problem, variants: tuple[Variant, ...]) -> None:
    """Refuse variants that describe one step where a problem has several."""
    if problem.steps == 1:
        return
    for variant in variants:
        if variant.degree or variant.base == "srf":
            rule = "must be trained, initial or gaussian with several steps"
            raise InvalidProblem("variants", rule, variant.name)


def checked_progress(progress: Progress | None) -> Progress | None:
    """Something to call, or None, or InvalidProblem."""
    if progress is not None and not callable(progress):
        raise InvalidProblem("progress", "must be callable", progress)
    return progress


@dataclass(frozen=True)
class Estimate:
    """What a simulation will take: the peak of its memory and its counted flops."""

    memory: int  # bytes of the device, beyond what libraries hold before the run
    flops: int  # over all seeds
    block_rows: int  # the largest block in use

    @staticmethod
    def of_all(runs: Sequence[Estimate]) -> Estimate:
        """Of runs one after the other: memory is their largest, flops their sum."""
        return Estimate(
            memory=max(each.memory for each in runs),
            flops=sum(each.flops for each in runs),
            block_rows=max(each.block_rows for each in runs),
        )

    def __str__(self) -> str:
        rows = f"blocks of {self.block_rows} rows"
        return f"{gibibytes(self.memory)} of memory, {self.flops:.3g} flops, {rows}"


@dataclass(frozen=True)
class Experiment:
    """Points, draws, resources and how each group of points will be run."""

    problem: Problem | Grid
    problems: tuple[Problem, ...]
    draws: Draws
    resources: Resources
    n_test: int
    groups: tuple[GroupCost, ...]

    @cached_property
    def quantities(self) -> tuple[str, ...]:
        """Names of what is measured."""
        return tuple(quantities_of(self.problem))

    @property
    def estimate(self) -> Estimate:
        """Of all groups and seeds; they run one after the other."""
        seeds = len(self.draws.seeds)
        return Estimate.of_all(
            [
                Estimate(self.batch(index) * cost.memory, seeds * cost.flops, cost.rows)
                for index, cost in enumerate(self.groups)
            ]
        )

    def run(self, index: int, seeds: slice, count: Count = uncounted) -> GroupRun:
        """A group on some of the seeds, ready to run."""
        return GroupRun(self.groups[index], self.draw(index, seeds), count)

    def draw(self, index: int, seeds: slice) -> Draw:
        """What is random for a group on some of the seeds; one alone has no axis of its own."""
        streams = [Streams(seed, self.draws.streams) for seed in self.draws.seeds[seeds]]
        source = self.resources.source(streams)
        return Draw(self.groups[index].group.problem, self.draws.setting, source, self.n_test)

    def batch(self, index: int) -> int:
        """How many draws of a group are computed at once: of small networks, on torch."""
        cost = self.groups[index]
        limits = self.resources.backend.limits
        room = limits.batch if self.resources.max_memory is None else self.resources.max_memory
        sizes = [size for p in cost.group.points.values() for size in (p.n, p.width, p.n_step)]
        if limits.batch == 0 or max(sizes) > MAX_BATCHED_SIZE or not cost.group.has_square_loss:
            return 1
        return max(1, min(len(self.draws.seeds), MAX_DRAWS_AT_ONCE, room // cost.memory))


def make_experiment(
    problem: Problem | Grid, draws: Draws, resources: Resources, *, n_test: int | None
) -> Experiment:
    """Check the other arguments, form the groups, and fit them to the memory."""
    if not isinstance(problem, (Problem, Grid)):
        raise InvalidProblem("problem", "must be a Problem or a grid made by vary", problem)
    quantities_of(problem)  # refused here, if at all
    problems = tuple(problem) if isinstance(problem, Grid) else (problem,)
    count = default_test_size(problems) if n_test is None else whole_number("n_test", n_test)
    if not problems[0].has_square_loss and resources.backend.precision == "float32":
        what = f"loss {problems[0].loss}" if problems[0].loss != "square" else "an intercept"
        raise InvalidProblem("dtype", f"must be float64 or mixed with {what}", "float32")
    for each in problems:
        check_variants(each, draws.variants)
        check_sizes(each, draws.setting, count)
    groups = make_groups(problems, draws.variants, count, draws.setting)
    return Experiment(
        problem=problem,
        problems=problems,
        draws=draws,
        resources=resources,
        n_test=count,
        groups=tuple(group_cost(group, resources) for group in groups),
    )


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
    def execute(experiment: Planned, task: GroupTask, count: Count) -> TaskOutcome:
        """The numbers of a task; `count` is told the flops as they are done."""

    @abstractmethod
    def shares_rows(self, index: int) -> bool:
        """True if the work of a group is sums over rows, which workers can share."""

    @abstractmethod
    def execute_by_rows(self, cluster: Cluster, task: GroupTask) -> TaskOutcome:
        """The numbers of one draw, its rows over all workers."""

    @abstractmethod
    def place(self, task: GroupTask, outcome: TaskOutcome) -> None:
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

    def _share(self, cluster: Cluster, listed: list[GroupTask]) -> dict[str, str]:
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

    def _end(self, task: GroupTask, outcome: TaskOutcome) -> None:
        """Keep what a task found, and count what it was promised."""
        index, seeds = task
        self.place(task, outcome)
        self.promised += (seeds.stop - seeds.start) * self.experiment.groups[index].flops
        if self.promised > self.done:
            self.saved = self.promised - self.done
            self.count(0)


def tasks(experiment: Experiment) -> Iterator[GroupTask]:
    """Every group on every draw; draws that are small go many at a time."""
    seeds = len(experiment.draws.seeds)
    for index in range(len(experiment.groups)):
        step = experiment.batch(index)
        for start in range(0, seeds, step):
            yield index, slice(start, min(seeds, start + step))


def _executed(execute: Any, experiment: Experiment, task: GroupTask) -> tuple[Any, int]:
    """What a task finds on a worker, and the flops it took."""
    done: list[int] = []
    return execute(experiment, task, done.append), sum(done)
