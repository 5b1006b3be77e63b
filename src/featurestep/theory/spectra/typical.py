"""The laws of κ, ‖x‖ and g as n samples and N neurons show them.

Among n samples hardly any |κ| exceeds κ_n with P(|κ| > κ_n) = ½/n. Beyond it a row of F would lie
outside the bulk by itself, but no such row is there; with the full law an unbounded activation has
a bulk without an edge. So the rules end at κ_n (and for a Gaussian readout law at its g_N), and
their outer weights are chosen such that low moments remain those of the full law.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ...core.errors import NotConverged
from ...core.problem import Problem
from ...core.spiked import SpikedWeights, spiked_weights
from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity, coefficients
from ...functions.quadrature import (
    Rule,
    bent_law,
    gauss_hermite,
    gauss_law,
    largest_expected,
    stretched_uniform,
    truncated_normal,
    truncated_normal_size,
)
from ..exact.spikes import FEW_R_NODES, R_NODES, ExactSide, exact_side
from ..exact.spikes import MOST_GROUPS as MOST_EXACT
from ..labels import along_first
from ..method import bulk_left_out, chosen_method
from ..moments import Batch, build_batch
from ..resolution import MOST_GROUPS, MOST_NODES, finite_groups, rounded_down
from .fineness import FIRST, Rung
from .wobble import is_heavy, varied

_SPACING = 0.5
_BULK_GROUPS = (5, 6)  # nodes of a continuous law, for a bulk with exact weights
_STRETCHED = 1e-3  # of a neuron's square, by the step, from which on a continuous law has them
_APART = 0.5  # distance of neighbouring groups' bulks over their width, at most
_LARGE_STEP = 1.25  # η/√N from which on it takes the latter
_BEND = {True: 0.5, False: 0.3}  # of `bent_law` over a step's reach, if σ is bounded or not
_FAR = 20.0  # where a bounded activation has taken its largest values
_SPIKE_GROUPS = 0.6  # fineness of the rule for its spikes
_ROUGH_GROUPS = 0.6  # of that, where drawing accuracy is enough
_BEYOND_ALL = 100.0  # |κ| of nodes that stand for the weights' own unknowns
_KAPPA = 7  # nodes of κ for a neuron's mean square


def typical_batch(problem: Problem, rung: Rung = FIRST, *, refine: float = 1.0) -> Batch:
    """Section 3's arrays for one problem, on the rules of a typical sample.

    If it `varies`, rows and columns do so by chance where that can be seen (`wobble`); a `rough`
    one has exact weights on fewer nodes of r, and spikes of fewer groups.
    """
    nodes, nothing = _node_rule(problem, refine), np.zeros((1, 1))
    exact = spectral_method(problem, light=rung.light) == "exact"
    if exact and finite_groups(problem) is None:  # spikes need more groups than the bulk
        fine = _SPIKE_GROUPS * (refine * (_ROUGH_GROUPS if rung.rough else 1.0))
        few, many = _few_groups(problem), _group_rule(problem, fine)
    else:
        few, many = _group_rule(problem, refine), None
    batch = build_batch([along_first(problem)], [spiked_weights(problem)], few, nodes)
    # Labels do not enter a spectrum.
    batch = replace(batch, target_mean=nothing, target_linear=nothing, target_rest=nothing)
    if not exact or is_heavy(problem):
        batch = varied(problem, batch, rung.varies)
    if not exact:
        return batch
    residuals = FEW_R_NODES if rung.rough else R_NODES
    return _with_exact_weights(problem, batch, rung.stray, many, residuals)


def spectral_method(problem: Problem, *, light: bool = False) -> str:
    """Whether a spectrum has exact weights: where the readout law has not too many values.

    Heavy tails double the groups, so that laws of up to three values have them then. A `light`
    spectrum has them for laws of few values only.
    """
    finite, weights, heavy = finite_groups(problem), spiked_weights(problem), is_heavy(problem)
    if finite is not None and (1 + heavy) * finite[0].size > MOST_EXACT:
        return "isotropic"
    if finite is None and (light or heavy or not _stretches(problem, weights)):
        return "isotropic"
    return chosen_method(problem, weights, "auto")


def _stretches(problem: Problem, weights: SpikedWeights) -> bool:
    """Whether exact weights are worth their price for a continuous law.

    Below the threshold they move edges by less than 1e-4 of themselves, and spikes by 0.2 %. Few
    groups stand for the law where the bulks that each would fill by itself, of relative width
    about 4√(N/n) or 4√(n/N), overlap.
    """
    ratio = problem.width / problem.n
    g, _ = _few_groups(problem)
    kappa, share = gauss_hermite(_KAPPA)
    norm = weights.norm(g)
    moments = problem.sigma.moments(norm, weights.shift(g) * kappa[:, None])
    squares = np.sort(np.log(share @ (moments.spread + (norm * moments.slope) ** 2)))
    apart = float(np.diff(squares).max()) / (4.0 * math.sqrt(min(ratio, 1.0 / ratio)))
    norms = problem.initial == "gaussian" and float(coefficients(problem.sigma, 2)[2]) != 0.0
    seen = norms or bulk_left_out(problem, weights) > _STRETCHED
    return problem.directions > 1 or (seen and apart < _APART)


def _few_groups(problem: Problem) -> Rule:
    """Groups of a continuous law for a bulk with exact weights.

    Features of a bounded activation level off where its weights grow. Those of others grow with
    the weights, and the largest decide on the edge: the outermost stay where Gauss nodes lie.
    """
    law = problem.law.name
    count = _BULK_GROUPS[problem.step_size > _LARGE_STEP * math.sqrt(problem.width)]
    bounded = _is_bounded(problem.sigma)
    end = None if bounded else float(gauss_law(law, count)[0][-1])
    return bent_law(law, count, _BEND[bounded] * _reach(spiked_weights(problem)), end)


def _is_bounded(sigma: Nonlinearity) -> bool:
    z = np.linspace(-2.0 * _FAR, 2.0 * _FAR, 801)
    with np.errstate(all="ignore"):
        values = np.abs(sigma(z))
    return bool(values.max() <= 1.01 * values[np.abs(z) <= _FAR].max())


def _reach(weights: SpikedWeights) -> float:
    """The g^-1 at which a step's effect on a neuron is of order 1."""
    drawn = (abs(weights.unit_shift), abs(weights.unit_drift), math.sqrt(weights.unit_growth))
    return max(*drawn, 1e-300)


def _with_exact_weights(
    problem: Problem, batch: Batch, stray: float, many: Rule | None, residuals: int
) -> Batch:
    """The batch with exact weights, of a step on a typical sample."""
    share = batch.neurons[0] / batch.neurons.sum()
    samples = problem.n_step / stray
    side = exact_side(problem, (batch.g, share), batch.kappa, samples, many, nodes=residuals)
    seen, felt = side.columns.spread, None
    if is_heavy(problem):
        side, seen, felt = _as_varied(problem, batch, side)
    step, columns, more = side.step, side.columns, side.unknowns

    def padded(values: FloatArray) -> FloatArray:
        wide = [(0, 0)] * values.ndim
        wide[min(1, values.ndim - 1)] = (0, more)
        return np.pad(values, wide)

    return replace(
        batch,
        kappa=np.append(batch.kappa, _BEYOND_ALL + np.arange(more)),
        weight=padded(batch.weight),
        shift=step.shift,
        norm=step.norm,
        lean=np.zeros_like(batch.lean),
        mean=padded(columns.plain[:, :, : batch.g.size]),
        linear=padded(step.norm[:, None, :] * columns.slope),
        spread=padded(seen),
        felt=None if felt is None else padded(felt),
        mirrored=False,
        exact=side,
    )


def _as_varied(
    problem: Problem, batch: Batch, side: ExactSide
) -> tuple[ExactSide, FloatArray, FloatArray | None]:
    """Columns, and ν² in χ and in V̂2, with what varies in the batch; of weights alone, to compare.

    Exact weights change what varies little: their part and that of ‖x‖ and of chance are put
    together at first order.
    """
    places = batch.shift[:, None, :] * batch.kappa[:, None]
    plain = problem.sigma.moments(batch.norm[:, None, :], places)
    columns, size = side.columns, batch.g.size
    means = columns.plain.copy()
    means[:, :, :size] += batch.mean - plain.mean
    slope = columns.slope + batch.linear / batch.norm[:, None, :] - plain.slope
    seen = columns.spread * (batch.spread / plain.spread)
    felt = None if batch.felt is None else columns.spread * (batch.felt / plain.spread)
    return side._replace(columns=replace(columns, plain=means, slope=slope)), seen, felt


def _group_rule(problem: Problem, refine: float) -> Rule:
    exact = finite_groups(problem)
    if exact is not None:
        return exact
    weights = spiked_weights(problem)
    reach = _reach(weights)
    scale = rounded_down(0.5 / reach)
    widest = rounded_down(0.6 / reach) if problem.sigma.oscillates else 1.0
    spacing = _SPACING / refine
    if problem.law.name == "uniform":
        return stretched_uniform(scale, widest, spacing)
    end = largest_expected(problem.width)
    _refuse_if_many(
        problem, truncated_normal_size(end, scale, widest, spacing), MOST_GROUPS, "groups"
    )
    return truncated_normal(end, scale, widest, spacing)


def _node_rule(problem: Problem, refine: float) -> Rule:
    sigma, weights = problem.sigma, spiked_weights(problem)
    largest = max(map(abs, problem.law.values)) if problem.law.is_finite else 1.0
    shift = max(abs(weights.unit_shift) * largest, 1e-300)
    scale = rounded_down(0.5 / shift)
    widest = rounded_down(1.0 / shift) if sigma.oscillates else 1.0
    end, spacing = largest_expected(problem.n), _SPACING / refine
    _refuse_if_many(
        problem, truncated_normal_size(end, scale, widest, spacing), MOST_NODES, "nodes"
    )
    return truncated_normal(end, scale, widest, spacing)


def _refuse_if_many(problem: Problem, count: int, most: int, what: str) -> None:
    if count > most:
        raise NotConverged(
            f"activation {problem.sigma.name} oscillates over the step's shifts: "
            f"more than {most} {what} would be needed"
        )
