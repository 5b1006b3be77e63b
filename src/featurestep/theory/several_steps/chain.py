"""Bulk of the weights after T steps: a Dyson equation with T batches (166)–(169).

Fields of one coordinate are φ_0 = p, φ_1 … φ_T and the conjugate φ̂_1 … φ̂_T, in this order, K of
each. Batch τ couples φ_{τ−1} and φ̂_τ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

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


class Link(NamedTuple):
    """What fields φ̂_τ and φ_τ are, given φ_{τ−1}: a response to it and independent noise (168).

    Everything on the right of φ_τ is in V_τ, the precision that φ_τ feels from there. Rows are
    local: (φ_{τ−1}, φ̂_τ, φ_τ).
    """

    lift: FloatArray  # (…, 3K, K) on φ_{τ−1}
    noise: FloatArray  # (…, 3K, 3K), nothing along φ_{τ−1}
    precision: FloatArray  # (…, K, K) V_τ

    def change(self, push: FloatArray, precision: FloatArray) -> FloatArray:
        """dV_{τ−1} for the change of the self-energy on the local rows, and dV_τ."""
        after = self.lift[..., -precision.shape[-1] :, :]
        own = transposed(self.lift) @ push @ self.lift
        return np.asarray(transposed(after) @ precision @ after - own)


class Chain(NamedTuple):
    """The solution of (168) for real or complex self-energies."""

    links: Sequence[Link]
    first: FloatArray  # (…, K, K) G on φ_0
    blocks: Sequence[FloatArray]  # (…, 3K, 3K) G on (φ_{τ−1}, φ̂_τ, φ_τ) of every batch

    def coupled(self) -> list[FloatArray]:
        """G on the fields (φ_{τ−1}, φ̂_τ) of every batch, (…, 2K, 2K)."""
        size = 2 * self.first.shape[-1]
        return [each[..., :size, :size] for each in self.blocks]

    @property
    def last(self) -> FloatArray:
        """G on φ_T, (…, K, K)."""
        size = 2 * self.first.shape[-1]
        return np.asarray(self.blocks[-1][..., size:, size:])

    def change(self, push: Sequence[FloatArray], information: FloatArray) -> list[FloatArray]:
        """The change of `blocks` for self-energies on the local rows of every batch, and dV."""
        size, precision, ahead = information.shape[-1], information, []
        for link, pushed in zip(reversed(self.links), reversed(push), strict=True):
            ahead.append((link, pushed, precision))
            precision = link.change(pushed, precision)
        before = -self.first @ precision @ self.first
        found = []
        for whole, (link, pushed, precision) in zip(self.blocks, reversed(ahead), strict=True):
            seen = pushed.copy()
            seen[..., 2 * size :, 2 * size :] -= precision
            turned = seen @ link.noise
            changed = link.lift @ before @ transposed(link.lift)
            changed += transposed(turned) @ whole + (whole - link.noise) @ turned
            found.append(changed)
            before = changed[..., 2 * size :, 2 * size :]
        return found


def solve_links(xi: Sequence[FloatArray], information: FloatArray) -> tuple[list[Link], FloatArray]:
    """How each batch continues the fields before it, for Ξ_τ (…, 2K, 2K) and V; then V_0 (eq. 168).

    Only K×K inverses, and no difference of nearly equal numbers.
    """
    size = information.shape[-1]
    unit = np.eye(size)
    found = []
    precision = information
    for matrix in reversed(xi):
        p = unit + matrix[..., :size, size:]
        x = matrix[..., size:, size:]
        y = inverted(unit + x @ precision)
        lam = precision @ y
        lift = np.empty((*lam.shape[:-2], 3 * size, size), dtype=lam.dtype)
        lift[..., :size, :] = unit
        lift[..., size : 2 * size, :] = -lam @ transposed(p)
        lift[..., 2 * size :, :] = y @ transposed(p)
        noise = np.zeros((*lam.shape[:-2], 3 * size, 3 * size), dtype=lam.dtype)
        noise[..., size : 2 * size, size : 2 * size] = -lam
        noise[..., size : 2 * size, 2 * size :] = transposed(y)
        noise[..., 2 * size :, size : 2 * size] = y
        noise[..., 2 * size :, 2 * size :] = y @ x
        found.append(Link(lift, noise, precision))
        precision = p @ lam @ transposed(p) - matrix[..., :size, :size]
    return found[::-1], precision


def solve_chain(
    xi: Sequence[FloatArray], information: FloatArray, initial: FloatArray | None = None
) -> Chain:
    """G on the fields of every batch, for Ξ_τ and V, by the links of (168).

    `initial` (K,) are the squared norms of initial weights, 1 when not given. One pass backward for
    the precision that every φ_τ feels, one forward for the blocks of G.
    """
    links, precision = solve_links(xi, information)
    size = information.shape[-1]
    root = np.ones(size) if initial is None else np.sqrt(initial)
    both = np.multiply.outer(root, root)
    first = before = both * inverted(np.eye(size) + both * precision)
    blocks = []
    for link in links:
        blocks.append(link.lift @ before @ transposed(link.lift) + link.noise)
        before = blocks[-1][..., 2 * size :, 2 * size :]
    return Chain(links, first, blocks)


def whole_chain(chain: Chain) -> FloatArray:
    """G on all 2T + 1 fields, (…, F, F), in the order φ_0 … φ_T, φ̂_1 … φ̂_T."""
    steps, size = len(chain.links), chain.first.shape[-1]
    shape = (*chain.first.shape[:-2], *((2 * steps + 1) * size,) * 2)
    whole = np.zeros(shape, dtype=chain.first.dtype)
    known = before = field(0, size)
    whole[..., :size, :size] = chain.first
    for step, (link, own) in enumerate(zip(chain.links, chain.blocks, strict=True), 1):
        added = np.concatenate([field(steps + step, size), field(step, size)])
        row = link.lift[..., size:, :] @ block(whole, before, known)
        whole[..., added[:, None], known] = row
        whole[..., known[:, None], added] = transposed(row)
        whole[..., added[:, None], added] = own[..., size:, size:]
        known, before = np.concatenate([known, added]), field(step, size)
    return whole


def block(matrix: FloatArray, rows: IntArray, columns: IntArray) -> FloatArray:
    """Some rows and columns of matrices (…, F, F)."""
    return np.asarray(matrix[..., rows[:, None], columns])
