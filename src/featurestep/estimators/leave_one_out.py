"""Exact leave-one-out of the ridge readout: one factorisation gives it for every ridge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..simulation.arrays.backend import Array, Backend
from ..simulation.network.given import sum_of_squares
from ..simulation.network.readout import smaller_gram
from ..types import FloatArray


def centred(F: Array) -> tuple[Array, Array]:
    """F without its column means, in place, and the means: what an unpenalised intercept does."""
    mean = F.mean(0)
    F -= mean
    return F, mean


def mean_eigenvalue(F: Array) -> float:
    """Of the smaller Gram matrix over n: the scale of a ridge; 1 where all features vanish."""
    return sum_of_squares(F) / min(F.shape) / F.shape[0] or 1.0


class Spectrum:
    """The features of the readout's sample in the eigenbasis of their smaller Gram matrix."""

    def __init__(self, backend: Backend, F: Array, *, intercept: bool) -> None:
        self.n, self.N = F.shape
        self.intercept = intercept
        values, Q = backend.eigenbasis(smaller_gram(backend, F))
        self.values: FloatArray = np.maximum(backend.get(values), 0.0)  # rounding makes some < 0
        self.dual = self.n <= self.N
        if self.dual:
            self.vectors = backend.get(Q)  # (n, n): of FFᵀ
        else:
            U = backend.empty(self.n, self.N)
            self.vectors = backend.get(backend.product(F, backend.put(backend.get(Q).T), U))  # FQ

    def held_out(self, Y: FloatArray, ridges: Sequence[float]) -> FloatArray:
        """y_i − f_{−i}(x_i) for every ridge, row and output: (ridges, n, outputs).

        f_{−i} is fitted without row i, with the same penalty λn‖a‖² (and its own intercept):
        the residual over 1 − H_ii, H the map from labels to fitted values. Y is centred where
        there is an intercept.
        """
        shifts = np.array(ridges)[:, None] * self.n  # (ridges, 1)
        U = self.vectors
        inside = U.T @ Y  # (rank, outputs)
        if self.dual:
            # The residual's own form, λn(FFᵀ + λn)⁻¹: nothing cancels when λ is small.
            weights = shifts / (self.values + shifts)  # (ridges, n)
            residual = self._weighted(weights, inside)
            # The intercept takes the constant vector out of the space.
            free = U - U.mean(axis=0) if self.intercept else U
            left = weights @ (free * free).T  # (ridges, n)
        else:
            weights = 1.0 / (self.values + shifts)
            residual = Y - self._weighted(weights, inside)
            left = 1.0 - weights @ (U * U).T - (1.0 / self.n if self.intercept else 0.0)
        return np.asarray(residual / np.maximum(left, np.finfo(np.float64).tiny)[..., None])

    def _weighted(self, weights: FloatArray, inside: FloatArray) -> FloatArray:
        """U·diag(w)·inside for every w, (ridges, n, outputs), in one product."""
        columns = weights.T[:, :, None] * inside[:, None, :]  # (rank, ridges, outputs)
        found = self.vectors @ columns.reshape(len(inside), -1)
        return np.moveaxis(found.reshape(self.n, len(weights), -1), 1, 0)
