"""Exact leave-one-out of the ridge readout: one factorisation gives it for every ridge."""

from __future__ import annotations

import numpy as np

from ..core.types import FloatArray
from ..simulation import Array, Backend, smaller_gram


def held_out(
    backend: Backend,
    F: Array,
    Y: FloatArray,
    w: FloatArray,
    ridges: FloatArray,
    *,
    intercept: bool,
) -> FloatArray:
    """y_i − f_{−i}(x_i) for every ridge, row and output: (ridges, n, outputs).

    f_{−i} is fitted without row i, with the same penalty λn‖a‖² (and its own intercept): the
    residual over 1 − H_ii, H the map from labels to fitted values, in the eigenbasis of the
    smaller Gram matrix. F and Y are those of `centred`, for the weights w.
    """
    n, N = F.shape
    root = np.sqrt(w)
    constant = root / np.linalg.norm(root)  # what the intercept takes out of the space
    values, Q = backend.eigenbasis(smaller_gram(backend, F))
    values = np.maximum(backend.get(values), 0.0)  # rounding makes some < 0
    shifts = ridges[:, None] * n  # (ridges, 1)
    if n <= N:
        U = backend.get(Q)  # (n, n): of FFᵀ
        # The residual's own form, λn(FFᵀ + λn)⁻¹: nothing cancels when λ is small.
        weights = shifts / (values + shifts)  # (ridges, n)
        residual = _weighted(U, weights, Y)
        free = U - np.outer(constant, constant @ U) if intercept else U
        left = weights @ (free * free).T  # (ridges, n)
    else:
        U = backend.get(backend.product(F, backend.put(backend.get(Q).T)))  # FQ
        weights = 1.0 / (values + shifts)
        residual = Y - _weighted(U, weights, Y)
        left = 1.0 - weights @ (U * U).T - (constant**2 if intercept else 0.0)
    left = np.maximum(left, np.finfo(np.float64).tiny)
    return np.asarray(residual / (root * left)[..., None])


def _weighted(U: FloatArray, weights: FloatArray, Y: FloatArray) -> FloatArray:
    """U·diag(w)·UᵀY for every w, (ridges, n, outputs), in one product."""
    inside = U.T @ Y  # (rank, outputs)
    columns = weights.T[:, :, None] * inside[:, None, :]  # (rank, ridges, outputs)
    found = U @ columns.reshape(len(inside), -1)
    return np.moveaxis(found.reshape(len(U), len(weights), -1), 1, 0)
