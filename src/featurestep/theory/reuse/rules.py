"""How finely the rows and the readout law of one problem are cut."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...core.errors import NotConverged
from ...core.problem import Problem
from ...core.spiked import SpikedWeights, spiked_weights
from ...core.types import FloatArray
from ...functions.quadrature import Rule, split_law, trapezoid_normal
from ..exact.solve import MORE_R_NODES, r_nodes
from ..labels import across_alignment
from ..resolution import Effort, Mirrored, choose, finite_groups, growth_degree

_END = 7.2  # of κ
_SPACING = 0.4  # of κ, at most
_PER_WIDTH = 0.8  # spacing over q, the width of κ given t
_PER_SHIFT = 0.45  # spacing over ρ_g/u_g, the scale of features in κ
_DIGITS = 20.7  # −log of the error that nodes of κ may leave
_PRE_ACTIVATION = 0.25
_EXPONENT = 23.0  # of the error that poles of 1/(1 + χ) in κ leave, at κ = 0
_R_NODES, _MORE_R_NODES = 38, 60  # of r for a small step, and where r has heavy tails
_R_EXPONENT = 14.0  # as `_EXPONENT`, at r = 0
_OWN, _OWN_IF_OSCILLATING = 70.0, 30.0  # e φ0 r that doubles the number of nodes of r
_FLAT, _RARE = 0.25, 0.05  # slopes over E σ′, and the share of neurons that have them
_PER_KINK = 4.0  # nodes of r for each d/n0, next to kinks
_MOST_R_NODES = 200
_FAR = 5.0  # of t and of the noise, for the largest r that matters
# (reach of the step, nodes on either side of g = 0 up to it)
_NODES_BY_REACH = ((0.25, 8), (0.5, 10), (1.0, 12), (1.42, 13), (2.0, 15), (2.83, 19), (4.01, 25))
_LARGEST_REACH = 4.0


@dataclass(frozen=True)
class RowRules:
    """Nodes of the readout law, of κ and r on rows of the step, and of κ on test rows."""

    groups: Mirrored
    kappa: FloatArray  # (Q,) equispaced
    residuals: int  # nodes of r
    pre_activation: float  # spacing of z, the pre-activation before the step
    test: Rule


def choose_rules(problem: Problem, refine: float = 1.0) -> RowRules:
    """Rules for one problem, or `refine` times as many nodes: results must not depend on it."""
    weights = spiked_weights(problem)
    nodes = choose(problem, weights, Effort(nodes=refine)).node_rule()
    rule = finite_groups(problem) or _groups(problem, weights, refine)
    groups = Mirrored.of(rule, problem.sigma)
    return RowRules(
        groups=groups,
        kappa=_kappa(problem, weights, groups.rule, refine),
        residuals=round(refine * _residual_nodes(problem)),
        pre_activation=_PRE_ACTIVATION / refine,
        test=nodes,
    )


def _residual_nodes(problem: Problem) -> int:
    """Nodes of r: more where features vary fast with it, by e φ0 r σ′(z) of (54)."""
    heavy = r_nodes(problem) >= MORE_R_NODES
    far = float(np.abs(problem.sigma_star(np.array([-_FAR, _FAR]))).max())
    far += _FAR * problem.noise_std
    per_r = problem.step_size / math.sqrt(problem.width) * problem.phi_step
    doubling = _OWN_IF_OSCILLATING if problem.sigma.oscillates else _OWN
    count = (_MORE_R_NODES if heavy else _R_NODES) * (1.0 + per_r * far / doubling)
    count = max(count, _for_poles(problem, far))
    if problem.sigma.kinks:  # smoothed over a width that is smaller than e φ0 r by √φ0
        count += _PER_KINK * problem.phi_step
    return min(round(count), _MOST_R_NODES)


def _for_poles(problem: Problem, far: float) -> float:
    """Nodes of r that the poles of 1/(1 + χ) in r ask for, as those in κ do (`_beside_poles`).

    Features saturate with the row's own part of them, e φ0 r σ′(z), unless some neurons have none.
    """
    if _has_flat_parts(problem):
        return 0.0
    size, own = _label_size(problem), _own_part(problem)
    reach = math.sqrt(2.0 * math.log1p(_largest_influence(problem)))
    place = reach / max(own, 1e-300)
    exponent = _R_EXPONENT - 0.5 * (place / size) ** 2
    distance = (
        math.pi / max(own * reach, 1e-300) / math.hypot(place, 0.5 * size)
    )  # in asinh(2r/size)
    return exponent * math.asinh(2.0 * far / size) / distance if exponent > 0.0 else 0.0


def _has_flat_parts(problem: Problem) -> bool:
    """True if next to no slope σ′(z) is not rare."""
    slopes = np.abs(problem.sigma.derivative(trapezoid_normal(4.0, 0.05)[0]))
    weight = trapezoid_normal(4.0, 0.05)[1]
    flat = slopes < _FLAT * abs(problem.sigma.mean_slope)
    return float(weight[flat].sum()) > _RARE


def _groups(problem: Problem, weights: SpikedWeights, refine: float) -> Rule:
    """Nodes of a continuous readout law, on either side of g = 0.

    Close to 0 features vary fast with g on rows with large r, and the noise that smooths a kink
    vanishes like |g|. Features move with g by the step and by a row's own part of it, e φ0 r σ′(z).
    """
    reach = max(abs(weights.unit_shift), abs(weights.unit_drift), math.sqrt(weights.unit_growth))
    own = _own_part(problem) * _label_size(problem)
    rounded = _rounded_up(max(reach, min(math.hypot(reach, own), _LARGEST_REACH)))
    count = next((count for most, count in _NODES_BY_REACH if rounded <= most), None)
    if count is None:
        raise NotConverged(
            "take a smaller step or a readout law of few values: with rows half or same the step "
            f"may move neurons by at most 4 times their norm, here it is {reach:.3g}"
        )
    return split_law(
        problem.law.name, math.ceil(count * refine), 0.8 * rounded / (1.0 + 0.4 * rounded)
    )


def _rounded_up(reach: float) -> float:
    """To a power of √2."""
    return float(2.0 ** (0.5 * math.ceil(2.0 * math.log2(max(reach, 2.0**-6)))))


def _own_part(problem: Problem) -> float:
    """e φ0 E σ′: what a row of the step moves its own pre-activations by, for r = 1 and g = 1."""
    per_r = problem.step_size / math.sqrt(problem.width) * problem.phi_step
    return float(per_r * abs(problem.sigma.mean_slope))


def _label_size(problem: Problem) -> float:
    """Root mean square of the labels."""
    return math.sqrt(problem.star.second_moment + problem.noise_std**2)


def _kappa(problem: Problem, weights: SpikedWeights, groups: Rule, refine: float) -> FloatArray:
    """Equispaced nodes of κ: their error is that of every group times its share of the neurons."""
    g, share = groups
    across = float(across_alignment(np.array(weights.alignment)))
    steep = np.maximum(np.abs(weights.shift(g)) / weights.norm(g), 1e-300)
    influence = _largest_influence(problem)
    digits = np.maximum(_DIGITS + np.log(share), 0.2 * _DIGITS)  # of a group's error that matter
    spacing = min(
        _SPACING,
        _PER_WIDTH * across,
        float((_PER_SHIFT / steep * np.sqrt(_DIGITS / digits)).min()),
        *(_beside_poles(influence, *each) for each in zip(steep, np.log(share), strict=True)),
    )
    spacing /= refine
    end = _END + 0.25 * (growth_degree(problem.star) + growth_degree(problem.sigma))
    steps = math.ceil(end / spacing)
    return np.asarray(spacing * np.arange(-steps, steps + 1, dtype=np.float64))


def _beside_poles(influence: float, steep: float, log_share: float) -> float:
    """Spacing of κ for which the equispaced rule does not see the poles of 1/(1 + χ).

    Features that saturate lose their noise like exp(−(uκ/ρ)²/2) where χ ~ `influence` at κ = 0: χ
    is −1 at the distance πρ²/(u²κ) from the real axis, at κ = √(2 log(1 + influence))ρ/u.
    """
    reach = math.sqrt(2.0 * math.log1p(influence))
    exponent = _EXPONENT + log_share - 0.5 * (reach / steep) ** 2  # such κ are rare
    distance = math.pi / (steep * max(reach, 1e-300))
    return 2.0 * math.pi * distance / exponent if exponent > 0.0 else math.inf


def _largest_influence(problem: Problem) -> float:
    """About the largest χ: that of pure noise of the features' variance, x(λ′ + 1/(1+x)) = N/n."""
    ridge = problem.ridge / max(problem.sigma.second_moment, 1e-300)
    ratio = problem.width / problem.n
    middle = ratio - 1.0 - ridge
    return 2.0 * ratio / (math.sqrt(middle**2 + 4.0 * ridge * ratio) - middle)
