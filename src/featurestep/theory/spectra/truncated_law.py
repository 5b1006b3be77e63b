"""Groups and nodes of a spectrum: laws of κ, ‖x‖ and g, cut off where finite samples end.

Among n samples hardly any |κ| exceeds κ_n with P(|κ| > κ_n) = ½/n. Beyond it a row of F would lie
outside the bulk by itself, but no such row is there; with the full law an unbounded activation has
a bulk without an edge. So the rules of κ end at κ_n (that of a Gaussian readout law for spikes at
g_N, that of the step's residual at a few of its samples), and their outer weights are chosen such
that low moments remain those of the full law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...core.errors import NotConverged
from ...core.problem import Problem
from ...core.spiked import SpikedWeights
from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity, coefficients
from ...functions.quadrature import (
    Rule,
    gauss_from_measure,
    gauss_hermite,
    gauss_law,
    largest_expected,
    saturating_gauss_law,
    stretched_uniform,
    truncated_normal,
    truncated_normal_size,
)
from ..exact.degrees import DEGREES, dimension
from ..exact.fixed_point import Samples
from ..resolution import (
    FEWEST_INPUTS,
    MOST_GROUPS,
    MOST_NODES,
    Mirrored,
    finite_groups,
    rounded_down,
)

SAMPLES_BEYOND = 20.0  # samples of the step whose residual may exceed the end of the law of r
MAX_REFINEMENT = 4.0
_SPACING = 0.5  # of the rules' nodes in their stretched variables
_MIN_BULK_GROUPS = 3  # nodes of a continuous law, for a bulk
_BULK_GROUPS = 6  # that are enough, but for bulks that are apart
_MIN_GROUP = 0.02  # share of neurons: groups of fewer lie outside the bulk of the others
_MAX_SEPARATION = {False: 0.03, True: 0.5}  # of groups: up to that many, and beyond
_SATURATION = {
    True: 0.5,
    False: 0.3,
}  # of `saturating_gauss_law` over a step's reach, if σ is bounded or not
_OUTER_RADIUS = 20.0  # |z| at which a bounded activation has taken its largest values
_KAPPA_NODES = 7  # for a group's mean square
_MIN_SHARE = 0.002  # of neurons or samples that is not to be cut off from the rest
_MIN_ROW_SPREAD = 0.06  # spread of a row's variance, from that of ‖x‖, that is worth nodes
_RADIUS_NODES = 3  # of ‖x‖, whose spread is small
_VISIBLE = 0.02  # min(n, N) over the coordinates of a degree, from which it has a block (131)
_NO_PART = 1e-9  # |c_k| of an activation without degree k


@dataclass(frozen=True)
class Nodes:
    """Nodes of κ and, where its spread can be seen, of ‖x‖."""

    kappa: FloatArray  # (Q,)
    weight: FloatArray  # (Q,)
    radius: FloatArray | None = None  # (Q,) ‖x‖/√d

    def twice(self) -> Nodes:
        """Every node two times, with half of its weight."""
        radius = None if self.radius is None else np.repeat(self.radius, 2)
        return Nodes(np.repeat(self.kappa, 2), np.repeat(0.5 * self.weight, 2), radius)


def needed_refinement(samples: Samples, least: float) -> float:
    """How fine the rules must be, at least `least`, for gaps not to open between their nodes.

    A group alone (or a node) would fill a bulk of relative width about 4√(N/n) or 4√(n/N): mean
    squares of neighbours have to differ by less.
    """
    step, columns = samples.step, samples.columns
    power = columns.power(step.norm)[0]  # (Q, K)
    share = step.neurons[0] / step.neurons.sum()
    ratio = float(step.neurons.sum() / step.n[0])
    width = 4.0 * math.sqrt(min(ratio, 1.0 / ratio))
    largest = max(
        _largest_ratio(samples.weight @ power, share), _largest_ratio(power @ share, samples.weight)
    )
    needed = 2.0 ** (0.5 * np.ceil(2.0 * np.log2(largest / (0.15 * width))))
    return float(np.clip(needed, least, MAX_REFINEMENT))


def _largest_ratio(values: FloatArray, share: FloatArray) -> float:
    """Logarithm of the largest ratio of neighbouring values that carry some weight."""
    order = np.argsort(values)
    kept = np.log(values[order][share[order] > _MIN_SHARE])
    return float(np.diff(kept).max(initial=1e-12))


def bulk_groups(problem: Problem, weights: SpikedWeights, limit: int) -> Rule:
    """The values of a finite law, or the few groups that stand for any other in a bulk."""
    found = finite_groups(problem)
    if found is None or found[0].size > limit:
        found = few_groups(problem, weights, limit)
    return Mirrored.of(found, problem.sigma).rule


def few_groups(problem: Problem, weights: SpikedWeights, limit: int) -> Rule:
    """Groups of a continuous law, or one of many values, for a bulk: at most `limit`.

    As many as the step needs: few where all neurons are alike, more where the bulks that
    neighbouring groups would fill by themselves are apart. Over random problems edges are then
    those of twice as many groups to 1e-5 (uniform law) or 1e-4, where the law has a sharp edge.
    """
    if problem.law.name == "gaussian" and not _is_bounded(problem.sigma):
        # its outermost neurons are apart however many groups there are
        limit = min(limit, _BULK_GROUPS)
    fewest = min(_MIN_BULK_GROUPS, limit)
    rule = _gauss_groups(problem, weights, fewest)
    close = _are_close(problem, weights, rule)
    for count in range(fewest + 1, limit + 1):
        more = _gauss_groups(problem, weights, count)
        were_close, close = close, _are_close(problem, weights, more)
        if were_close and close:
            break
        rule = more
    return rule


def _are_close(problem: Problem, weights: SpikedWeights, rule: Rule) -> bool:
    """True if bulks of neighbouring groups overlap enough for a rule of that many groups.

    Mean squares of an activation that oscillates may be alike at the groups of one rule by chance,
    so `few_groups` asks two rules.
    """
    g, share = rule
    most = _MAX_SEPARATION[g.size >= _BULK_GROUPS]
    return _separation(problem, weights, g[share > _MIN_GROUP]) < most


def _separation(problem: Problem, weights: SpikedWeights, g: FloatArray) -> float:
    """Largest distance of neighbouring groups' mean squares, over the width of a group's bulk.

    That is about 4√(N/n) or 4√(n/N), relative to its place.
    """
    ratio = problem.width / problem.n
    kappa, share = gauss_hermite(_KAPPA_NODES)
    norm = weights.norm(g)
    moments = problem.sigma.moments(norm, weights.shift(g) * kappa[:, None])
    squares = np.sort(np.log(share @ (moments.spread + (norm * moments.slope) ** 2)))
    return float(np.diff(squares).max(initial=0.0)) / (4.0 * math.sqrt(min(ratio, 1.0 / ratio)))


def _gauss_groups(problem: Problem, weights: SpikedWeights, count: int) -> Rule:
    """Gauss nodes of a law, in a variable in which features are near to polynomials of it.

    Features of a bounded activation level off where its weights grow. Those of others grow with
    the weights, and the largest decide on the edge: the outermost stay where Gauss nodes lie.
    """
    bounded = _is_bounded(problem.sigma)
    law, rate = problem.law, _SATURATION[bounded] * _reach(weights)
    if law.is_finite:
        g, share = np.array(law.values), np.array(law.probabilities)
        rule = gauss_from_measure(g / np.sqrt(1.0 + (rate * g) ** 2), share, count)
        return rule.nodes / np.sqrt(1.0 - (rate * rule.nodes) ** 2), rule.weights
    end = None if bounded else float(gauss_law(law.name, count)[0][-1])
    return saturating_gauss_law(law.name, count, rate, end)


def _is_bounded(sigma: Nonlinearity) -> bool:
    z = np.linspace(-2.0 * _OUTER_RADIUS, 2.0 * _OUTER_RADIUS, 801)
    with np.errstate(all="ignore"):
        values = np.abs(sigma(z))
    return bool(values.max() <= 1.01 * values[np.abs(z) <= _OUTER_RADIUS].max())


def _reach(weights: SpikedWeights) -> float:
    """The 1/g at which a step's effect on a neuron is of order 1."""
    effects = (abs(weights.unit_shift), abs(weights.unit_drift), math.sqrt(weights.unit_growth))
    return max(*effects, 1e-300)


def groups_for_spikes(problem: Problem, weights: SpikedWeights, refinement: float) -> Rule:
    """Groups of a continuous law for the spikes."""
    reach = _reach(weights)
    scale = rounded_down(0.5 / reach)
    widest = rounded_down(0.6 / reach) if problem.sigma.oscillates else 1.0
    spacing = _SPACING / refinement
    if problem.law.name == "uniform":
        return stretched_uniform(scale, widest, spacing)
    end = largest_expected(problem.width)
    _refuse_if_many(
        problem, truncated_normal_size(end, scale, widest, spacing), MOST_GROUPS, "groups"
    )
    return truncated_normal(end, scale, widest, spacing)


def node_rule(problem: Problem, weights: SpikedWeights, refinement: float) -> Nodes:
    """Nodes up to what n samples show: of κ and, where its spread is visible, of ‖x‖."""
    sigma = problem.sigma
    largest = max(map(abs, problem.law.values)) if problem.law.is_finite else 1.0
    shift = max(abs(weights.unit_shift) * largest, 1e-300)
    scale = rounded_down(0.5 / shift)
    widest = rounded_down(1.0 / shift) if sigma.oscillates else 1.0
    end, spacing = largest_expected(problem.n), _SPACING / refinement
    _refuse_if_many(
        problem, truncated_normal_size(end, scale, widest, spacing), MOST_NODES, "nodes"
    )
    kappa, weight = truncated_normal(end, scale, widest, spacing)
    if not (visible_degrees(problem) or is_norm_spread_visible(problem)):
        return Nodes(kappa, weight)
    z, share = gauss_hermite(_RADIUS_NODES)
    cube = 2.0 / (9.0 * problem.d)  # Wilson and Hilferty: (‖x‖²/d)^(1/3) is normal
    radius = np.maximum(1.0 - cube + math.sqrt(cube) * z, 0.1) ** 1.5
    both = np.multiply.outer(weight, share).ravel()
    return Nodes(np.repeat(kappa, z.size), both, np.tile(radius, kappa.size))


def _refuse_if_many(problem: Problem, count: int, most: int, what: str) -> None:
    if count > most:
        raise NotConverged(
            f"activation {problem.sigma.name} oscillates too fast at this step: "
            f"more than {most} {what} would be needed; take a smaller step"
        )


def is_norm_spread_visible(problem: Problem) -> bool:
    """Whether the spread of ‖x‖, 1/√(2d), makes that of a row's power visible.

    By |d log/d log r| at r = 1 of a row's mean square beside w·x: of ν², μ² and (m − c_0)².
    """
    sigma, change, sizes = problem.sigma, 1e-3, []
    c_0 = float(coefficients(sigma, 0)[0])
    for radius in (1.0 - change, 1.0 + change):
        mean, slope, spread = (
            float(np.ravel(m)[0]) for m in sigma.moments(np.array([radius]), np.zeros(1))
        )
        sizes.append((mean - c_0) ** 2 + slope**2 + spread)
    sensitivity = abs(math.log(sizes[1] / sizes[0])) / (2.0 * change)
    return sensitivity / math.sqrt(2.0 * problem.d) > _MIN_ROW_SPREAD


def visible_degrees(problem: Problem) -> tuple[int, ...]:
    """Degrees of which n and N show more than noise."""
    if problem.covariance is not None or problem.steps > 1 or problem.d < FEWEST_INPUTS:
        return ()
    found = []
    for k in DEGREES:
        count = float(dimension(np.array([float(problem.d)]), k)[0])
        part = problem.step_size > 0.0 or abs(float(coefficients(problem.sigma, k)[k])) > _NO_PART
        if part and min(problem.n, problem.width) > _VISIBLE * count:
            found.append(k)
    return tuple(found)
