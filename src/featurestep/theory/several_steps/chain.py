"""Bulk of the weights after T steps: a Dyson equation with T batches (166)–(169).

Fields of one coordinate are φ_0 = p, φ_1 … φ_T and the conjugate φ̂_1 … φ̂_T, in this order, K of
each. Batch τ couples φ_{τ−1} and φ̂_τ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.types import FloatArray, IntArray
from ..exact.dyson import averaged_change, inverted, sample_response, transposed
from .batches import Batch


def field(index: int, size: int) -> IntArray:
    """Rows of one field."""
    return np.arange(index * size, (index + 1) * size)


def coupled(step: int, steps: int, size: int) -> IntArray:
    """Rows (φ_{τ−1}, φ̂_τ) that batch τ = `step` acts on."""
    return np.concatenate([field(step - 1, size), field(steps + step, size)])


def t_matrix(batch: Batch, response: FloatArray) -> FloatArray:
    """T at every node of a batch, (…, M, 2K, 2K), for G on (φ_{τ−1}, φ̂_τ) (eq. 167)."""
    gamma = batch.ratio * (response if response.ndim == 3 else response[None])
    shown = batch.shown
    found = np.asarray(sample_response(gamma, shown.cross[None], shown.own[None]))
    return found if response.ndim == 3 else found[0]


def averaged(weight: FloatArray, matrices: FloatArray) -> FloatArray:
    """Σ_m w_m T_m for weights (…, M) and matrices (M, a, b): (…, a, b)."""
    flat = matrices.reshape(len(matrices), -1)
    return np.asarray((weight @ flat).reshape(*weight.shape[:-1], *matrices.shape[1:]))


def t_matrix_change(batch: Batch, t_matrices: FloatArray, change: FloatArray) -> FloatArray:
    """φE[T dG T], (2K, 2K), for dG on (φ_{τ−1}, φ̂_τ)."""
    weight = batch.shown.law.weight[None]
    return np.asarray(averaged_change(weight, t_matrices[None], batch.ratio * change[None])[0])


def solve_chain(
    xi: Sequence[FloatArray], information: FloatArray, initial: FloatArray | None = None
) -> FloatArray:
    """G on all 2T + 1 fields for Ξ_τ, (…, 2K, 2K) each, and V, (…, K, K) (eq. 168).

    `initial` (K,) are the squared norms of initial weights, 1 when not given.

    One pass backward for the precision that every φ_τ feels, one forward for the blocks of G: only
    K×K inverses, and no difference of nearly equal numbers.
    """
    steps, size = len(xi), information.shape[-1]
    unit = np.eye(size)
    passed = []
    precision = information
    for matrix in reversed(xi):
        p = unit + matrix[..., :size, size:]
        x = matrix[..., size:, size:]
        y = inverted(unit + x @ precision)
        lam = precision @ y
        passed.append((p, x, y, lam))
        precision = p @ lam @ transposed(p) - matrix[..., :size, :size]
    shape = (*precision.shape[:-2], *((2 * steps + 1) * size,) * 2)
    whole = np.zeros(shape, dtype=precision.dtype)
    before = field(0, size)
    root = np.ones(size) if initial is None else np.sqrt(initial)
    both = np.multiply.outer(root, root)
    whole[..., :size, :size] = both * inverted(unit + both * precision)
    known = before
    for step, (p, x, y, lam) in enumerate(reversed(passed), 1):
        phi, hat = field(step, size), field(steps + step, size)
        a, a_hat = y @ transposed(p), -lam @ transposed(p)
        row = block(whole, before, known)
        own = block(whole, before, before)
        for fields, factor in ((phi, a), (hat, a_hat)):
            found = factor @ row
            whole[..., fields[:, None], known] = found
            whole[..., known[:, None], fields] = transposed(found)
        whole[..., phi[:, None], phi] = y @ x + a @ own @ transposed(a)
        cross = y + a @ own @ transposed(a_hat)
        whole[..., phi[:, None], hat] = cross
        whole[..., hat[:, None], phi] = transposed(cross)
        whole[..., hat[:, None], hat] = -lam + a_hat @ own @ transposed(a_hat)
        known = np.concatenate([known, phi, hat])
        before = phi
    return whole


def block(matrix: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """Some rows and columns of matrices (…, F, F)."""
    return np.asarray(matrix[..., rows[:, None], columns])
