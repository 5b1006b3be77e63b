"""The bulk's matrix Dyson equation.

Fields of one coordinate are ordered p, φ, φ̂, K of each (22). T lives on (p, φ̂) and is padded with
zeros where it meets all three.

Coordinates come in classes: those of inputs with a covariance (94), or a single one. A class has
its own G_c; what the fixed point sees of all coordinates is the mean over the classes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...core.types import FloatArray, IntArray
from .step import Step


def matmul(*factors: FloatArray) -> FloatArray:
    """The product of matrices, left to right."""
    product = factors[0]
    for factor in factors[1:]:
        product = np.matmul(product, factor)
    return product


def real_product(values: FloatArray, table: FloatArray) -> FloatArray:
    """Values (B, m), real or complex, times a real table (m, p): by real products alone."""
    if not np.iscomplexobj(values):
        return np.asarray(values @ table)
    found: Any = np.empty((len(values), table.shape[1]), dtype=np.complex128)
    found.real, found.imag = values.real @ table, values.imag @ table
    return np.asarray(found)


def transposed(matrix: FloatArray) -> FloatArray:
    """The matrices, transposed."""
    return matrix.swapaxes(-1, -2)


def inverted(matrix: FloatArray) -> FloatArray:
    """The inverse matrices; not finite where one is singular, so that it spoils no other.

    Those of 1×1 and 2×2 by their formula: LAPACK would be called for each of them. Warnings of
    divisions by 0 are left to the caller.
    """
    if matrix.shape[-1] <= 2:
        return _inverted_small(matrix)
    try:
        found: Any = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        if matrix.ndim == 2:
            return np.full_like(matrix, np.nan)
        return np.stack([inverted(each) for each in matrix])
    return np.asarray(found)


def _inverted_small(matrix: FloatArray) -> FloatArray:
    """The inverses of 1×1 and 2×2 matrices."""
    if matrix.shape[-1] == 1:
        return np.asarray(1.0 / matrix)
    a, b, c, d = (matrix[..., i, j] for i in (0, 1) for j in (0, 1))
    scale = 1.0 / (a * d - b * c)
    found = np.empty_like(matrix)
    found[..., 0, 0], found[..., 1, 1] = d * scale, a * scale
    found[..., 0, 1], found[..., 1, 0] = -b * scale, -c * scale
    return found


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
    of nearly equal numbers. Beside G_pp all blocks are made of products with (yᵀ, −λ).
    """
    size = initial_factor.shape[-1]
    unit = np.eye(size)
    xi_pp, xi_hat = xi[..., :size, :size], xi[..., size:, size:]
    p = diagonals(initial_factor) + xi[..., :size, size:]
    y = inverted(unit + matmul(xi_hat, information))
    lam = matmul(information, y)
    pp = inverted(unit - xi_pp + matmul(p, lam, transposed(p)))
    turned = matmul(p, np.concatenate([transposed(y), -lam], axis=-1))
    beside = matmul(pp, turned)
    square = matmul(transposed(turned), beside)
    return Blocks(
        pp=pp,
        p_phi=beside[..., :size],
        p_hat=beside[..., size:],
        phi_phi=square[..., :size, :size] + matmul(y, xi_hat),
        phi_hat=square[..., :size, size:] + y,
        hat_hat=square[..., size:, size:] - lam,
    )


def p_hat_index(size: int) -> IntArray:
    """Rows p and φ̂ among (p, φ, φ̂)."""
    return np.concatenate([np.arange(size), np.arange(2 * size, 3 * size)])


def t_matrix_determinant(step: Step, coupled: FloatArray) -> FloatArray:
    """det(I − N(r)Γ), (B, M): it vanishes where a single sample makes an eigenvalue."""
    gamma = step.phi[:, None, None] * coupled
    return np.asarray(np.linalg.det(sample_denominator(gamma, *step.sample_coupling)))


def t_matrix(step: Step, coupled: FloatArray) -> FloatArray:
    """T(r) of (22), (B, M, 2K, 2K), for G on (p, φ̂)."""
    return sample_response(step.phi[:, None, None] * coupled, *step.sample_coupling)


def sample_response(gamma: FloatArray, cross: FloatArray, own: FloatArray) -> FloatArray:
    """T = (I − NΓ)⁻¹N of every sample, (B, M, 2K, 2K), for Γ (B, 2K, 2K), of (22) and (167).

    N = [[0, cross], [cross, own]] with diagonal blocks (B, M, K), so that products with it are
    scalings.
    """
    size = cross.shape[2]
    matrix = sample_denominator(gamma, cross, own)
    if not np.any(cross):  # c_2 = 0: N and T live on φ̂ alone
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


def sample_denominator(gamma: FloatArray, cross: FloatArray, own: FloatArray) -> FloatArray:
    """I − NΓ, (B, M, 2K, 2K)."""
    size = cross.shape[2]
    gamma = gamma[:, None]  # (B, 1, 2K, 2K)
    upper, lower = gamma[:, :, :size], gamma[:, :, size:]
    shape = (max(len(cross), len(gamma)), cross.shape[1], 2 * size, 2 * size)
    matrix = np.empty(shape, dtype=gamma.dtype)
    np.multiply(-cross[..., None], lower, out=matrix[:, :, :size])
    np.multiply(-own[..., None], lower, out=matrix[:, :, size:])
    matrix[:, :, size:] -= cross[..., None] * upper
    index = np.arange(2 * size)
    matrix[:, :, index, index] += 1.0
    return matrix


def t_matrix_change(step: Step, t_matrices: FloatArray, coupled: FloatArray) -> FloatArray:
    """E[T dΓ T], (B, 2K, 2K), for dG on (p, φ̂)."""
    found = np.zeros_like(coupled)
    turned = np.any(step.k) or step.visible is not None
    first = 0 if turned else step.k.shape[1]  # of the fields that T lives on
    change = (step.phi[:, None, None] * coupled)[:, first:, first:]
    inner = averaged_change(step.r_weight, t_matrices[..., first:, first:], change)
    found[:, first:, first:] = inner
    return found


def averaged_change(weight: FloatArray, t_matrices: FloatArray, change: FloatArray) -> FloatArray:
    """Σ_m w_m T_m dΓ T_m, (B, a, a), for weights (B, M), matrices (B, M, a, a) and dΓ (B, a, a).

    Two products of large matrices, not 2M small ones.
    """
    rows, count, size, _ = t_matrices.shape
    flat = t_matrices.reshape(rows, count * size, size)
    left = matmul(flat, change).reshape(rows, count, size, size)
    left = left * weight[:, :, None, None]
    return matmul(left.transpose(0, 2, 1, 3).reshape(rows, size, -1), flat)


def averaged(weights: FloatArray, matrices: FloatArray) -> FloatArray:
    """Σ_m w_m T(r_m) for weights (B or 1, …, M) and matrices (B, M, a, b): (B, …, a, b)."""
    rows, count, height, width = matrices.shape
    flat = weights.reshape(len(weights), -1, count)
    mean = np.matmul(flat, matrices.reshape(rows, count, height * width))
    return np.asarray(mean.reshape(rows, *weights.shape[1:-1], height, width))


class ClassWeights(NamedTuple):
    """Eigenvalues of C classes of coordinates, and weights of sums over them, (B, C) each."""

    eigenvalue: FloatArray  # s_c
    bulk: FloatArray  # f_cs_c
    target: FloatArray  # t_cs_c

    def mean(self, weight: FloatArray, values: FloatArray) -> FloatArray:
        """Σ_c weight_c values_c, for (B, C) and (B, C, …)."""
        rows, count = values.shape[:2]
        flat = values.reshape(rows, count, -1)
        return matmul(weight[:, None, :], flat)[:, 0].reshape(rows, *values.shape[2:])


def class_weights(step: Step) -> ClassWeights:
    """The classes of inputs with a covariance, or one class of all coordinates."""
    classes = step.classes
    if classes is None:
        one = np.ones((len(step), 1))
        return ClassWeights(one, one, one)
    s = classes.eigenvalue
    return ClassWeights(s, classes.share * s, classes.mass * s)


def class_blocks(step: Step, xi: FloatArray, information: FloatArray) -> Blocks:
    """G_c = (B_c − s_cΞ)⁻¹ of every class in its blocks, (B, C, K, K) each (eq. 94).

    The readout's field φ has no part along a direction that is conditioned on: G_c vanishes there.
    """
    classes = step.classes
    xi, information = xi[:, None], information[:, None]
    if classes is None:
        return solve_blocks(step.initial_factor[:, None], xi, information)
    s = classes.eigenvalue[:, :, None, None]
    if step.visible is None:
        return solve_blocks(classes.factor, s * xi, s * information)
    linear = classes.linear[:, :, None, None]
    bare = solve_blocks(classes.factor, s * xi, linear * s * information)
    return replace(
        bare,
        p_phi=linear * bare.p_phi,
        phi_phi=linear * bare.phi_phi,
        phi_hat=linear * bare.phi_hat,
    )


def bulk_blocks(step: Step, xi: FloatArray, information: FloatArray) -> Blocks:
    """Σ_c f_cs_cG_c in its blocks, (B, K, K) each (eq. 95)."""
    if step.classes is None:
        return solve_blocks(step.initial_factor, xi, information)
    weights, blocks = class_weights(step), class_blocks(step, xi, information)
    means = (weights.mean(weights.bulk, getattr(blocks, f.name)) for f in fields(Blocks))
    return Blocks(*means)


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
        found = elements.take(self._places, axis=-1)
        return found.reshape(*elements.shape[:-1], self.size, self.size)

    @cached_property
    def _places(self) -> IntArray:
        """Where the elements of a whole matrix are among those with i ≤ j."""
        return symmetric_places(self.size)

    def rows(self, operator: FloatArray) -> FloatArray:
        """Rows of an operator whose rows are all elements."""
        return np.asarray(operator[:, self.first * self.size + self.second])

    def columns(self, operator: FloatArray) -> FloatArray:
        """An operator on all elements, for symmetric matrices."""
        upper = operator[..., self.first * self.size + self.second]
        lower = operator[..., self.second * self.size + self.first]
        return np.where(self.first == self.second, upper, upper + lower)

    def halved(self, operator: FloatArray) -> FloatArray:
        """Columns of diagonal elements halved: an operator that has counted them twice."""
        return np.asarray(operator * np.where(self.first == self.second, 0.5, 1.0))


def symmetric_places(size: int) -> IntArray:
    """Places of all elements of a symmetric matrix, row by row, among those with i ≤ j."""
    places = np.zeros((size, size), dtype=np.intp)
    first, second = np.triu_indices(size)
    places[first, second] = places[second, first] = np.arange(first.size)
    return places.ravel()


@lru_cache(maxsize=64)
def symmetric(size: int) -> Symmetric:
    """How to write symmetric matrices of this size."""
    return Symmetric(size, *np.triu_indices(size))
