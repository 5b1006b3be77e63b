"""What the network computes along a direction, and which columns its output depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..simulation.arrays.backend import Array
from ..simulation.network.given import Network
from ..simulation.network.step import slopes
from ..types import FloatArray
from .directions import DEGREES, Along, orthonormal_polynomials
from .selection import outputs

POINTS = 101  # of a curve, at equal steps of probability
ROWS = 200  # over which a curve is averaged
GRADIENT_ROWS = 500


@dataclass(frozen=True)
class LearnedCurve:
    """The mean output at a given κ, the other directions being as they come."""

    kappa: FloatArray  # (points,): quantiles of κ over the rows
    values: FloatArray  # (points,), in the labels' units
    shares: dict[int | str, float]  # of the curve's variance, by polynomial degree

    @property
    def degrees(self) -> tuple[int, ...]:
        """Degrees with at least one hundredth of the variance."""
        return tuple(k for k, share in self.shares.items() if isinstance(k, int) and share >= 0.01)


def learned_curve(
    network: Network, W: Array, readout: tuple[FloatArray, float], place: Along, X: Any
) -> LearnedCurve:
    """Rows are moved along the regression of x on κ to each κ, and the outputs averaged.

    For Gaussian inputs this is E[f|κ], M(κ) of eq. 12. Moved rows are new ones: what the readout
    has memorised of theirs does not count.
    """
    backend = network.backend
    a_hat, offset = readout
    X = np.asarray(X, dtype=backend.dtype)
    every = place(X)
    kappa = np.quantile(every, (np.arange(POINTS) + 0.5) / POINTS)
    centre = every - every.mean()
    move = np.asarray(X, dtype=np.float64).T @ centre / np.sum(centre**2)  # (d,)
    rows = np.linspace(0, len(X) - 1, min(ROWS, len(X))).astype(int)
    P = network.project(X[rows], W)  # (rows, N)
    shift = network.project(move[None, :], W)  # (1, N)
    out = backend.empty(*P.shape)
    values = np.empty(POINTS)
    for index, at in enumerate(kappa):
        moved = backend.put((at - every[rows])[:, None]) * shift
        F = network.features(((P, 1.0), (moved, 1.0)), out)
        values[index] = float(outputs(network, F, a_hat[:, None]).mean()) + offset
    return LearnedCurve(kappa, values, degree_shares(kappa, values))


def degree_shares(kappa: FloatArray, values: FloatArray) -> dict[int | str, float]:
    """Shares of a curve's variance in the polynomials of each degree, and above."""
    centred = values - values.mean()
    total = float(centred @ centred)
    if total == 0.0:
        return {**dict.fromkeys(range(1, DEGREES + 1), 0.0), "higher": 0.0}
    parts = (orthonormal_polynomials(kappa).T @ centred)[1:] ** 2 / total
    shares: dict[int | str, float] = {k: float(part) for k, part in enumerate(parts, start=1)}
    return {**shares, "higher": max(1.0 - float(parts.sum()), 0.0)}


def gradient_squares(network: Network, W: Array, a_hat: FloatArray, X: Any) -> FloatArray:
    """∂f/∂z of every output on some rows: (outputs, rows, d)."""
    backend = network.backend
    rows = np.linspace(0, len(X) - 1, min(GRADIENT_ROWS, len(X))).astype(int)
    P = network.project(X[rows], W)
    slopes(backend, network.problem, P)
    found = []
    for a in a_hat.T:
        out = backend.zeros(len(rows), W.shape[1])
        weighted = P * backend.put(a[None, :])
        backend.add_product(out, backend.put(backend.get(weighted).T), W)
        found.append(backend.get(out))
    return np.stack(found)
