"""Bulk of the weights after T steps: a Dyson equation with T batches (166)–(169).

Fields of one coordinate are φ_0 = p, φ_1 … φ_T and the conjugate φ̂_1 … φ̂_T, in this order, K of
each. Batch τ couples φ_{τ−1} and φ̂_τ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...core.types import FloatArray, IntArray
from ..exact.dyson import averaged_change, inverted, sample_response, transposed
from .batches import Batch

_CHUNK = 60_000  # elements of matrices at a time, that stay in a processor's cache


def field(index: int, size: int) -> IntArray:
    """Rows of one field."""
    return np.arange(index * size, (index + 1) * size)


def coupled(step: int, steps: int, size: int) -> IntArray:
    """Rows (φ_{τ−1}, φ̂_τ) that batch τ = `step` acts on."""
    return np.concatenate([field(step - 1, size), field(steps + step, size)])


def t_matrix(batch: Batch, response: FloatArray) -> FloatArray:
    """T at every node of a batch, (…, M, 2K, 2K), for G on (φ_{τ−1}, φ̂_τ) (eq. 167)."""
    shown = batch.shown
    return _t_matrix(batch.ratio * response, shown.cross, shown.own)


def mean_t_matrix(batch: Batch, response: FloatArray) -> FloatArray:
    """Ξ of (167), (2K, 2K), from some nodes at a time."""
    shown, gamma = batch.shown, batch.ratio * response
    found = np.zeros_like(response)
    for part in _chunks(len(shown.cross), len(response)):
        found += averaged(
            shown.law.weight[part], _t_matrix(gamma, shown.cross[part], shown.own[part])
        )
    return found


def _chunks(count: int, size: int) -> Iterator[slice]:
    """Slices of `count` matrices of this size."""
    rows = max(1, _CHUNK // size**2)
    return (slice(start, start + rows) for start in range(0, count, rows))


def _t_matrix(gamma: FloatArray, cross: FloatArray, own: FloatArray) -> FloatArray:
    """T for Γ and the diagonals of N, (M, K) each."""
    if gamma.ndim == 3:
        return sample_response(gamma, cross[None], own[None])
    if cross.shape[1] == 2:
        return _t_matrix_of_two(gamma, cross, own)
    return np.asarray(sample_response(gamma[None], cross[None], own[None])[0])


def _t_matrix_of_two(gamma: FloatArray, cross: FloatArray, own: FloatArray) -> FloatArray:
    """The same for two groups, by the formula for inverses of 4×4 matrices.

    LAPACK would be called for each of them.
    """
    k, delta = cross.T[:, None], own.T[:, None]  # (2, 1, M)
    matrix = np.empty((4, 4, len(cross)), dtype=gamma.dtype)  # I − NΓ
    matrix[:2] = -k * gamma[2:, :, None]
    matrix[2:] = -k * gamma[:2, :, None] - delta * gamma[2:, :, None]
    matrix[np.arange(4), np.arange(4)] += 1.0
    first, second = [0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]
    upper, lower = (
        r[0, first] * r[1, second] - r[0, second] * r[1, first] for r in (matrix[:2], matrix[2:])
    )
    signed = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])[:, None]
    scale = 1.0 / (signed * upper * lower[::-1]).sum(axis=0)
    inverse = np.empty_like(matrix)
    for column, row, minors, sign in (
        (0, 1, lower, 1.0),
        (1, 0, lower, -1.0),
        (2, 3, upper, 1.0),
        (3, 2, upper, -1.0),
    ):
        r, scaled = matrix[row], minors * (sign * scale)
        inverse[0, column] = r[1] * scaled[5] - r[2] * scaled[4] + r[3] * scaled[3]
        inverse[1, column] = r[2] * scaled[2] - r[0] * scaled[5] - r[3] * scaled[1]
        inverse[2, column] = r[0] * scaled[4] - r[1] * scaled[2] + r[3] * scaled[0]
        inverse[3, column] = r[1] * scaled[1] - r[0] * scaled[3] - r[2] * scaled[0]
    k, delta = cross.T[None], own.T[None]
    found = np.empty_like(matrix)
    found[:, :2] = inverse[:, 2:] * k
    found[:, 2:] = inverse[:, :2] * k + inverse[:, 2:] * delta
    return np.ascontiguousarray(found.transpose(2, 0, 1))


class Responses(Protocol):
    """T at the nodes of a batch, in the sums over nodes that covariances are made of."""

    def averaged(self, weight: FloatArray) -> FloatArray:
        """Σ_m w_m T_m for weights (…, M), (…, 2K, 2K)."""

    def times(self, vectors: FloatArray) -> FloatArray:
        """T_m A_m for A (2K, p) or (…, M, 2K, p)."""


@dataclass(frozen=True)
class DenseResponses:
    """At any state."""

    matrices: FloatArray  # (M, 2K, 2K)

    def averaged(self, weight: FloatArray) -> FloatArray:
        """Σ_m w_m T_m."""
        return averaged(weight, self.matrices)

    def change(self, batch: Batch, change: FloatArray) -> FloatArray:
        """φE[T dG T], (2K, 2K), for dG on (φ_{τ−1}, φ̂_τ)."""
        weight, found = batch.shown.law.weight, np.zeros_like(change)
        for part in _chunks(len(weight), len(change)):
            found += averaged_change(weight[None, part], self.matrices[None, part], change[None])[0]
        return np.asarray(batch.ratio * found)

    def times(self, vectors: FloatArray) -> FloatArray:
        """T_m A_m."""
        return np.asarray(np.matmul(self.matrices, vectors))


@dataclass(frozen=True)
class FreeResponses:
    """At V = 0, where T = N + φN diag(ρ², 0)N is diagonal in its blocks and G is diag(ρ², 0)."""

    cross: FloatArray  # (M, K) of (φ_{τ−1}, φ̂_τ)
    own: FloatArray  # (M, K) of (φ̂_τ, φ̂_τ)

    @classmethod
    def of(cls, batch: Batch) -> FreeResponses:
        """Those of a batch."""
        shown = batch.shown
        moved = batch.ratio * batch.before.norm2 * shown.cross**2
        return cls(shown.cross, shown.own + moved)

    def averaged(self, weight: FloatArray) -> FloatArray:
        """Σ_m w_m T_m."""
        cross, own, size = weight @ self.cross, weight @ self.own, self.cross.shape[1]
        found, g = np.zeros((*cross.shape[:-1], 2 * size, 2 * size)), np.arange(size)
        found[..., g, size + g] = found[..., size + g, g] = cross
        found[..., size + g, size + g] = own
        return found

    def times(self, vectors: FloatArray) -> FloatArray:
        """T_m A_m."""
        size = self.cross.shape[1]
        upper, lower = vectors[..., :size, :], vectors[..., size:, :]
        cross, own = self.cross[:, :, None], self.own[:, :, None]
        return np.concatenate([cross * lower, cross * upper + own * lower], axis=-2)


def averaged(weight: FloatArray, matrices: FloatArray) -> FloatArray:
    """Σ_m w_m T_m for weights (…, M) and matrices (M, a, b): (…, a, b)."""
    flat = matrices.reshape(len(matrices), -1)
    return np.asarray((weight @ flat).reshape(*weight.shape[:-1], *matrices.shape[1:]))


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
