"""How near the spiked features are to the trained ones: ‖F − F_ℓ‖_op/√n (theory, section 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...core.display import Table
from ...core.errors import InvalidProblem
from ...core.grid import Grid
from ...core.problem import Problem
from ...core.results import GridResult, Note, Progress, Result, over_grid, verb
from ...core.types import FloatArray
from ..arguments import SEEDS, Draws, Resources, make_draws, make_resources
from ..draws.setting import Setting
from ..over_seeds import error_of_mean, spread
from .experiment import make_experiment
from .readout import refuse_non_finite
from .run import TRAIN, GroupRun
from .step import FeatureKey, feature_key


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
