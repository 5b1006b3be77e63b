"""Rare large entries: the powers of rows and columns of F vary from one to the next.

Equations (7)–(10) take Σ_j F_ij² R_jj for its mean. Entries with a fourth cumulant k_4 = k_4(κ, g)
make it vary: χ of a sample by a variance Σ_g k_4 V2_g²/N_g, and the denominator of (10) of a
neuron by n E[k_4/(1+χ)²]. An entry enters its own row's χ but not the weight 1/(1+χ) with which
its column sees it (a cavity), so ν² in χ varies with the row only and ν² in V̂2 with the column.
This is the first correction in k_4/n, the one known for sparse matrices. It is kept for
activations with heavy tails, where it moves the edge by more than the fluctuations of the edge.
An activation without a linear part learns nothing and keeps the plain law of Marchenko and Pastur.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...functions.special import normal_quantile
from ...problem import Problem
from ...types import FloatArray
from ..batch import Batch

_HEAVY = 0.14  # relative spread of a row's or column's power that is worth nodes
_POINTS = 161
_NO_SLOPE = 1e-9
_LEAST = 0.02  # of ν² that is left at the lowest node


def with_wobble(problem: Problem, batch: Batch) -> Batch:
    """Two nodes for every sample and every group, where rows and columns vary enough."""
    if abs(problem.sigma.mean_slope) < _NO_SLOPE:
        return batch
    cumulant = fourth_cumulants(problem, batch)  # (Q, K)
    share = batch.neurons[0] / batch.neurons.sum()
    square = (batch.linear[0] ** 2 + batch.spread[0]) ** 2
    heavy = float(batch.weight @ cumulant @ share) / float(batch.weight @ square @ share)
    if heavy / min(problem.n, problem.width) < _HEAVY**2:
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
        target_mean=np.repeat(batch.target_mean, 2, axis=1),
        target_linear=np.repeat(batch.target_linear, 2, axis=1),
        target_rest=np.repeat(batch.target_rest, 2, axis=1),
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
