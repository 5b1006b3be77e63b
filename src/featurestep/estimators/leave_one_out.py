"""Exact leave-one-out of the ridge readout: one factorisation gives it for every ridge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.types import FloatArray
from ..simulation.arrays.backend import Array, Backend
from ..simulation.network.given import sum_of_squares
from ..simulation.network.readout import smaller_gram


def centred(F: Array) -> tuple[Array, Array]:
    """F without its column means, in place, and the means: what an unpenalised intercept does."""
    mean = F.mean(0)
    F -= mean
    return F, mean


def mean_eigenvalue(F: Array) -> float:
    """Of the smaller Gram matrix over n: the scale of a ridge; 1 where all features vanish."""
    return sum_of_squares(F) / min(F.shape) / F.shape[0] or 1.0


def held_out(
    backend: Backend, F: Array, Y: FloatArray, ridges: Sequence[float], *, intercept: bool
) -> FloatArray:
    """y_i − f_{−i}(x_i) for every ridge, row and output: (ridges, n, outputs).

    f_{−i} is fitted without row i, with the same penalty λn‖a‖² (and its own intercept): the
    residual over 1 − H_ii, H the map from labels to fitted values, in the eigenbasis of the
    smaller Gram matrix. F and Y are centred where there is an intercept.
    """
    n, N = F.shape
    values, Q = backend.eigenbasis(smaller_gram(backend, F))
    values = np.maximum(backend.get(values), 0.0)  # rounding makes some < 0
    shifts = np.array(ridges)[:, None] * n  # (ridges, 1)
    if n <= N:
        U = backend.get(Q)  # (n, n): of FFᵀ
        # The residual's own form, λn(FFᵀ + λn)⁻¹: nothing cancels when λ is small.
        weights = shifts / (values + shifts)  # (ridges, n)
        residual = _weighted(U, weights, Y)
        # The intercept takes the constant vector out of the space.
        free = U - U.mean(axis=0) if intercept else U
        left = weights @ (free * free).T  # (ridges, n)
    else:
        U = backend.get(backend.product(F, backend.put(backend.get(Q).T)))  # FQ
        weights = 1.0 / (values + shifts)
        residual = Y - _weighted(U, weights, Y)
        left = 1.0 - weights @ (U * U).T - (1.0 / n if intercept else 0.0)
    return np.asarray(residual / np.maximum(left, np.finfo(np.float64).tiny)[..., None])


def _weighted(U: FloatArray, weights: FloatArray, Y: FloatArray) -> FloatArray:
    """U·diag(w)·UᵀY for every w, (ridges, n, outputs), in one product."""
    inside = U.T @ Y  # (rank, outputs)
    columns = weights.T[:, :, None] * inside[:, None, :]  # (rank, ridges, outputs)
    found = U @ columns.reshape(len(inside), -1)
    return np.moveaxis(found.reshape(len(U), len(weights), -1), 1, 0)
