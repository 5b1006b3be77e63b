"""The readout: ridge regression from a Gram matrix on the smaller side (theory, section 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...types import FloatArray
from ..arrays.backend import Array, Backend
from ..draws.draw import Block
from ..failures import NonFiniteFeatures
from .plan import Fit


@dataclass(frozen=True)
class Labels:
    """The readout's labels, y = clean + noise_std · noise."""

    clean: FloatArray
    noise: FloatArray

    def put(self, block: Block) -> None:
        """The labels of a block, in their place."""
        rows = slice(block.start, block.start + len(block.clean))
        self.clean[rows], self.noise[rows] = block.clean, block.noise

    def at(self, fit: Fit) -> FloatArray:
        """y of the fit's own size and noise level."""
        return self.clean[: fit.n] + fit.noise * self.noise[: fit.n]

    def basis(self, start: int, stop: int) -> FloatArray:
        """Columns (clean, noise) of some rows."""
        return np.stack([self.clean[start:stop], self.noise[start:stop]], axis=1)


@dataclass(frozen=True)
class Solution:
    """One fitted readout."""

    fit: Fit
    a_hat: Array  # (N,)
    train_loss: float
    train_mse: float
    readout_norm: float


class NormalEquations:
    """FᵀF and Fᵀ(clean, noise), accumulated over rows, with the labels of all rows."""

    def __init__(self, backend: Backend, N: int, labels: Labels) -> None:
        self.backend = backend
        self.gram = backend.empty(N, N)
        self.moments = backend.zeros(N, 2)
        self.labels = labels
        self._fresh = True

    def clear(self) -> None:
        """Start again with the same labels."""
        self.moments[:] = 0.0
        self._fresh = True

    def add(self, F: Array, start: int) -> None:
        """The features of rows start … start + len(F)."""
        self.backend.add_gram(self.gram, F, fresh=self._fresh)
        self._fresh = False
        y = self.backend.put(self.labels.basis(start, start + len(F)))
        self.backend.add_product(self.moments, F, y)


def solve_primal(sums: NormalEquations, fits: Sequence[Fit], *, last: bool) -> list[Solution]:
    """â = (FᵀF + λnI)⁻¹Fᵀy for fits of one n; the last fits may use up the Gram matrix.

    The loss is (yᵀy − yᵀFâ)/n: no second pass over the features is needed. It loses as many
    digits as the loss is smaller than yᵀy/n.
    """
    backend, labels, n = sums.backend, sums.labels, fits[0].n
    refuse_non_finite(backend, sums.gram)
    moments = backend.get(sums.moments)  # (N, 2)
    by_ridge = _by_ridge(fits)
    rhs = [np.stack([moments @ (1.0, f.noise) for f in same], axis=1) for same in by_ridge]
    shifts = [same[0].ridge * n for same in by_ridge]
    columns = backend.solve(sums.gram, shifts, [backend.put(b) for b in rhs], last)
    out = []
    for same, b, solved in zip(by_ridge, rhs, columns, strict=True):
        a_hat = backend.get(solved)  # (N, fits)
        for index, fit in enumerate(same):
            y = labels.at(fit)
            square = float(np.sum(a_hat[:, index] ** 2))
            loss = float(np.sum(y * y) - np.sum(b[:, index] * a_hat[:, index])) / n
            mse = max(loss - fit.ridge * square, 0.0)
            out.append(_solution(fit, solved[:, index], loss, mse, square))
    return out


def solve_dual(
    backend: Backend, gram: Array, F: Array, labels: Labels, fits: Sequence[Fit]
) -> list[Solution]:
    """â = Fᵀα with α = (FFᵀ + λnI)⁻¹y, for fits of one n ≤ N; the residual y − Fâ is λnα."""
    n = fits[0].n
    refuse_non_finite(backend, gram)
    by_ridge = _by_ridge(fits)
    rhs = [np.stack([labels.at(f) for f in same], axis=1) for same in by_ridge]
    shifts = [same[0].ridge * n for same in by_ridge]
    columns = backend.solve(gram[:n, :n], shifts, [backend.put(b) for b in rhs], False)
    out = []
    for same, y, solved in zip(by_ridge, rhs, columns, strict=True):
        a_hat = backend.zeros(len(same), F.shape[1])
        backend.add_product(a_hat, backend.put(backend.get(solved)), F[:n])
        alpha = backend.get(solved)  # (n, fits)
        squares = np.sum(backend.get(a_hat) ** 2, axis=1)
        for index, fit in enumerate(same):
            loss = fit.ridge * float(np.sum(y[:, index] * alpha[:, index]))
            mse = n * fit.ridge**2 * float(np.sum(alpha[:, index] ** 2))
            out.append(_solution(fit, a_hat[index], loss, mse, float(squares[index])))
    return out


def _solution(fit: Fit, a_hat: Array, loss: float, mse: float, square: float) -> Solution:
    if not np.isfinite([loss, mse, square]).all():
        raise NonFiniteFeatures(f"the readout at ridge {fit.ridge:.3g} is not finite")
    return Solution(fit, a_hat, loss, mse, square**0.5)


def _by_ridge(fits: Sequence[Fit]) -> list[list[Fit]]:
    ridges = sorted({fit.ridge for fit in fits})
    return [[fit for fit in fits if fit.ridge == ridge] for ridge in ridges]


def refuse_non_finite(backend: Backend, gram: Array) -> None:
    """NonFiniteFeatures when a Gram matrix has a diagonal that is not finite."""
    squares = backend.get(gram.diagonal())
    if not np.isfinite(squares.sum()):
        bad = int(np.count_nonzero(~np.isfinite(squares)))
        raise NonFiniteFeatures(
            f"{bad} of {squares.size} features or samples are not finite: "
            "the activation overflows on these inputs"
        )
