"""Samples with a large s have a larger norm and influence: χ(κ, h, s) to first order (152).

Tables of section 51 know the norm ‖x‖² and κ², and an average over s. To first order in 1/d the
influence of a sample is χ + (s² − 1)χ_s, so that the regression (29) weights labels far out in s
less. It matters where these are the ones that are not fitted: for targets of degree 3 and more.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import Nonlinearity
from ..labels import across_alignment
from .dyson import matmul
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

    def take(self, rows: Any) -> LabelsAcross:
        """The same for some of the problems."""
        return LabelsAcross(self.parts[rows], self.square[rows])


def labels_across(star: Nonlinearity, alignment: FloatArray, kappa: FloatArray) -> LabelsAcross:
    """The moments at nodes (κ, h), for γ of B problems and κ (Q,).

    (s² − 1) under the mean over s is q∂/∂q, as y depends on γκ + qs.
    """
    q, place = across_alignment(alignment)[:, None], alignment[:, None] * kappa
    sizes = np.array([1.0, 1.0 + _STEP, 1.0 - _STEP])[:, None, None] * q
    means = star.averages(sizes, place, 5)  # (7, 3, B, Q)
    y = [q**k * means[k, 0] / math.sqrt(math.factorial(k)) for k in range(6)]
    parts = [
        math.sqrt((b + 1) * (b + 2)) * y[b + 2]
        + 2.0 * b * y[b]
        + (math.sqrt(b * (b - 1)) * y[b - 2] if b > 1 else 0.0)
        for b in range(4)
    ]
    _, up, down = means[0] ** 2 + (sizes * means[1]) ** 2 + means[-1]  # E y² given κ
    square = (up - down) / (2.0 * _STEP)
    return LabelsAcross(np.tile(np.stack(parts, axis=1), 2), np.tile(square, 2))


class InfluenceAcross:
    """χ_s at a solution, and what it adds to the regression (eq. 152)."""

    def __init__(self, at: Evaluation, labels: LabelsAcross) -> None:
        columns = at.samples.columns
        assert columns.across is not None
        self.labels, tables = labels, columns.across
        forms = at.between_roots(at.responses)
        noise = matmul(tables.spread, at.state.v2[:, :, None])[:, :, 0]
        self.slope = columns.contracted(forms, tables.products) + noise  # χ_s, (B, Q)
        self.mass = at.mass
        self.weight = -at.mass * at.shrink * self.slope  # of s² − 1 in n w/(1 + χ)

    def weighted(self, parts: FloatArray) -> FloatArray:
        """Parts along h_b(s), (B, 4, Q, …), times n w/(1 + χ(s))."""
        shape = (*self.mass.shape, *[1] * (parts.ndim - 3))
        mass, weight = self.mass.reshape(shape), self.weight.reshape(shape)
        found = np.empty_like(parts)
        for b in range(4):
            other = (b + 2) % 4
            np.multiply(mass + _BETWEEN[b, b] * weight, parts[:, b], out=found[:, b])
            found[:, b] += _BETWEEN[b, other] * weight * parts[:, other]
        return found

    def misfit(self, shown: FloatArray) -> FloatArray:
        """E[(s² − 1)(y − B·X)²|κ], (B, Q), for B·X along h_b(s), (B, 4, Q)."""
        own = np.tensordot(shown, _BETWEEN, (1, 0)).transpose(0, 2, 1) - 2.0 * self.labels.parts
        return np.asarray(self.labels.square + (shown * own).sum(axis=1))
