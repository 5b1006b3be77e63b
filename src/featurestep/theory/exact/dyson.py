"""The bulk's matrix Dyson equation, its special directions and the covariances of the fields.

Fields of one coordinate are ordered p, φ, φ̂, K of each (22). T lives on (p, φ̂) and is padded with
zeros where it meets all three.

The readout uses the fields τ, ψ_1 … ψ_r and Δ of a group. They are combinations of the vectors
β_j = X0ᵀr^j/n0 and of the target's r directions, each contracted with one of the group's p, φ, φ̂.
A field is a column of `on_beta` and `on_directions`; its covariances (24), (28), and the gradients
of a quadratic form of them, are the same sums for all fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from ...core.types import FloatArray, IntArray
from .step import Step

_ORDERS = (1, 2, 3)  # of β_j
Average = Callable[[FloatArray], FloatArray]  # weights (B, …, M) of r ↦ Σ_m w_m T(r_m)


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
    return np.asarray(np.linalg.det(sample_denominator(gamma, *_sample_coupling(step))))


def t_matrix(step: Step, coupled: FloatArray) -> FloatArray:
    """T(r) of (22), (B, M, 2K, 2K), for G on (p, φ̂)."""
    return sample_response(step.phi[:, None, None] * coupled, *_sample_coupling(step))


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


def _sample_coupling(step: Step) -> tuple[FloatArray, FloatArray]:
    """rk and r²δ, the diagonals of N(r), (B, M, K)."""
    if step.visible is not None:
        return step.visible.cross, step.visible.own
    r = step.r[:, :, None]
    return r * step.k[:, None, :], r**2 * step.delta[:, None, :]


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
class Covariance:
    """Ĉ of the fields (τ, ψ_1 … ψ_r, Δ), f of them, in scaled units, and what it is made of."""

    on_beta: FloatArray  # (B, 3, 3K, f) fields as combinations of β_1, β_2, β_3
    on_directions: FloatArray  # (B, S, 3K, f) and of the special directions
    response_to_beta: FloatArray  # (B, 3, 3K, f) φ0 G·on_beta
    special_overlaps: FloatArray  # (B, 3KS, f) fields along the special directions, before H
    special_response: FloatArray  # (B, 3KS, 3KS) H
    matrix: FloatArray  # (B, f, f) Ĉ without the part of (35)
    along_beta: FloatArray  # (B, 3K, f) fields as multiples of β
    with_means: FloatArray  # (B, K, f) −c_1 a_h (G·along_beta) in row p_h (35), 0 for labels

    @property
    def total(self) -> FloatArray:
        """Ĉ with the part of (35); `with_means` times √d is the covariance with A."""
        return np.asarray(self.matrix + matmul(transposed(self.with_means), self.with_means))


def covariance(step: Step, information: FloatArray, blocks: Blocks, average: Average) -> Covariance:
    """Covariances of the fields τ, ψ_1 … ψ_r and Δ (eqs. 24, 28, 35, 47).

    For the bulk's G and averages of T(r), with Ṽ as `information`: ⟨β_i|β_j⟩, ⟨β_j|θ⟩ and ⟨θ|θ′⟩,
    each the same sum over what a field is made of.
    """
    size = step.k.shape[1]
    inside = p_hat_index(size)
    on_beta, on_directions = fields_on_beta(step), fields_on_directions(step)
    response = step.phi[:, None, None, None] * matmul(blocks.whole[:, None], on_beta)
    inner = response[:, :, inside]  # (B, 3, 2K, f)
    powers = step.r[:, None, :] ** np.arange(7)[:, None]  # (B, 7, M)
    orders = average(step.r_weight[:, None] * powers[:, 2:])  # E[r^n T], n = 2 … 6
    first = average(step.r_first[:, :, None] * powers[:, None, 1:4])
    second = average(step.r_second)
    h = special_response(step, information, second)
    overlaps = on_directions + np.einsum("bsj,bjpf->bspf", step.r_overlaps[:, :, 1:], on_beta)
    overlaps[:, :, inside] += matmul(first, inner[:, None]).sum(axis=2)
    overlaps = overlaps.reshape(len(step), -1, on_beta.shape[-1])
    matrix = matmul(transposed(overlaps), h, overlaps)
    # ⟨β_i|β_j⟩ for all i and j at once: E[r^{i+j}] φ0G and φ0G E[r^{i+j}T] φ0G.
    rows, fields = len(step), on_beta.shape[-1]
    moments = step.r_moments[:, np.add.outer(_ORDERS, _ORDERS)]  # (B, 3, 3)
    seen = matmul(moments, response.reshape(rows, 3, -1)).reshape(rows, -1, fields)
    matrix += matmul(transposed(on_beta.reshape(rows, -1, fields)), seen)
    both = orders[:, np.add.outer(_ORDERS, _ORDERS) - 2].transpose(0, 1, 3, 2, 4)
    both = both.reshape(rows, 6 * size, 6 * size)
    flat = inner.reshape(rows, 6 * size, fields)
    matrix += matmul(transposed(flat), both, flat)
    along = along_beta(step) if step.is_isotropic else on_beta[:, 0]
    own = matmul(blocks.whole[:, :size], along)  # in rows p
    with_means = (
        -(step.output_slope[:, None] * step.a)[:, :, None] * own * np.sqrt(step.d)[:, None, None]
    )
    return Covariance(on_beta, on_directions, response, overlaps, h, matrix, along, with_means)


def covariance_without_readout(step: Step) -> Covariance:
    """The same at Ṽ = 0, where groups are independent and T(r) is explicit."""
    t_matrices = t_matrix_without_readout(step)
    nothing = np.zeros((len(step), step.k.shape[1], step.k.shape[1]))
    blocks = solve_blocks(step.initial_factor, averaged(step.r_weight, t_matrices), nothing)
    return covariance(step, nothing, blocks, partial(averaged, matrices=t_matrices))


def along_beta(step: Step) -> FloatArray:
    """τ = φ·β/‖β‖ and ψ_1 ∋ −(γ/q)φ·β/‖β‖ as multiples of β, (B, 3K, f)."""
    rows, size = step.k.shape
    along = np.zeros((rows, 3 * size, (2 + step.directions) * size))
    g = np.arange(size)
    along[:, size + g, g] = (1.0 / step.beta)[:, None]
    along[:, size + g, size + g] = -(step.alignment / (step.across * step.beta))[:, None]
    return along


def fields_on_beta(step: Step) -> FloatArray:
    """Fields as combinations of β_1, β_2, β_3, (B, 3, 3K, f); zero for isotropic weights."""
    rows, size = step.k.shape
    on_beta = np.zeros((rows, 3, 3 * size, (2 + step.directions) * size))
    if step.is_isotropic:
        return on_beta
    g = np.arange(size)
    p, hat, delta = g, 2 * size + g, (1 + step.directions) * size + g
    on_beta[:, 0] = along_beta(step)
    for j in range(3):
        on_beta[:, j, p, delta] = step.norm_on_weights[:, :, j]
        on_beta[:, j, hat, delta] = step.norm_on_noise[:, :, j]
    return on_beta


def fields_on_directions(step: Step) -> FloatArray:
    """Parts of the fields along the target's directions, (B, S, 3K, f) (eq. 48).

    ψ_1 = (φ·θ_1 − γτ)/q and ψ_i = φ·θ_i. For isotropic weights τ = φ·θ_1 and ψ = φ·θ_2, with θ_1
    along β.
    """
    rows, size = step.k.shape
    on_directions = np.zeros((rows, step.r_first.shape[1], 3 * size, (2 + step.directions) * size))
    g = np.arange(size)
    if step.is_isotropic:
        on_directions[:, 0, size + g, g] = on_directions[:, 1, size + g, size + g] = 1.0
        return on_directions
    on_directions[:, 0, size + g, size + g] = (1.0 / step.across)[:, None]
    for i in range(1, step.directions):
        on_directions[:, i, size + g, (1 + i) * size + g] = 1.0
    return on_directions


@dataclass(frozen=True)
class Forces:
    """Gradients of x̂ᵀCx̂, what the regression gains by the fields, with respect to the bulk."""

    self_energy: FloatArray  # (B, 3K, 3K) added to Ξ
    response: FloatArray  # (B, K, K) added to d·G_φφ, as an answer along φ
    shift: FloatArray | None = None  # (B, 3K, 3K) added to the mean of G over classes


def forces(
    step: Step, found: Covariance, t_matrices: FloatArray, dual: FloatArray, dual_means: FloatArray
) -> Forces:
    """Gradients of x̃ᵀĈx̃ by G and by Ṽ, for x̃ of the fields (τ, ψ_i, Δ) and of A.

    With ξ(r) = Σ_j r^j ξ_j the fields as combinations of β_j, c = H·(overlaps with the special
    directions) and θ(r) = ξ + T(r)(φ0Gξ + Σ_s t_s c_s), they are φ0 E[θθᵀ] and c_φc_φᵀ.
    """
    size = step.k.shape[1]
    inside = p_hat_index(size)
    phi = step.phi[:, None, None]
    column = dual[:, None, :, None]
    xi = matmul(found.on_beta, column)[..., 0]  # (B, 3, 3K)
    g_xi = matmul(found.response_to_beta[:, :, inside], column)[..., 0]  # φ0Gξ_j, (B, 3, 2K)
    overlaps = matmul(found.special_overlaps, dual[:, :, None])
    c = matmul(found.special_response, overlaps).reshape(len(step), -1, 3 * size)  # (B, S, 3K)
    powers = step.r[:, None, :] ** np.array(_ORDERS)[:, None]  # (B, 3, M)
    g_xi_r = np.einsum("bjm,bjp->bmp", powers, g_xi)
    t_g_xi = matmul(t_matrices, g_xi_r[..., None])[..., 0]  # (B, M, 2K)
    t_c = matmul(t_matrices[:, None], c[:, :, None, inside, None])[..., 0]  # (B, S, M, 2K)
    # E[ξξᵀ] by the exact moments of r, the rest by its nodes.
    gradient = phi * matmul(transposed(xi), step.r_moments[:, np.add.outer(_ORDERS, _ORDERS)], xi)
    weighted, directed = step.r_weight[:, :, None] * t_g_xi, (step.r_first[..., None] * t_c).sum(1)
    mean = weighted + directed
    padded = np.zeros((len(step), 3, 3 * size), dtype=xi.dtype)
    padded[:, :, inside] = np.einsum("bjm,bmp->bjp", powers, mean)
    one_way = phi * matmul(transposed(padded), xi)
    gradient = gradient + one_way + transposed(one_way)
    twice = np.einsum("bstm,btmq->bsmq", step.r_second, t_c)
    flat = (len(step), -1, 2 * size)
    both = matmul(transposed(t_g_xi), weighted)
    both += matmul(transposed(t_c.reshape(flat)), twice.reshape(flat))
    cross = matmul(transposed(directed), t_g_xi)
    gradient[:, inside[:, None], inside] += phi * (both + cross + transposed(cross))
    if np.any(step.output_slope):
        gradient = gradient + _means_force(step, found, dual, dual_means)
    c_phi = c[:, :, size : 2 * size]
    return Forces(gradient / step.d[:, None, None], matmul(transposed(c_phi), c_phi))


def _means_force(
    step: Step, found: Covariance, dual: FloatArray, dual_means: FloatArray
) -> FloatArray:
    """Gradient by G of d Σ_h z_h², z_h = x̃_{A,h} − c_1a_h(Gu)_{p_h} of (35), u along β."""
    size = step.k.shape[1]
    along = matmul(found.along_beta, dual[:, :, None])[:, :, 0]  # u, (B, 3K)
    z = dual_means + matmul(found.with_means, dual[:, :, None])[..., 0] / np.sqrt(step.d)[:, None]
    pulled = np.zeros_like(along)
    pulled[:, :size] = -(step.d * step.output_slope)[:, None] * step.a * z
    one_way = pulled[:, :, None] * along[:, None, :]
    return np.asarray(one_way + transposed(one_way))


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

    def halved(self, operator: FloatArray) -> FloatArray:
        """Columns of diagonal elements halved: an operator that has counted them twice."""
        return np.asarray(operator * np.where(self.first == self.second, 0.5, 1.0))


@lru_cache(maxsize=64)
def symmetric(size: int) -> Symmetric:
    """How to write symmetric matrices of this size."""
    return Symmetric(size, *np.triu_indices(size))
