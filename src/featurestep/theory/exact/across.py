"""Samples with a large s have a larger norm and influence: χ(κ, h, s) to first order (152).

Tables of section 51 know the norm ‖x‖² and κ², and an average over s. To first order in 1/d the
influence of a sample is χ + (s² − 1)χ_s, so that the regression (29) weights labels far out in s
less. It matters where these are the ones that are not fitted: for targets of degree 3 and more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity
from ..labels import across_alignment
from .columns import Columns
from .dyson import matmul, transposed
from .fixed_point import Evaluation

_STEP = 1e-4  # relative, of the difference quotient in q
# ⟨h_b|s² − 1|h_c⟩ for b, c = 0 … 3
_BETWEEN = np.diag([0.0, 2.0, 4.0, 6.0])
_BETWEEN[0, 2] = _BETWEEN[2, 0] = math.sqrt(2.0)
_BETWEEN[1, 3] = _BETWEEN[3, 1] = math.sqrt(6.0)


class LabelsAcross(NamedTuple):
    """Moments of the label given κ with the weight s² − 1."""

    parts: FloatArray  # (B, 4, Q) E[(s² − 1)h_b(s)y|κ]
    square: FloatArray  # (B, Q) E[(s² − 1)y²|κ]


def labels_across(star: Nonlinearity, alignment: FloatArray, kappa: FloatArray) -> LabelsAcross:
    """The moments at nodes (κ, h), for γ of B problems and κ (Q,).

    (s² − 1) under the mean over s is q∂/∂q, as y depends on γκ + qs.
    """
    q, place = across_alignment(alignment)[:, None], alignment[:, None] * kappa
    means = star.derivative_means(q, place, 5)
    y = [q**k * means[k] / math.sqrt(math.factorial(k)) for k in range(6)]
    parts = [
        math.sqrt((b + 1) * (b + 2)) * y[b + 2]
        + 2.0 * b * y[b]
        + (math.sqrt(b * (b - 1)) * y[b - 2] if b > 1 else 0.0)
        for b in range(4)
    ]
    up, down = (_second_moment(star, q * x, place) for x in (1.0 + _STEP, 1.0 - _STEP))
    square = (up - down) / (2.0 * _STEP)
    return LabelsAcross(np.tile(np.stack(parts, axis=1), 2), np.tile(square, 2))


def _second_moment(star: Nonlinearity, q: FloatArray, place: FloatArray) -> FloatArray:
    """E y² given κ."""
    mean, slope, rest = star.moments(q, place)
    return np.asarray(mean**2 + (q * slope) ** 2 + rest)


class InfluenceAcross:
    """χ_s at a solution, and what it adds to the regression (eq. 152)."""

    def __init__(self, at: Evaluation, labels: LabelsAcross) -> None:
        columns = at.samples.columns
        assert columns.across is not None
        self.columns, self.labels, self.tables = columns, labels, columns.across
        forms = at.between_roots(at.responses)
        self.slope = columns.contracted(forms, self.tables.products)  # χ_s, (B, Q)
        noise = matmul(self.tables.spread, at.state.v2[:, :, None])[:, :, 0]
        self.slope = self.slope + noise
        self.shrink, self.mass = at.shrink, at.mass
        self.weight = -at.mass * at.shrink * self.slope  # of s² − 1 in n w/(1 + χ)

    def gram(self) -> FloatArray:
        """What is added to 𝒢, (B, F, F)."""
        parts = _parts(self.columns)
        seen = np.einsum("bc,...cqf->...bqf", _BETWEEN, parts)
        rows, _, nodes, count = parts.shape
        left = (seen * self.weight[:, None, :, None]).reshape(rows, 4 * nodes, count)
        return matmul(transposed(left), parts.reshape(rows, 4 * nodes, count))

    def right(self) -> FloatArray:
        """What is added to the right-hand side, (B, F)."""
        weighted = self.labels.parts * self.weight[:, None]
        return np.asarray(matmul(weighted[:, :, None], _parts(self.columns))[:, :, 0].sum(axis=1))

    def misfit(self, coefficients: FloatArray) -> FloatArray:
        """E[(s² − 1)(y − B·X)²|κ], (B, Q)."""
        shown = matmul(_parts(self.columns), coefficients[:, None, :, None])[..., 0]  # (B, 4, Q)
        own = np.einsum("bc,...cq->...bq", _BETWEEN, shown) - 2.0 * self.labels.parts
        return np.asarray(self.labels.square + (shown * own).sum(axis=1))


def _parts(columns: Columns) -> FloatArray:
    """B_0 … B_3 in units of h_b(s), (B, 4, Q, F)."""
    assert columns.cubic is not None
    square = math.sqrt(2.0) * columns.square[:, 0]
    return np.stack([columns.plain, columns.linear[:, 0], square, columns.cubic], axis=1)
