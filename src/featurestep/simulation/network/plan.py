"""Which points share what, and what the run will cost, before anything is drawn.

Points that agree on sizes, functions, labels, residual and the laws of readout and first layer form
a group: they share the draw, the gradient and the projections of every sample. In a group,
features are computed once for each (variant, step size, noise level of the step), whatever the
ridges and sample sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...core.problem import Problem
from ..draws.setting import Setting
from .step import residual_basis
from .variants import FeatureKey, Move, Variant, feature_key

Slot = tuple[int, int]  # variant, point: where a number goes in the result


class Fit(NamedTuple):
    """One fit of the readout on given features."""

    n: int
    ridge: float
    noise: float
    loss: str = "square"
    intercept: bool = False

    def by_samples(self, width: int) -> bool:
        """True if its matrices are (n, n), else (width, width).

        The hinge's are (n, n) always, see `convex`.
        """
        return self.loss == "hinge" or self.n <= width


@dataclass
class Group:
    """Points that share a draw."""

    problem: Problem  # any of them: for sizes, functions, laws and residual
    setting: Setting
    n_test: int
    points: dict[int, Problem] = field(default_factory=dict)
    fits: dict[FeatureKey, dict[Fit, list[Slot]]] = field(default_factory=dict)

    @property
    def has_square_loss(self) -> bool:
        """True if readouts are fitted by ridge regression: sums over rows are enough."""
        return self.problem.has_square_loss

    @property
    def levels(self) -> tuple[float, ...]:
        """Noise levels of the step's labels."""
        return tuple(sorted({p.noise_std for p in self.points.values()}))

    @property
    def moves(self) -> tuple[Move, ...]:
        """Every step taken by trained features."""
        trained = {key.move: None for key in self.fits if key.base == "trained"}
        return tuple(trained)

    @property
    def steps_needed(self) -> bool:
        """Whether anything depends on the gradient."""
        return any(key.sizes for key in self.fits)

    @property
    def initial_needed(self) -> bool:
        """Whether any features use XW0ᵀ on its own."""
        return any(key.base != "trained" for key in self.fits)

    @property
    def separate(self) -> bool:
        """Whether to project each trained W on its own: no more products than W0 and G need.

        After several steps there is no choice: W is not linear in the step size.
        """
        if self.problem.steps > 1:
            return True
        return len(self.moves) + self.initial_needed <= 1 + residual_basis(self.levels)

    @property
    def projections(self) -> int:
        """How many matrices every sample is multiplied with."""
        if not self.moves:
            return 1
        if self.separate:
            return len(self.moves) + self.initial_needed
        return 1 + residual_basis(self.levels)

    def sizes(self, dual: bool) -> list[int]:
        """Sample sizes whose Gram matrix is on the sample's side (dual) or the neurons'."""
        every = {n for key in self.fits for n in self.by_size(key)}
        return sorted(n for n in every if (n <= self.problem.width) == dual)

    def keys(self, dual: bool) -> list[FeatureKey]:
        """The features that are fitted at one of these sizes."""
        sizes = self.sizes(dual)
        return [key for key in self.fits if not self.by_size(key).keys().isdisjoint(sizes)]

    def by_side(self, key: FeatureKey) -> dict[tuple[int, bool], list[Fit]]:
        """Fits by their sample size and whether their matrices are (n, n); see `convex`."""
        found: dict[tuple[int, bool], list[Fit]] = {}
        for fit in self.fits[key]:
            found.setdefault((fit.n, fit.by_samples(self.problem.width)), []).append(fit)
        return found

    def by_size(self, key: FeatureKey) -> dict[int, list[Fit]]:
        """The fits on some features by their sample size, ascending."""
        sizes = sorted({fit.n for fit in self.fits[key]})
        return {n: [fit for fit in self.fits[key] if fit.n == n] for n in sizes}


def make_groups(
    problems: Sequence[Problem], variants: tuple[Variant, ...], n_test: int, setting: Setting
) -> list[Group]:
    """The groups of a list of points, in order of first appearance."""
    groups: dict[Any, Group] = {}
    for index, problem in enumerate(problems):
        group = groups.setdefault(group_key(problem), Group(problem, setting, n_test))
        group.points[index] = problem
        for number, variant in enumerate(variants):
            key = feature_key(variant, problem)
            fits = group.fits.setdefault(key, {})
            fit = Fit(
                problem.n, problem.ridge, problem.noise_std, problem.loss, bool(problem.intercept)
            )
            fits.setdefault(fit, []).append((number, index))
    return list(groups.values())


def default_test_size(problems: Sequence[Problem]) -> int:
    """Twice the largest n, between 4000 and 20,000: enough for the draws' own scatter to rule."""
    return min(max(2 * max(p.n for p in problems), 4000), 20_000)


def group_key(problem: Problem) -> tuple[Any, ...]:
    """What points of one draw have in common.

    Labels ±1 are not linear in their noise, so that points with different ones share nothing.
    """
    signs = (problem.noise_std, problem.flip) if problem.is_binary else None
    return (
        *(problem.has_square_loss, signs),
        *(problem.d, problem.width, problem.n_step, problem.residual, problem.initial),
        *(problem.rows, problem.steps, problem.batches, problem.covariance),
        *(problem.target_exponent, problem.target_mass, problem.target_direction),
        *(problem.sigma, problem.teacher or problem.sigma_star, problem.law),
    )
