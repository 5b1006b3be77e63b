"""The verb: run the real network, exactly, for every point of a grid and every seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...core.errors import FeaturestepError
from ...core.grid import Grid, as_grid
from ...core.problem import Problem
from ...core.results import Progress
from ...core.types import FloatArray
from ..arguments import SEEDS, checked_progress, costed, make_draws, make_resources
from ..arrays.backend import make_backend
from ..cluster import Cluster, connected
from ..draws.setting import Setting
from .by_rows import outcome_by_rows, shares_rows
from .experiment import Estimate, Experiment, Runner, Task, make_experiment
from .result import ALIGNMENT, Simulation
from .run import Count, GroupOutcome


def simulate(
    problem: Problem | Grid,
    *,
    seeds: int | Iterable[int] = SEEDS,
    n_test: int | None = None,
    variants: Iterable[str] = ("trained",),
    setting: Setting | None = None,
    dtype: str = "float64",
    device: str = "cpu",
    drawn: str | None = None,
    max_memory: float | None = None,
    block_rows: int | None = None,
    streams: Mapping[str, int] | None = None,
    progress: Progress | None = None,
    scheduler: Any = None,
) -> Simulation:
    """Train and test the network of a problem, or of every point of a grid (theory, section 1).

    With another loss than the square the readout is fitted by Newton's method, to a gradient of
    1e-9 of that at 0, or, for the hinge, to a relative duality gap of 1e-8.

    seeds
        How many draws, or their seeds. Points of a grid see the same draws.
    n_test
        Test inputs; by default twice the largest n, between 4000 and 20,000.
    variants
        Feature maps, on the same draw: `trained`, `initial`, `spiked:ℓ`, `gaussian`,
        `gaussian+spiked:ℓ`, `srf`.
    setting
        Inputs, labels and steps outside the theory's assumptions.
    dtype
        `float64`; `float32` (for the square loss); or `mixed`: features in float32, Gram matrices,
        solves and tests in float64. What is not float64 says in `record["precision"]` how far its
        first draw is from the same draw in float64.
    device
        `cpu`, `cuda` (through torch) or `torch` (torch on the CPU).
    drawn
        Where random numbers are made: `host` (a seed is the same network on every device) or
        `device` (fast on a GPU; a seed is the same network on every torch device). By default
        `device` on cuda, else `host`.
    max_memory
        Bytes the run may take; what cannot fit is refused before anything is allocated.
    block_rows
        Rows of a sample in memory at a time (rounded up to 64); results do not depend on it.
    streams
        Seeds that pin streams (`data`, `initialisation`, `readout`, `noise`, `test`, `teacher`,
        `equivalent`, `flips`) while the others follow `seeds`.
    progress
        Called with the flops done and the flops of the whole run.
    scheduler
        Address of a Dask scheduler, the file it wrote, or a client: its workers share the draws,
        or where draws are fewer than workers, the rows of each.
    """
    draws = make_draws(seeds=seeds, variants=variants, setting=setting, streams=streams)
    resources = make_resources(
        dtype=dtype, device=device, drawn=drawn, max_memory=max_memory, block_rows=block_rows
    )
    experiment = make_experiment(problem, draws, resources, n_test=n_test)
    runner = SimulationRunner(experiment, checked_progress(progress))
    with connected(scheduler) as cluster:
        return runner.run(cluster)


def estimate(
    problem: Problem | Grid,
    *,
    seeds: int | Iterable[int] = SEEDS,
    n_test: int | None = None,
    variants: Iterable[str] = ("trained",),
    setting: Setting | None = None,
    dtype: str = "float64",
    device: str = "cpu",
    drawn: str | None = None,
    max_memory: float | None = None,
    block_rows: int | None = None,
) -> Estimate:
    """Peak memory and flops of `simulate` with the same arguments, before it runs."""
    draws = make_draws(seeds=seeds, variants=variants, setting=setting)
    resources = make_resources(
        dtype=dtype, device=device, drawn=drawn, max_memory=max_memory, block_rows=block_rows
    )
    make = partial(make_experiment, problem, draws, n_test=n_test)
    return costed(make, resources).estimate


class SimulationRunner(Runner[Experiment, GroupOutcome, Simulation]):
    """Fits and tests the readouts of every group, and puts the numbers in place."""

    def __init__(self, experiment: Experiment, progress: Progress | None) -> None:
        super().__init__(experiment, progress)
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

    @staticmethod
    def execute(experiment: Experiment, task: Task, count: Count) -> GroupOutcome:
        """The numbers of a task, without the readouts."""
        return experiment.run(*task, count).execute().light()

    def shares_rows(self, index: int) -> bool:
        return shares_rows(self.experiment, index)

    def execute_by_rows(self, cluster: Cluster, task: Task) -> GroupOutcome:
        return outcome_by_rows(cluster, self.experiment, task, self.count)

    def place(self, task: Task, outcome: GroupOutcome) -> None:
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
            found = SimulationRunner(exact, None).run().values
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
