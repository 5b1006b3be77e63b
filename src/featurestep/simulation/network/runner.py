"""Runs a whole experiment: every group of points on every draw, small ones many at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ...core.errors import FeaturestepError
from ...core.grid import as_grid
from ...core.results import Progress
from ...core.types import FloatArray
from ..arrays.backend import make_backend
from ..cluster import Cluster
from .by_rows import Task, outcome_by_rows, shares_rows
from .experiment import Experiment, make_experiment
from .result import ALIGNMENT, Simulation
from .run import Outcome


class Runner:
    """Runs the groups of an experiment and puts their numbers in place."""

    def __init__(self, experiment: Experiment, progress: Progress | None) -> None:
        self.experiment = experiment
        self.progress = progress
        self.total = experiment.estimate.flops
        self.done = 0
        draws = experiment.draws
        points, seeds = len(experiment.problems), len(draws.seeds)
        steps = max(problem.steps for problem in experiment.problems)
        shape = (len(draws.variants), points, seeds)
        self.values: dict[str, FloatArray] = {
            name: np.empty(shape) for name in experiment.quantities
        }
        if any(variant.base == "trained" for variant in draws.variants):
            most = max(draws.setting.directions(problem) for problem in experiment.problems)
            each = [f"energy_{i + 1}" for i in range(most) if most > 1]
            for name in (*ALIGNMENT, *each):
                self.values[name] = np.zeros((points, seeds, steps))

    def run(self, cluster: Cluster | None = None) -> Simulation:
        """All of it, one task after the other or on a cluster."""
        started, where = time.perf_counter(), dict[str, str]()
        listed = list(tasks(self.experiment))
        if cluster is not None:
            where = self._share(cluster, listed)
        else:
            for task in listed:
                self.place(task, self.experiment.run(*task, self.count).execute())
        return self.result(time.perf_counter() - started, where)

    def _share(self, cluster: Cluster, listed: list[Task]) -> dict[str, str]:
        """Draws to workers, or one draw's rows where draws are few; the record of it."""
        few = len(listed) < cluster.workers
        by_rows = [task for task in listed if few and shares_rows(self.experiment, task[0])]
        whole = [task for task in listed if task not in by_rows]
        futures = {cluster.submit(_run_lightly, self.experiment, task): task for task in whole}
        for future in cluster.ended(list(futures)):
            index, seeds = futures[future]
            self.place(futures[future], cluster.result(future))
            self.count((seeds.stop - seeds.start) * self.experiment.groups[index].flops)
        for index, seeds in by_rows:
            for seed in range(seeds.start, seeds.stop):
                task = (index, slice(seed, seed + 1))
                self.place(task, outcome_by_rows(cluster, self.experiment, task, self.count))
        return cluster.record("rows" if by_rows else "draws")

    def count(self, flops: int) -> None:
        """So many more are done."""
        self.done += flops
        if self.progress is not None:
            self.progress(self.done, self.total)

    def place(self, task: Task, outcome: Outcome) -> None:
        """The numbers of a task."""
        index, seeds = task
        group = self.experiment.groups[index].group
        for key, found in outcome.solutions.items():
            moved = outcome.alignment.get(key.move, [])
            names = self.values.keys() & moved[0].keys() if moved else ()
            paths = {name: np.stack([step[name] for step in moved], axis=-1) for name in names}
            for solution in found:
                for variant, point in group.fits[key][solution.fit]:
                    for name in self.experiment.quantities:
                        self.values[name][variant, point, seeds] = getattr(solution, name)
                    for name, path in paths.items():
                        self.values[name][point, seeds, : path.shape[-1]] = path

    def result(self, wall_time: float, where: Mapping[str, str]) -> Simulation:
        """What was found, of the grid's shape; `where` says on which cluster, if on any."""
        e, draws = self.experiment, self.experiment.draws
        shape = as_grid(e.problem).shape
        variants, points, seeds = len(draws.variants), len(e.problems), len(draws.seeds)
        shaped = {}
        for name, array in self.values.items():
            measured = name in e.quantities
            lead, rest = ((variants,), (seeds,)) if measured else ((), array.shape[1:])
            shaped[name] = array.reshape(*lead, *shape, *rest)
        assert points == np.prod(shape, dtype=int)
        record = {**e.resources.record(), "n_test": str(e.n_test), **where}
        if e.resources.backend.precision != "float64":
            on_cluster = "not measured: the run was on a cluster"
            record["precision"] = on_cluster if where else self._precision()
        return Simulation(
            problem=e.problem,
            setting=draws.setting,
            variants=tuple(variant.name for variant in draws.variants),
            seeds=draws.seeds,
            values=shaped,
            wall_time=wall_time,
            flops=self.done,
            record=record,
        )

    def _precision(self) -> str:
        """How far the run's first draw is from the same draw in float64, in words.

        Measured where rounding shows most: at the point of the least ridge, and among those at
        the largest step.
        """
        e, each = self.experiment, self.experiment.problems
        point = min(range(len(each)), key=lambda i: (each[i].ridge, -each[i].step_size))
        draws = replace(e.draws, seeds=e.draws.seeds[:1])
        backend = make_backend(e.resources.backend.name, "float64")
        resources = replace(e.resources, backend=backend)
        try:
            exact = make_experiment(each[point], draws, resources, n_test=e.n_test)
            found = Runner(exact, None).run().values
        except FeaturestepError as error:
            return f"not measured: {error}"
        gaps = {}
        for name in e.quantities:
            value, expected = self.values[name][:, point, 0], found[name][..., 0]
            scale = np.where(expected == 0.0, 1.0, expected)  # shares of errors may be 0
            gaps[name] = np.max(np.abs((value - expected) / scale))
        words = ", ".join(f"{name} {gap:.1e}" for name, gap in gaps.items())
        where = f"seed {draws.seeds[0]}, ridge {each[point].ridge:.3g}"
        return f"relative gaps to float64 on {where}: {words}"


def tasks(experiment: Experiment) -> Iterator[Task]:
    """Every group on every draw; draws that are small go many at a time."""
    seeds = len(experiment.draws.seeds)
    for index in range(len(experiment.groups)):
        step = experiment.batch(index)
        for start in range(0, seeds, step):
            yield index, slice(start, min(seeds, start + step))


def _run_lightly(experiment: Experiment, task: Task) -> Outcome:
    """The numbers of a task, on a worker."""
    return experiment.run(*task).execute().light()
