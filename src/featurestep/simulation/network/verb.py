"""The verbs: run the real network, exactly, for every point of a grid and every seed.

`feature_gap` measures how near the spiked features are to the trained ones (theory, section 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...core.display import Table
from ...core.errors import FeaturestepError, InvalidProblem
from ...core.grid import Grid, as_grid
from ...core.problem import Problem
from ...core.results import GridResult, Note, Progress, Result, over_grid, verb
from ...core.types import FloatArray
from ..backend import make_backend
from ..cluster import Cluster, connected
from ..setting import Setting
from .by_rows import outcome_by_rows, shares_rows
from .experiment import (
    SEEDS,
    Draws,
    Estimate,
    Experiment,
    GroupTask,
    Runner,
    checked_progress,
    make_draws,
    make_experiment,
)
from .plan import Resources, costed, make_resources
from .readout import refuse_non_finite
from .result import ALIGNMENT, Simulation, error_of_mean, spread
from .run import TRAIN, Count, GroupOutcome, GroupRun
from .step import FeatureKey, feature_key


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
    def execute(experiment: Experiment, task: GroupTask, count: Count) -> GroupOutcome:
        """The numbers of a task, without the readouts."""
        return experiment.run(*task, count).execute().light()

    def shares_rows(self, index: int) -> bool:
        return shares_rows(self.experiment, index)

    def execute_by_rows(self, cluster: Cluster, task: GroupTask) -> GroupOutcome:
        return outcome_by_rows(cluster, self.experiment, task, self.count)

    def place(self, task: GroupTask, outcome: GroupOutcome) -> None:
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


@dataclass(frozen=True, eq=False, repr=False)
class FeatureGap(Result):
    """‖F − F_ℓ‖_op/√n of one problem by degree; `values` has it by seed."""

    MEANINGS: ClassVar[Mapping[str, str]] = {
        "gap": "‖F − F_ℓ‖_op/√n, mean over the seeds, by degree ℓ",
        "gap_error": "standard error of that mean; NaN of one seed",
    }
    DIMS: ClassVar[Mapping[str, tuple[str, ...]]] = {"gap": ("degree",), "gap_error": ("degree",)}
    COLUMNS: ClassVar[tuple[str, ...]] = ("gap", "gap_error")

    problem: Problem
    setting: Setting
    degrees: tuple[int, ...]
    seeds: tuple[int, ...]
    values: FloatArray  # (degree, seed)

    @property
    def gap(self) -> FloatArray:
        """Means over the seeds, (degree,)."""
        return np.asarray(self.values.mean(axis=1))

    @property
    def gap_error(self) -> FloatArray:
        """Their standard errors, (degree,)."""
        return error_of_mean(self.values.T)

    @property
    def coordinates(self) -> dict[str, Any]:
        """The degrees."""
        return {"degree": list(self.degrees)}

    @property
    def notes(self) -> tuple[Note, ...]:
        """Where the theory's assumptions are left."""
        return self.setting.departures

    def tables(self) -> list[Table]:
        """A row for each degree."""
        rows = [
            (ell, spread(values), f"‖F − F_{ell}‖_op/√n, mean over the seeds")
            for ell, values in zip(self.degrees, self.values, strict=True)
        ]
        return [Table.of(("degree", "gap", "meaning"), rows)]


@verb({"rows", "covariance"})
def feature_gap(
    problem: Problem | Grid,
    *,
    degrees: Iterable[int] = (1, 2, 3),
    seeds: int | Iterable[int] = SEEDS,
    setting: Setting | None = None,
    max_memory: float | None = None,
    progress: Progress | None = None,
) -> FeatureGap | GridResult:
    """‖F − F_ℓ‖_op/√n on the readout's sample, for one problem or every point of a grid.

    Moniri et al. (Theorem 3.3) have it vanish as n grows for ℓ of the step exponent's regime. What
    the growth of the neurons' norms adds (theory, section 4) is not in F_ℓ and stays. The other
    arguments are those of `simulate`.
    """
    if not isinstance(degrees, Iterable):
        raise InvalidProblem("degrees", "must be a list of degrees", degrees)
    listed = tuple(degrees)
    variants = ["trained", *(f"spiked:{degree}" for degree in listed)]
    draws = make_draws(seeds=seeds, variants=variants, setting=setting)
    resources = make_resources(dtype="float64", max_memory=max_memory)
    one = partial(_one, degrees=listed, draws=draws, resources=resources)
    if isinstance(problem, Grid):
        return over_grid(FeatureGap, problem, one, progress)
    return one(problem)


def _one(
    problem: Problem, *, degrees: tuple[int, ...], draws: Draws, resources: Resources
) -> FeatureGap:
    if problem.step_size == 0:
        raise InvalidProblem("step_size", "must be > 0, or F is F0", problem.step_size)
    experiment = make_experiment(problem, draws, resources, n_test=1)
    keys = [feature_key(variant, problem) for variant in draws.variants]
    runs = (experiment.run(0, slice(i, i + 1)) for i in range(len(draws.seeds)))
    gaps = [_gaps(problem, run, keys) for run in runs]
    return FeatureGap(problem, draws.setting, degrees, draws.seeds, np.stack(gaps, axis=1))


def _gaps(problem: Problem, run: GroupRun, keys: Sequence[FeatureKey]) -> FloatArray:
    weights, backend, (trained, *spiked) = run.weights(), run.backend, keys
    grams = [backend.zeros(problem.width, problem.width) for _ in spiked]
    sample = run.draw.readout_sample(problem.n)
    for rows in run.blocks(weights, sample, TRAIN):
        F = run.features(trained, rows).copy()
        for key, gram in zip(spiked, grams, strict=True):
            F_ell = run.features(key, rows)
            F_ell -= F
            backend.add_gram(gram, F_ell)
    for gram in grams:
        refuse_non_finite(backend, gram)
    largest = [backend.eigen(gram, 1)[0][0] for gram in grams]
    return np.sqrt(np.array(largest) / problem.n)
