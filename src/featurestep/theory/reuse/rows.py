"""Classes of rows: what a row of the step, of the readout, of both or of a test sample is made of.

A training row has t = β⋆·x, s̃ = its part along the rest of β, the label y = r, and κ = γt + qs̃, its
part along β without the row's own share in β (61). Features depend on (κ, r) alone, and everything
else on t, s̃ and y up to second order: a class has M nodes of r, Q nodes of κ and at each the second
moments of (1, t, s̃, y), with t² − 1, ts̃ and s̃² − 1 for (37). Rows that the step has not seen are
one node, r = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity
from ...functions.quadrature import gauss_from_measure, trapezoid_normal
from ..labels import target_rule, typical_rule

# Spacings of t, and of the noise over its size, by this size. Nodes of r must see neither: values
# of t show where there is no noise, those of the noise where many t have the same label.
_SPACINGS = ((0.0, 0.02, 1.0), (0.05, 0.04, 0.7), (np.inf, 0.1, 0.28))
_IF_FLAT = 0.14  # of the noise, for targets that may be constant between kinks
_NOISE_END = 8.5
_NO_WEIGHT = 1e-17  # of a value of t and the noise
ONE, T, S, Y = range(4)  # places of 1, t, s̃ and y among the moments


@dataclass(frozen=True)
class RowClass:
    """Rows of one kind, at M nodes of r and Q nodes of κ."""

    r: FloatArray  # (M,) residual in the step; 0 for rows that it has not seen
    kappa: FloatArray  # (Q,)
    moments: FloatArray  # (M, Q, 4, 4) E[(1, t, s̃, y)(1, t, s̃, y)ᵀ] on each node
    squares: FloatArray  # (M, Q, 3, 7) E[q(1, t, s̃, y, q)ᵀ] for q = (t² − 1, ts̃, s̃² − 1)
    step_share: float  # rows of this class that the step uses, over n_step
    readout_share: float  # rows of this class that the readout uses, over n_step

    @property
    def by_residual(self) -> FloatArray:
        """The moments at every node of r, (M, 4, 4)."""
        return np.asarray(self.moments.sum(axis=1))


@dataclass(frozen=True)
class _Grid:
    """t and the label on a fine grid, with cardinal functions of r."""

    t: FloatArray  # (P,)
    nodes: FloatArray  # (M,) of r
    cardinal: FloatArray  # (P, M) weight × E over the noise of the cardinal functions of r


@lru_cache(maxsize=64)
def _grid(star: Nonlinearity, noise_std: float, count: int, samples: float | None) -> _Grid:
    """Gauss nodes of the law of r, in asinh(2r/rms r), with all of t kept.

    With `samples`, t and the noise are cut off at the largest value of so many draws.
    """
    spacing, between = next(fine for most, *fine in _SPACINGS if noise_std <= most)
    between = min(between, _IF_FLAT) if star.kinks else between
    t, w_t = target_rule(star, spacing)
    added, w_x = trapezoid_normal(_NOISE_END, between)
    if samples is not None:
        (t, w_t), (added, w_x) = typical_rule(samples), typical_rule(samples)
    if noise_std == 0.0:
        added, w_x = np.zeros(1), np.ones(1)
    r, w = np.add.outer(star(t), noise_std * added), np.multiply.outer(w_t, w_x)
    place, kept = np.nonzero(w > _NO_WEIGHT)
    r, w = r[place, kept], w[place, kept]
    scale = 0.5 * np.sqrt(w @ r**2)
    rule = gauss_from_measure(np.arcsinh(r / scale), w, count)
    each = (rule.polynomials * rule.root).T @ rule.weighted  # (points, M)
    first = np.searchsorted(place, np.arange(t.size))
    has = np.unique(place)
    cardinal = np.zeros((t.size, rule.nodes.size))
    cardinal[has] = np.add.reduceat(each, first[has], axis=0)
    return _Grid(t, scale * np.sinh(rule.nodes), cardinal)


def step_rows(
    star: Nonlinearity,
    noise_std: float,
    alignment: float,
    across: float,
    kappa: FloatArray,
    count: int,
    *,
    readout_share: float,
    samples: float | None = None,
) -> RowClass:
    """All rows of the step, at nodes of (κ, r): κ = γt + qs̃, y = r (eq. 61).

    `samples` cuts off the laws of t and the noise.
    kappa: equispaced, closer than q: their weights are those of the trapezoidal rule in s̃. In r
    they are interpolatory, as those of `residual_law`.
    """
    grid = _grid(star, noise_std, count, samples)
    density, s = _given_t(grid.t, alignment, across, kappa)
    r, t = grid.nodes, grid.t[:, None]
    one = np.ones_like(s)
    values = (one, t * one, s)

    def averaged(f: FloatArray) -> FloatArray:
        return grid.cardinal.T @ (density * f)  # (M, Q)

    def with_all(f: FloatArray) -> FloatArray:
        known = [averaged(f * g) for g in values]
        return np.stack([*known, r[:, None] * known[ONE]], axis=-1)  # y = r

    rows = [with_all(f) for f in (one, t * one, s)]
    rows.append(r[:, None, None] * rows[ONE])
    quadratic = (t**2 - one, t * s, s**2 - 1.0)
    own = np.stack([np.stack([averaged(f * g) for g in quadratic], -1) for f in quadratic], 2)
    beside = np.stack([with_all(f) for f in quadratic], axis=2)
    squares = np.concatenate([beside, own], axis=-1)
    return RowClass(r, kappa, np.stack(rows, axis=2), squares, 1.0, readout_share)


def other_rows(
    star: Nonlinearity,
    noise_std: float,
    alignment: float,
    across: float,
    kappa: FloatArray,
    *,
    readout_share: float,
    samples: float | None = None,
) -> RowClass:
    """Rows that the step has not seen, of the readout or of a test sample: one node r = 0."""
    t, weight = target_rule(star) if samples is None else typical_rule(samples)
    density, s = _given_t(t, alignment, across, kappa)
    y = star(t)
    one = np.ones_like(s.T)
    values = np.stack([one, t * one, s.T, y * one], axis=1)  # (Q, 4, P)
    quadratic = np.stack([t**2 - one, t * s.T, s.T**2 - 1.0], axis=1)
    weighted = values * (weight[:, None] * density).T[:, None, :]
    moments = np.matmul(values, weighted.transpose(0, 2, 1))
    moments[:, Y, Y] += noise_std**2 * moments[:, ONE, ONE]
    every = np.concatenate([values, quadratic], axis=1)
    squares = np.matmul(
        quadratic * (weight[:, None] * density).T[:, None], np.swapaxes(every, 1, 2)
    )
    return RowClass(np.zeros(1), kappa, moments[None], squares[None], 0.0, readout_share)


def _given_t(
    t: FloatArray, alignment: float, across: float, kappa: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Probabilities of the nodes of κ given t, (P, Q), and s̃ there."""
    s = (kappa - alignment * t[:, None]) / across
    square = s**2
    density = np.exp(0.5 * (square.min(axis=1, keepdims=True) - square))
    return density / density.sum(axis=1, keepdims=True), s
