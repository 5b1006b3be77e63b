"""The bulk's matrix Dyson equation and its special directions, (22)–(24) and (34), for B rows.

Fields of one coordinate are ordered p, φ, φ̂, K of each. T lives on (p, φ̂) and is padded with zeros
where it meets all three.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ...core.types import FloatArray, IntArray
from .step import Step


def matmul(*factors: FloatArray) -> FloatArray:
    """The product of matrices, left to right."""
    product = factors[0]
    for factor in factors[1:]:
        product = np.matmul(product, factor)
    return product


def transposed(matrix: FloatArray) -> FloatArray:
    """The matrices, transposed."""
    return np.swapaxes(matrix, -1, -2)


def inverted(matrix: FloatArray) -> FloatArray:
    """The inverse matrices; not finite where one is singular, so that it spoils no other."""
    try:
        found: Any = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        if matrix.ndim == 2:
            return np.full_like(matrix, np.nan)
        return np.stack([inverted(each) for each in matrix])
    return np.asarray(found)


def solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """The solutions of linear systems, for vectors (…, n)."""
    found: Any = np.linalg.solve(matrix, right[..., None])
    return np.asarray(found[..., 0])


def diagonals(values: FloatArray) -> FloatArray:
    """Diagonal matrices from their last axis."""
    return np.asarray(values[..., :, None] * np.eye(values.shape[-1]))


@dataclass(frozen=True)
class Blocks:
    """G = (B − Ξ)⁻¹ of (22) in its blocks, without cancellation."""

    pp: FloatArray
    p_phi: FloatArray
    p_hat: FloatArray
    phi_phi: FloatArray
    phi_hat: FloatArray
    hat_hat: FloatArray

    @property
    def coupled(self) -> FloatArray:
        """G on (p, φ̂), (…, 2K, 2K)."""
        return _square([[self.pp, self.p_hat], [transposed(self.p_hat), self.hat_hat]])

    @cached_property
    def whole(self) -> FloatArray:
        """G on (p, φ, φ̂), (…, 3K, 3K)."""
        return _square(
            [
                [self.pp, self.p_phi, self.p_hat],
                [transposed(self.p_phi), self.phi_phi, self.phi_hat],
                [transposed(self.p_hat), transposed(self.phi_hat), self.hat_hat],
            ]
        )


def _square(blocks: list[list[FloatArray]]) -> FloatArray:
    return np.concatenate([np.concatenate(row, axis=-1) for row in blocks], axis=-2)


def solve_blocks(initial_factor: FloatArray, xi: FloatArray, information: FloatArray) -> Blocks:
    """G in its blocks for Ξ on (p, φ̂), (…, 2K, 2K), and Ṽ, `information` (eq. 9).

    `initial_factor` (…, K) is 1, or 1 − eε_g of (42), in B_pφ̂. Only K×K inverses, and no difference
    of nearly equal numbers.
    """
    size = initial_factor.shape[-1]
    unit = np.eye(size)
    xi_pp, xi_hat = xi[..., :size, :size], xi[..., size:, size:]
    p = diagonals(initial_factor) + xi[..., :size, size:]
    y = inverted(unit + matmul(xi_hat, information))
    lam = matmul(information, y)
    pp = inverted(unit - xi_pp + matmul(p, lam, transposed(p)))
    w = matmul(transposed(p), pp, p)
    return Blocks(
        pp=pp,
        p_phi=matmul(pp, p, transposed(y)),
        p_hat=-matmul(pp, p, lam),
        phi_phi=matmul(y, xi_hat) + matmul(y, w, transposed(y)),
        phi_hat=y - matmul(y, w, lam),
        hat_hat=-lam + matmul(lam, w, lam),
    )


def p_hat_index(size: int) -> IntArray:
    """Rows p and φ̂ among (p, φ, φ̂)."""
    return np.concatenate([np.arange(size), np.arange(2 * size, 3 * size)])


def t_matrix_determinant(step: Step, coupled: FloatArray) -> FloatArray:
    """det(I − N(r)Γ), (B, M): it vanishes where a single sample makes an eigenvalue."""
    return np.asarray(np.linalg.det(_t_matrix_denominator(step, coupled)))


def t_matrix(step: Step, coupled: FloatArray) -> FloatArray:
    """T(r) = (I − N(r)Γ)⁻¹N(r), (B, M, 2K, 2K), for G on (p, φ̂), of (22).

    N = [[0, rk], [rk, r²δ]] with diagonal blocks, so that products with it are scalings.
    """
    size = step.k.shape[1]
    r = step.r[:, :, None]
    cross, own = r * step.k[:, None, :], r**2 * step.delta[:, None, :]  # (B, M, K)
    matrix = _t_matrix_denominator(step, coupled)
    if not np.any(step.k):  # c_2 = 0: N and T live on φ̂ alone
        inverse = inverted(matrix[..., size:, size:])
        matrix[:] = 0.0
        np.multiply(inverse, own[:, :, None, :], out=matrix[..., size:, size:])
        return matrix
    inverse = inverted(matrix)
    left, right = inverse[..., :size], inverse[..., size:]
    cross, own = cross[:, :, None, :], own[:, :, None, :]
    np.multiply(right, cross, out=matrix[..., :size])
    np.multiply(left, cross, out=matrix[..., size:])
    matrix[..., size:] += right * own
    return matrix


def t_matrix_without_readout(step: Step) -> FloatArray:
    """T(r) at Ṽ = 0: N + NΓN is explicit there, with G at Ξ = 0."""
    rows, size = step.k.shape
    nothing = np.zeros((rows, size, size))
    unmoved = solve_blocks(step.initial_factor, np.zeros((rows, 2 * size, 2 * size)), nothing)
    return t_matrix(step, unmoved.coupled)


def _t_matrix_denominator(step: Step, coupled: FloatArray) -> FloatArray:
    """I − N(r)Γ, (B, M, 2K, 2K)."""
    size = step.k.shape[1]
    gamma = (step.phi[:, None, None] * coupled)[:, None]  # (B, 1, 2K, 2K)
    r = step.r[:, :, None]
    cross, own = r * step.k[:, None, :], r**2 * step.delta[:, None, :]  # (B, M, K)
    upper, lower = gamma[:, :, :size], gamma[:, :, size:]
    shape = (max(len(r), len(coupled)), r.shape[1], 2 * size, 2 * size)
    matrix = np.empty(shape, dtype=coupled.dtype)
    np.multiply(-cross[..., None], lower, out=matrix[:, :, :size])
    np.multiply(-own[..., None], lower, out=matrix[:, :, size:])
    matrix[:, :, size:] -= cross[..., None] * upper
    index = np.arange(2 * size)
    matrix[:, :, index, index] += 1.0
    return matrix


def t_matrix_change(step: Step, t_matrices: FloatArray, coupled: FloatArray) -> FloatArray:
    """E[T dΓ T], (B, 2K, 2K), for dG on (p, φ̂): two products of large matrices, not 2M small."""
    found = np.zeros_like(coupled)
    first = 0 if np.any(step.k) else step.k.shape[1]  # of the fields that T lives on
    change = (step.phi[:, None, None] * coupled)[:, first:, first:]
    t_matrices = t_matrices[..., first:, first:]
    rows, count, size, _ = t_matrices.shape
    flat = t_matrices.reshape(rows, count * size, size)
    left = matmul(flat, change).reshape(rows, count, size, size)
    left = left * step.r_weight[:, :, None, None]
    found[:, first:, first:] = matmul(left.transpose(0, 2, 1, 3).reshape(rows, size, -1), flat)
    return found


def averaged(weights: FloatArray, matrices: FloatArray) -> FloatArray:
    """Σ_m w_m T(r_m) for weights (B or 1, …, M) and matrices (B, M, a, b): (B, …, a, b)."""
    rows, count, height, width = matrices.shape
    flat = weights.reshape(len(weights), -1, count)
    mean = np.matmul(flat, matrices.reshape(rows, count, height * width))
    return np.asarray(mean.reshape(rows, *weights.shape[1:-1], height, width))


def special_response(step: Step, information: FloatArray, second: FloatArray) -> FloatArray:
    """H, the response along S special directions, (B, 3KS, 3KS) (eqs. 34, 46).

    For E[(θ_s·x)(θ_s′·x)T], `second` (B, S, S, 2K, 2K); H of (24) is the case of one direction.
    """
    count, size = second.shape[1], step.k.shape[1]
    base = b_matrix(step, information)  # B
    matrix = np.zeros((len(step), count, 3 * size, count, 3 * size), dtype=second.dtype)
    inside = p_hat_index(size)
    for i in range(count):
        matrix[:, i, :, i, :] = base
        for j in range(count):
            block = matrix[:, i, :, j, :]
            block[:, inside[:, None], inside] -= second[:, i, j]
    whole = matrix.reshape(len(step), 3 * size * count, 3 * size * count)
    return inverted(whole)


def b_matrix(step: Step, information: FloatArray) -> FloatArray:
    """B of (22), (B, 3K, 3K)."""
    size = step.k.shape[1]
    unit = np.broadcast_to(np.eye(size), information.shape)
    nothing = np.zeros_like(information)
    cross = -diagonals(step.initial_factor)
    return _square([[unit, nothing, cross], [nothing, information, unit], [cross, unit, nothing]])


@dataclass(frozen=True)
class Symmetric:
    """Symmetric matrices by their elements i ≤ j."""

    size: int
    first: IntArray
    second: IntArray

    @property
    def count(self) -> int:
        """Elements."""
        return int(self.first.size)

    def upper(self, matrix: FloatArray) -> FloatArray:
        """The elements of matrices."""
        return np.asarray(matrix[..., self.first, self.second])

    def whole(self, elements: FloatArray) -> FloatArray:
        """The matrices with these elements."""
        matrix = np.empty((*elements.shape[:-1], self.size, self.size), dtype=elements.dtype)
        matrix[..., self.first, self.second] = elements
        matrix[..., self.second, self.first] = elements
        return matrix

    def rows(self, operator: FloatArray) -> FloatArray:
        """Rows of an operator whose rows are all elements."""
        return np.asarray(operator[:, self.first * self.size + self.second])

    def columns(self, operator: FloatArray) -> FloatArray:
        """An operator on all elements, for symmetric matrices."""
        upper = operator[..., self.first * self.size + self.second]
        lower = operator[..., self.second * self.size + self.first]
        return np.where(self.first == self.second, upper, upper + lower)

    def both(self, operator: FloatArray, other: Symmetric) -> FloatArray:
        """An operator from all elements of the others to all elements of these."""
        return self.rows(other.columns(operator))


@lru_cache(maxsize=64)
def symmetric(size: int) -> Symmetric:
    """How to write symmetric matrices of this size."""
    return Symmetric(size, *np.triu_indices(size))
