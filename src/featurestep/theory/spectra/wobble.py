"""The powers of rows and columns of F vary from one to the next: by ‖x‖, by rare large entries.

Equations (7)–(10) take Σ_j F_ij² R_jj for its mean. Entries with a fourth cumulant k_4 = k_4(κ, g)
make it vary: χ of a sample by a variance Σ_g k_4 V2_g²/N_g, and the denominator of (10) of a
neuron by n E[k_4/(1+χ)²]. An entry enters its own row's χ but not the weight 1/(1+χ) with which
its column sees it (a cavity), so ν² in χ varies with the row only and ν² in V̂2 with the column.
This is the first correction in k_4/n, the one known for sparse matrices. It is kept for
activations with heavy tails, where it moves the edge by more than the fluctuations of the edge.
An activation without a linear part learns nothing and keeps the plain law of Marchenko and Pastur.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ...core.problem import Problem
from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity, coefficients
from ...functions.quadrature import Rule, gauss_hermite, normal_quantile
from ..moments import Batch

_SEEN = 0.14  # relative spread of a row's or column's power that is worth nodes
_POINTS = 161
_NO_SLOPE = 1e-9
_HEAVY = 0.06  # spread of a row's variance, from that of ‖x‖, that is worth nodes
_RADII = 3  # nodes of ‖x‖, whose spread is small
_LIFTED = 0.3  # strength of the spike that ‖x‖ makes through c_2, against the bulk, likewise
_LEAST = 0.02  # of ν² that is left at the lowest node


def varied(problem: Problem, batch: Batch, varies: bool) -> Batch:
    """With the spread of ‖x‖ and, if it `varies`, the chance of rows and columns.

    The latter by two nodes for every sample and every group, where it is large enough.
    """
    batch = _with_radii(problem, batch)
    if not varies or abs(problem.sigma.mean_slope) < _NO_SLOPE:
        return batch
    cumulant = fourth_cumulants(problem, batch)  # (Q, K)
    share = batch.neurons[0] / batch.neurons.sum()
    square = (batch.linear[0] ** 2 + batch.spread[0]) ** 2
    heavy = float(batch.weight @ cumulant @ share) / float(batch.weight @ square @ share)
    if heavy / min(problem.n, problem.width) < _SEEN**2:
        return batch
    rows = np.sqrt(cumulant @ share / problem.width)[:, None]  # spread of ν² in χ
    columns = np.sqrt(cumulant / problem.n)  # and in V̂2
    return _split(batch, rows, columns)


def fourth_cumulants(problem: Problem, batch: Batch) -> FloatArray:
    """k_4 of a feature given κ, (Q, K), over as many entries as the features have."""
    end = -normal_quantile(0.25 / (problem.n * problem.width))
    z = np.linspace(-end, end, _POINTS)
    weight = np.exp(-0.5 * z * z)
    weight /= weight.sum()
    places = batch.shift[0] * batch.kappa[:, None]
    values = problem.sigma(places[:, :, None] + batch.norm[0][:, None] * z)
    values -= (values @ weight)[:, :, None]
    np.square(values, out=values)
    return np.asarray(np.maximum(values**2 @ weight - 3.0 * (values @ weight) ** 2, 0.0))


def _split(batch: Batch, rows: FloatArray, columns: FloatArray) -> Batch:
    sign, half = np.array([-1.0, 1.0]), np.full(2, 0.5)
    kappa, weight, row_sign = product(batch.kappa, batch.weight, sign, half)
    g, neurons, column_sign = product(batch.g, batch.neurons[0], sign, half)
    mirrored = batch.mirrored and batch.kappa.size % 2 == 0 and batch.g.size % 2 == 0

    def groups(values: FloatArray) -> FloatArray:
        return np.repeat(values, 2, axis=-1)

    def both(values: FloatArray) -> FloatArray:
        return np.repeat(groups(values), 2, axis=-2)

    spread = both(batch.spread)
    least = _LEAST * spread
    seen = spread + row_sign[:, None] * np.repeat(rows, 2, axis=0)
    felt = spread + column_sign * both(columns)
    return replace(
        batch,
        kappa=kappa,
        weight=weight,
        g=g,
        neurons=neurons[None],
        shift=groups(batch.shift),
        norm=groups(batch.norm),
        lean=groups(batch.lean),
        mean=both(batch.mean),
        linear=both(batch.linear),
        spread=np.maximum(seen, least),
        felt=np.maximum(felt, least),
        mirrored=mirrored,
    )


def product(
    kappa: FloatArray, weight: FloatArray, radius: FloatArray, share: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes (κ, r), ordered such that reversal takes (κ, r) to (−κ, r) if κ has an even size."""
    half, r = kappa.size // 2, radius.size
    radii = np.concatenate([np.tile(radius, half), np.tile(radius[::-1], kappa.size - half)])
    shares = np.concatenate([np.tile(share, half), np.tile(share[::-1], kappa.size - half)])
    return np.repeat(kappa, r), np.repeat(weight, r) * shares, radii


def _with_radii(problem: Problem, batch: Batch) -> Batch:
    """Nodes (κ, ‖x‖) where the spread of ‖x‖ can be seen."""
    radius, share = _radius_rule(problem)
    if radius.size == 1:
        return batch
    nodes, masses, radii = product(batch.kappa, batch.weight, radius, share)
    norm = batch.norm[:, None, :] * radii[:, None]  # (1, Q, K)
    moments = problem.sigma.moments(norm, batch.shift[:, None, :] * nodes[:, None])
    return replace(
        batch,
        kappa=nodes,
        weight=masses,
        mean=moments.mean,
        linear=batch.norm[:, None, :] * moments.slope,  # w·x has the spread of ‖x‖ already
        spread=moments.spread,
    )


def _radius_rule(problem: Problem) -> Rule:
    """Nodes of ‖x‖/√d, where its spread 1/√(2d) can be seen in the spectrum."""
    sigma, d = problem.sigma, problem.d
    heavy = is_heavy(problem)
    c = coefficients(sigma, 2)
    variance = sigma.second_moment - float(c[0]) ** 2
    bulk = variance * (1.0 + math.sqrt(problem.width / problem.n)) ** 2
    lifted = 2.0 * float(c[2]) ** 2 * problem.width / d > _LIFTED * bulk
    if not (heavy or lifted):
        return np.ones(1), np.ones(1)
    z, weight = gauss_hermite(_RADII)
    cube = 2.0 / (9.0 * d)  # Wilson and Hilferty: (‖x‖²/d)^(1/3) is normal
    return np.maximum(1.0 - cube + math.sqrt(cube) * z, 0.1) ** 1.5, weight


def is_heavy(problem: Problem) -> bool:
    """Whether the spread of ‖x‖ makes that of a row's power visible."""
    return _row_sensitivity(problem.sigma) / math.sqrt(2.0 * problem.d) > _HEAVY


def _row_sensitivity(sigma: Nonlinearity) -> float:
    """|d log/d log r| at r = 1 of a row's mean square beside w·x: of ν², μ² and (m − c_0)²."""
    step = 1e-3
    sizes = []
    c_0 = float(coefficients(sigma, 0)[0])
    for radius in (1.0 - step, 1.0 + step):
        mean, slope, spread = (
            float(np.ravel(m)[0]) for m in sigma.moments(np.array([radius]), np.zeros(1))
        )
        sizes.append((mean - c_0) ** 2 + slope**2 + spread)
    return abs(math.log(sizes[1] / sizes[0])) / (2.0 * step)
