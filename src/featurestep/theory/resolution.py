"""Quadrature rules for the readout law (groups of neurons) and for κ, chosen for each problem.

A neuron's features depend on κ through u_g κ with u_g = u·g, smoothed at scale ρ_g: functions of κ
vary near 0 at scale 1/u (and near the kinks of a target), and functions of g do the same. Rules in
κ are equispaced in a stretched variable, and the number of nodes grows with log u only. In g few
Gauss nodes are enough up to steps of about 2√N (`saturating_gauss_law`); larger steps take a
stretched rule too. Scales are rounded to powers of √2, so that many problems share their rules and
are solved in one batch. A solution that varies too fast from node to node is solved again on finer
rules.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import NotConverged
from ..core.problem import Problem
from ..core.spiked import SpikedWeights
from ..core.types import FloatArray, IntArray
from ..functions.activations import HermiteSum
from ..functions.nonlinearity import Nonlinearity, Shifted, coefficients
from ..functions.quadrature import (
    Crowds,
    Rule,
    saturating_gauss_law,
    stretch,
    stretched_normal,
    stretched_uniform,
)
from ..functions.targets import AlignedTarget

GroupKey = tuple[Callable[..., Rule], tuple[Any, ...]]  # the function of a rule, its arguments
NodeKey = tuple[tuple[tuple[float, float], ...], float, float, float]

FEWEST_INPUTS = 4  # directions of an input that terms of finite d take for granted (134)–(143)
MOST_GROUPS = 750
MOST_NODES = 16_000
ROUGH_GROUPS = 1.2  # change of log(V2/N) from group to group that a rule resolves, per spacing
ROUGH_GAUSS = 3.0  # the same from node to node of `saturating_gauss_law`
ROUGH_NODES = 0.5  # change of log(1 + χ) from node to node that the rule resolves, to 1e-6
INNER = 6.0  # |κ| beyond which roughness carries no weight
_GAUSS_COUNTS = (4, 5, 6, 8, 10, 11, 12, 13, 16, 19, 25)  # nodes; few sizes, for large batches
# (reach of the step, nodes of `saturating_gauss_law` up to it): errors are mostly below 1e-7.
# A rule is that of the largest reach it serves, so that few problems need a batch of their own.
_NODES_BY_REACH = (
    (0.0222, 4),
    (0.0443, 5),
    (0.0885, 6),
    (0.177, 8),
    (0.25, 10),
    (0.354, 11),
    (0.42, 11),
    (0.5, 11),
    (0.595, 12),
    (0.708, 13),
    (0.841, 16),
    (1.0, 16),
    (1.415, 19),
    (2.0, 25),
)
_SATURATION = 0.85  # rate of `saturating_gauss_law`, in units of a small reach
_UNIFORM_NODES = 0.8  # share of these nodes that the uniform law needs: it has no tails
# (reach of the step, factor on the nodes of the law of r up to it), for continuous laws and for
# those of few values: there nodes cost little, and the fewer rules, the larger are batches.
_RESIDUALS_BY_REACH = (
    (0.0222, 0.57),
    (0.0885, 0.71),
    (0.177, 0.86),
    (0.708, 1.0),
    (2.0, 1.28),
    (math.inf, 1.6),
)
_RESIDUALS_OF_VALUES = ((0.708, 1.0), (2.0, 2.0), (math.inf, 2.6))
_NODE_SPACING = 0.58  # of the rule in κ
_WIDE_NODE_SPACING = 0.72  # for the square loss, fresh rows and one direction, if u is smaller
# The same where nothing varies faster than at the scale 2 of stretching, and how much larger that
# may be than the scale at which a target that is not a polynomial is seen along κ.
_SMOOTH_NODE_SPACING, _SMOOTH_SCALE, _BLURS = 0.9, 2.0, 1.4
# Problems share finer rules of others that have so many times more nodes of κ at most, or so many
# more of all problems together: these cost as much as solving problems apart.
_SLIGHTLY, _CALL_NODES = 1.25, 1000
# Shift beyond which 1/(1 + χ) varies at 0.4ρ/u up to |κ| = 3ρ/u, where an activation saturates: the
# nodes are twice as dense there.
_STEEP_SHIFT = 1.5
_GROUP_SPACING = 0.52  # of a stretched rule in g: errors stay below 1e-6
_WIDTH_REFINEMENT = 0.16  # of it for every factor of ten by which the width exceeds 10⁴
_OSCILLATION_SPACING = 1.5  # the same where an activation oscillates, times the shift
_FEW_INPUTS = 200  # below which terms of finite d vary faster with g, by so much:
_FEW_INPUTS_REFINEMENT = {"sphere": 1.25, "gaussian": 1.5}  # initial rows
_SHORT_ROWS_REFINEMENT = 1.33  # beside it, of stretched rules
_UNIFORM_EXTRA = 13  # nodes of the uniform law beyond those of an equispaced rule
_TAIL = 4.5  # where the Gaussian law is cut off, at least
_SMALLEST_SCALE = 2.0**-24
_SAME_GROUP = 13  # decimals to which g and −g agree
_LIKELY = 2.4  # standard deviations of the random mean of the initial output (41)


@dataclass(frozen=True)
class Effort:
    """Factors on the numbers of groups and nodes, and how much less accurate a draft may be."""

    groups: float = 1.0
    nodes: float = 1.0
    slack: float = 1.0  # factor on the tolerances of the equations
    residuals: float = 1.0  # factor on the number of nodes of the law of r
    alike: bool = False  # all problems share the finest rules of any and are solved in one batch


def _next_level(effort: float, excess: float) -> float:
    """The next effort, √2 or 2 times the present one, for a roughness so many times too large."""
    if excess <= 1.0:
        return effort
    return float(effort * (math.sqrt(2.0) if excess <= 1.3 else 2.0))


@dataclass(frozen=True)
class Resolution:
    """The two rules, by the functions that make them: equal ones can share a batch."""

    groups: GroupKey
    nodes: NodeKey
    rough_groups: float
    slack: float = 1.0
    residuals: float = 1.0
    residuals_by_reach: float = 1.0  # the same factor by the size of the step, for the square loss

    @property
    def adapts(self) -> bool:
        """False for laws of finitely many values, whose groups are exact."""
        return self.groups[0] is not _values

    def group_rule(self) -> Rule:
        """Nodes g and weights of the readout law."""
        make, numbers = self.groups
        return make(*numbers)

    def node_rule(self, finer: float = 1.0, crowds: Crowds = ()) -> Rule:
        """Nodes and weights of E over κ, or a factor more of them, or more at some places."""
        centres, widest, spacing, end = self.nodes
        return stretched_normal(centres, widest, spacing / finer, end, crowds)

    def node_number(self, kappa: FloatArray) -> FloatArray:
        """The number of the node at κ, counted from κ = 0; a fraction between the nodes."""
        centres, widest, spacing, _ = self.nodes
        return stretch(kappa, centres, widest)[0] / spacing

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of groups and of nodes."""
        return self.group_rule()[0].size, self.node_rule()[0].size

    def is_finer(self, other: Resolution) -> bool:
        """True if it is the same but for nodes of κ, which lie as dense or denser everywhere."""
        kappa = other.node_rule()[0]
        return (
            replace(self, nodes=other.nodes) == other
            and self.nodes[3] >= other.nodes[3]
            and bool(np.all(self._density(kappa) >= (1.0 - 1e-9) * other._density(kappa)))
        )

    def _density(self, kappa: FloatArray) -> FloatArray:
        """Nodes of κ in an interval of length 1."""
        centres, widest, spacing, _ = self.nodes
        return stretch(kappa, centres, widest)[1] / spacing


class Mirrored(NamedTuple):
    """Groups of neurons, those of g and −g as one of |g| where the activation is odd.

    Then weights w with the readout a are the same neuron as −w with −a, before and after a step.
    """

    rule: Rule  # |g| and weights
    g: FloatArray  # of all groups
    place: IntArray  # where |g| is in the rule
    share: FloatArray  # of the neurons with this |g|
    sign: FloatArray  # −1 for a group whose neurons are turned round

    @classmethod
    def of(cls, groups: Rule, sigma: Nonlinearity) -> Mirrored:
        """The groups of a rule."""
        g, weight = groups
        alone = cls(groups, g, np.arange(g.size), np.ones(g.size), np.ones(g.size))
        if g.size == 1 or not sigma.is_odd:
            return alone
        found: Any = np.unique(np.round(np.abs(g), _SAME_GROUP), return_inverse=True)
        size, place = found
        if size.size == g.size:
            return alone
        whole = np.bincount(place, weights=weight).astype(np.float64)
        return cls((size, whole), g, place, weight / whole[place], np.where(g < 0.0, -1.0, 1.0))


def finite_groups(problem: Problem) -> Rule | None:
    """The rule for the readout law if finitely many values are exact, else None."""
    found = _finite_law(problem)
    return None if found is None else _values(*found)


def _values(values: tuple[float, ...], probabilities: tuple[float, ...]) -> Rule:
    return np.array(values), np.array(probabilities)


def _finite_law(problem: Problem) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Values and probabilities of a law, or of a law that gives the same results; else None."""
    law = problem.law
    if problem.step_size == 0.0:
        return (1.0,), (1.0,)
    if problem.sigma.slope_variance == 0.0:  # affine: only E g and E g² matter
        mean = law.mean if coefficients(problem.sigma, 0)[0] else 1.0
        if abs(mean) >= 1.0:
            return (math.copysign(1.0, mean),), (1.0,)
        return (-1.0, 1.0), (0.5 * (1 - mean), 0.5 * (1 + mean))
    return (law.values, law.probabilities) if law.is_finite else None


def choose(problem: Problem, weights: SpikedWeights, effort: Effort) -> Resolution:
    """Rules for one problem at one effort."""
    groups = _groups(problem, weights, effort.groups)
    nodes = _nodes(problem, weights, effort.nodes)
    rough = ROUGH_GAUSS if groups[0] is saturating_gauss_law else ROUGH_GROUPS * _GROUP_SPACING
    by_reach = _residuals_by_reach(problem, weights, is_finite=groups[0] is _values)
    return Resolution(groups, nodes, rough, effort.slack, effort.residuals, by_reach)


def shared_rules(rules: dict[int, Resolution]) -> dict[int, Resolution]:
    """The same with fewer different rules: finer ones of others where these cost little more.

    Problems that share them are solved together, each near solutions of the others.
    """
    counts = Counter(rules.values())
    kept: list[Resolution] = []
    instead: dict[Resolution, Resolution] = {}
    for own in sorted(counts, key=_fineness, reverse=True):
        size = own.sizes[1]
        most = max(_SLIGHTLY * size, size + _CALL_NODES / counts[own])
        others = [other for other in kept if other.sizes[1] <= most and other.is_finer(own)]
        instead[own] = others[-1] if others else own
        kept.append(instead[own])
    return {index: instead[own] for index, own in rules.items()}


def _fineness(rule: Resolution) -> tuple[Any, ...]:
    return (*rule.sizes, *sorted(-width for _, width in rule.nodes[0]))


@dataclass(frozen=True)
class Roughness:
    """How much solutions vary from node to node and from group to group, for each problem."""

    nodes: FloatArray  # of log(1 + χ)
    groups: FloatArray  # of log(V2/N)

    @classmethod
    def of(cls, chi: FloatArray, v2: FloatArray, kappa: FloatArray, size: int) -> Roughness:
        """From χ (B, jQ) at nodes of κ (Q,) and V2/N (B, jK), j times one after the other.

        `size` is the number K of groups of the readout law.
        """
        inner = np.abs(kappa) < INNER
        chi = np.log1p(chi.reshape(len(chi), -1, kappa.size)[..., inner])
        nodes = np.abs(np.diff(chi, axis=2)).max(axis=(1, 2))
        each = np.log(v2).reshape(len(v2), -1, size)
        groups = np.abs(np.diff(each, axis=2)).max(axis=(1, 2), initial=0.0)
        return cls(nodes, groups)

    def of_problems(self, count: int) -> Roughness:
        """The roughest row of each of `count` problems, which have equally many."""
        rows = (part.reshape(count, -1).max(axis=1) for part in (self.nodes, self.groups))
        return Roughness(*rows)

    def raised(self, efforts: list[Effort], resolution: Resolution) -> list[Effort]:
        """Each problem's effort, raised where its solution varies faster than its rules resolve."""
        groups = self.groups if resolution.adapts else np.zeros_like(self.groups)
        rough = resolution.rough_groups
        raised = list(efforts)
        for row in np.flatnonzero((groups > rough) | (self.nodes > ROUGH_NODES)):
            own = efforts[row]
            raised[row] = replace(
                own,
                groups=_next_level(own.groups, float(groups[row]) / rough),
                nodes=_next_level(own.nodes, float(self.nodes[row]) / ROUGH_NODES),
            )
        return raised


def rounded_down(scale: float) -> float:
    """The power of √2 at or below scale, within sensible bounds."""
    return float(2.0 ** (0.5 * math.floor(2.0 * math.log2(min(1.0, max(scale, _SMALLEST_SCALE))))))


def _reach(problem: Problem, weights: SpikedWeights) -> float:
    """The effect of the step on a neuron with g = 1, for every likely initial output."""
    drift = _largest_drift(problem, weights)
    return max(abs(weights.unit_shift), drift, math.sqrt(weights.unit_growth))


def _residuals_by_reach(problem: Problem, weights: SpikedWeights, *, is_finite: bool) -> float:
    """Factor on the nodes of the law of r: large steps are far from polynomials in r."""
    star = problem.star
    if not problem.has_square_loss or not (isinstance(star, Nonlinearity) or star.is_single):
        return 1.0
    reach = _reach(problem, weights)
    table = _RESIDUALS_OF_VALUES if is_finite else _RESIDUALS_BY_REACH
    return next(factor for most, factor in table if reach <= most)


def _groups(problem: Problem, weights: SpikedWeights, refine: float) -> GroupKey:
    finite = _finite_law(problem)
    if finite is not None:
        return _values, finite
    u, reach = abs(weights.unit_shift), _reach(problem, weights)
    if problem.d < _FEW_INPUTS:
        refine *= _FEW_INPUTS_REFINEMENT[problem.initial]
    few = _few_gauss_nodes(problem, weights, reach, refine)
    if few is not None:
        return few
    if problem.d < _FEW_INPUTS and problem.initial == "gaussian":
        refine *= _SHORT_ROWS_REFINEMENT
    wide = max(0.0, math.log10(problem.width) - 4.0)  # smaller terms are seen
    if problem.sigma.oscillates:  # its nodes are close for another reason
        wide = 0.0
    spacing = _GROUP_SPACING / (refine * (1.0 + _WIDTH_REFINEMENT * wide))
    scale = rounded_down(0.5 * _shortest_row(problem) / max(reach, 1e-300))
    widest = 1.0
    if problem.sigma.oscillates:
        widest = rounded_down(_OSCILLATION_SPACING / max(u, 1e-300))
    many = math.log10(problem.width * (1.0 + 1.0 / problem.ridge))
    tail = _TAIL + 0.12 * many + 0.25 * growth_degree(problem.sigma)
    end = 0.5 * math.ceil(2.0 * (tail + min(1.5, 0.5 * math.log2(refine))))
    span = 3.0**0.5 if problem.law.name == "uniform" else end
    if 2 * span / widest / spacing > MOST_GROUPS:
        cause = f"oscillates {u:.3g} times" if problem.sigma.oscillates else "varies too fast"
        raise NotConverged(
            f"take a smaller step or a readout law of few values: activation {problem.sigma.name} "
            f"{cause} over the readout law (more than {MOST_GROUPS} groups of neurons needed)"
        )
    if problem.law.name == "uniform":
        return stretched_uniform, (scale, widest, spacing, _UNIFORM_EXTRA)
    centres = ((0.0, scale), *_shortest(weights, end))
    return stretched_normal, (centres, widest, spacing, end)


def _few_gauss_nodes(
    problem: Problem, weights: SpikedWeights, reach: float, refine: float
) -> GroupKey | None:
    """Few nodes for a step that is not too large; None where they do not resolve the law.

    `reach` is the effect of the step on a neuron with g = 1. Functions of g level off beyond
    |g| = 1/reach, except for activations that oscillate and where the step cancels the weights.
    """
    fitting = (rule for rule in _NODES_BY_REACH if reach <= rule[0])
    most, needed = next(fitting, (math.inf, math.inf))
    if problem.law.name == "uniform":
        needed *= _UNIFORM_NODES
    needed *= 1.0 + 0.5 * (growth_degree(problem.sigma) - 1) * most
    if problem.sigma.oscillates:
        needed *= 1.0 + abs(weights.unit_shift)
    count = next((count for count in _GAUSS_COUNTS if needed * refine <= count), None)
    if count is None or _largest_drift(problem, weights) * _TAIL > 0.3:
        return None
    return saturating_gauss_law, (problem.law.name, count, _SATURATION * most / (1.0 + 0.4 * most))


def _largest_drift(problem: Problem, weights: SpikedWeights) -> float:
    """|unit_drift|, for every likely mean of the initial output (41)."""
    drift = abs(weights.unit_drift)
    if problem.residual == "labels":
        return drift
    c = coefficients(problem.sigma, 2)
    step = problem.step_size / problem.width**0.5
    return float(drift + 2.0 * abs(c[2]) * step * _LIKELY * abs(c[0]))


def _shortest(weights: SpikedWeights, end: float) -> tuple[tuple[float, float], ...]:
    """The g at which the step nearly cancels a neuron's initial weights, and the width in g."""
    drift = weights.unit_drift
    if abs(drift) * end <= 1.0:
        return ()
    width = rounded_down(math.sqrt(weights.unit_growth) / drift**2)
    return ((-round(1.0 / drift, 2), width),)


def _nodes(problem: Problem, weights: SpikedWeights, refine: float) -> NodeKey:
    sigma = problem.sigma
    largest = max(map(abs, problem.law.values)) if problem.law.is_finite else 1.0
    u = abs(weights.unit_shift) * largest
    scale = 0.5 * _shortest_row(problem) / u if u > 0 else 1.0
    far = max((abs(k) for k in sigma.kinks), default=0.0)
    copies = max(1 if u <= _STEEP_SHIFT else 2, math.ceil(far / 2))
    centres = ((0.0, rounded_down(scale)),) * copies
    widest = rounded_down(1.0 / u) if sigma.oscillates and u > 0 else 1.0
    end = 7.25 + 0.25 * (growth_degree(problem.star) + growth_degree(sigma))
    # With little ridge χ is large but where an activation saturates: rare κ make the train mse.
    end += 0.5 * max(0, math.ceil(-4.0 - math.log10(problem.ridge)))
    fresh = problem.shared_rows == 0 or problem.step_size == 0.0
    plain = problem.has_square_loss and fresh and problem.directions == 1
    gentle = plain and u <= _STEEP_SHIFT
    spacing = (_WIDE_NODE_SPACING if gentle else _NODE_SPACING) / refine
    if gentle and min(scale, _smoothest(problem, weights)) >= _SMOOTH_SCALE:
        centres, spacing = ((0.0, _SMOOTH_SCALE),), _SMOOTH_NODE_SPACING / refine
    if 2 * end / widest / spacing > MOST_NODES:
        raise NotConverged(
            f"take a smaller step: activation {sigma.name} oscillates {u:.3g} times along the "
            f"learned direction (more than {MOST_NODES} quadrature nodes needed)"
        )
    return centres + _target_centres(problem, weights), widest, spacing, end


def _shortest_row(problem: Problem) -> float:
    """ρ of the groups of short rows of W0, before the step (143): they vary with κ at ρ/u."""
    if problem.initial != "gaussian":
        return 1.0
    return math.sqrt(1.0 - math.sqrt(2.0 / max(problem.d, FEWEST_INPUTS)))


def _smoothest(problem: Problem, weights: SpikedWeights) -> float:
    """The scale in κ at which terms of finite d and the target vary."""
    if problem.d < _FEW_INPUTS or problem.covariance is not None:
        return 1.0
    if isinstance(problem.star, HermiteSum):
        return math.inf
    gamma = abs(weights.alignment)
    return _BLURS * math.sqrt(max(1.0 - gamma**2, 0.0)) / max(gamma, 1e-300)


def _target_centres(problem: Problem, weights: SpikedWeights) -> tuple[tuple[float, float], ...]:
    """Places where a kinked target is sharp when seen along κ."""
    gamma = abs(weights.alignment)
    blur = math.sqrt(max(1.0 - gamma**2, 1e-16)) / max(gamma, 1e-300)
    if blur >= 0.7:
        return ()
    if isinstance(problem.star, AlignedTarget):  # its kinks, if any, are not known
        return ()
    places = (kink / weights.alignment for kink in problem.star.kinks)
    return tuple((place, rounded_down(blur)) for place in places if abs(place) < 9.0)


def target_nodes(problem: Problem, weights: SpikedWeights, *, degree: int) -> Rule:
    """Nodes for the target and for powers of κ up to `degree`, whatever the activation."""
    centres = ((0.0, 1.0), *_target_centres(problem, weights))
    end = 9.0 + 0.25 * (growth_degree(problem.star) + degree)
    return stretched_normal(centres, 1.0, 0.4, end)


def growth_degree(f: Nonlinearity | AlignedTarget) -> int:
    """The power with which a function grows: that of its polynomial, 1 for any other."""
    if isinstance(f, AlignedTarget):
        return f.growth
    if isinstance(f, Shifted):
        return growth_degree(f.base)
    return len(f.coefficients) - 1 if isinstance(f, HermiteSum) else 1
