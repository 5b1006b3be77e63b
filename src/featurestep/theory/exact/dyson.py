"""The bulk's matrix Dyson equation, and covariances of the readout's fields τ, ψ_1 … ψ_r and Δ.

Fields of one coordinate are ordered p, φ, φ̂, K of each (22). T lives on (p, φ̂) and is padded with
zeros where it meets all three.

Coordinates come in classes: those of inputs with a covariance (94), or a single one. A class has
its own G_c; what the fixed point sees of all coordinates is the mean over the classes.

The readout's fields are combinations of the vectors Σ^aβ_j, β_j = X0ᵀr^j/n0, and of the target's r
directions Σ^½θ, each contracted with one of a group's p, φ, φ̂: a field is a column of `on_beta` and
`on_directions`. In a class of coordinates they have the factors s_c^a and s_c^½. Their covariances,
and the gradients of a quadratic form of them, are the same sums for all fields; isotropic inputs
are one class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache, partial
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


def _solved_each(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """The solutions of linear systems for matrices; not finite where one is singular."""
    try:
        found: Any = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return matmul(inverted(matrix), right)
    return np.asarray(found)


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
    if size == 1:
        inverse = inverted(matrix)
        left, right = inverse[..., :1], inverse[..., 1:]
        cross, own = cross[:, :, None, :], own[:, :, None, :]
        return np.concatenate([right * cross, left * cross + right * own], axis=-1)
    coupling = np.zeros_like(matrix)  # N
    index = np.arange(size)
    coupling[..., index, size + index] = coupling[..., size + index, index] = cross
    coupling[..., size + index, size + index] = own
    found = _solved_each(matrix, coupling)
    return 0.5 * (found + transposed(found))  # rounding alone is not symmetric


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


_ORDERS = np.array([1, 2, 3])  # of β_j
Average = Callable[[FloatArray], FloatArray]  # weights (B, …, M) of r ↦ Σ_m w_m T(r_m)


@dataclass(frozen=True)
class Covariance:
    """Ĉ of the fields (τ, ψ_1 … ψ_r, Δ), f of them, in scaled units, and what it is made of."""

    whole: FloatArray  # (B, C, 3K, 3K) G_c
    on_beta: FloatArray  # (B, C, 3, 3K, f) fields as combinations of β_1, β_2, β_3
    inner: FloatArray  # (B, 3, 2K, f) φ0 Σ f_cs_cG_c·on_beta, on (p, φ̂)
    along_directions: FloatArray  # (B, C, S, 3K, f) fields along θ_s, before the response
    directions_mean: FloatArray  # (B, S, 3K, f) Σ t_cs_cG_c·along_directions
    directions_blocks: FloatArray  # (B, 3K, 2K) g_1, its columns p and φ̂
    response: FloatArray  # (B, 2KS, 2KS) U
    matrix: FloatArray  # (B, f, f) Ĉ without the part of (35)
    along_beta: FloatArray  # (B, 3K, f) fields as multiples of β
    with_means: FloatArray  # (B, K, f) −c_1 a_h (G·along_beta) in row p_h (35), 0 for labels

    @property
    def total(self) -> FloatArray:
        """Ĉ with the part of (35); `with_means` times √d is the covariance with A."""
        return np.asarray(self.matrix + matmul(transposed(self.with_means), self.with_means))


def covariance(step: Step, xi: FloatArray, whole: FloatArray, average: Average) -> Covariance:
    """Covariances of the fields (eqs. 24, 28, 35, 47, 97, 98, 106).

    For the bulk's Ξ, G_c (B, C, 3K, 3K) and averages of T(r). ⟨Σ^aβ_i|Σ^bβ_j⟩, ⟨Σ^aβ_j|Σ^½θ⟩ and
    ⟨Σ^½θ|Σ^½θ′⟩ are each the same sum over what a field is made of: of β_j with a = 1 in τ and ψ,
    and a = 0 in Δ.
    """
    weights, phi = class_weights(step), step.phi[:, None, None]
    rows, count = weights.bulk.shape
    size = step.k.shape[1]
    inside = p_hat_index(size)
    on_beta, on_directions = fields_on_beta(step), fields_on_directions(step)
    total = on_beta.shape[-1]
    own = np.repeat(on_beta[:, None], count, axis=1)  # (B, C, 3, 3K, f)
    if step.classes is not None:
        beyond = (weights.eigenvalue - 1.0)[:, :, None, None]
        own[:, :, 0] += beyond * along_beta(step)[:, None]
    seen = matmul(whole[:, :, None], own)
    inner = phi[..., None] * weights.mean(weights.bulk, seen)[:, :, inside]
    # ⟨β_i|β_j⟩ for all i and j at once: E[r^{i+j}] φ0G and φ0G E[r^{i+j}T] φ0G.
    moments = step.r_moments[:, np.add.outer(_ORDERS, _ORDERS)]  # (B, 3, 3)
    mixed = matmul(moments[:, None], seen.reshape(rows, count, 3, -1))
    mixed = (weights.bulk[:, :, None, None] * mixed).reshape(rows, -1, total)
    matrix = phi * matmul(transposed(own.reshape(rows, -1, total)), mixed)
    powers = step.r_powers
    orders = average(step.r_weight[:, None] * powers[:, 2:])  # E[r^n T], n = 2 … 6
    both = orders[:, np.add.outer(_ORDERS, _ORDERS) - 2].transpose(0, 1, 3, 2, 4)
    flat = inner.reshape(rows, 6 * size, total)
    matrix += matmul(transposed(flat), both.reshape(rows, 6 * size, 6 * size), flat)
    first = average(step.r_first[:, :, None] * powers[:, None, 1:4])
    along = on_directions[:, None] + np.einsum("bsj,bcjpf->bcspf", step.r_overlaps[:, :, 1:], own)
    along[:, :, :, inside] += matmul(first, inner[:, None]).sum(axis=2)[:, None]
    answered = matmul(whole[:, :, None], along)  # (B, C, S, 3K, f)
    weighted = (weights.target[:, :, None, None, None] * answered).reshape(rows, -1, total)
    matrix += matmul(transposed(along.reshape(rows, -1, total)), weighted)
    mean = weights.mean(weights.target, answered)
    blocks = weights.mean(weights.target, whole[..., inside])
    response = directions_response(blocks[:, inside], average(step.r_second), xi)
    flat = mean[:, :, inside].reshape(rows, -1, total)
    matrix += matmul(transposed(flat), response, flat)
    beside = along_beta(step) if step.is_isotropic else on_beta[:, 0]
    slope = (step.output_slope * np.sqrt(step.d))[:, None] * step.a
    return Covariance(
        whole=whole,
        on_beta=own,
        inner=inner,
        along_directions=along,
        directions_mean=mean,
        directions_blocks=blocks,
        response=response,
        matrix=matrix,
        along_beta=beside,
        with_means=-slope[:, :, None] * matmul(whole[:, 0, :size], beside),  # in rows p
    )


def covariance_without_readout(step: Step) -> Covariance:
    """The same at Ṽ = 0, where groups are independent and T(r) is explicit (eq. 107)."""
    t_matrices = t_matrix_without_readout(step)
    nothing = np.zeros((len(step), step.k.shape[1], step.k.shape[1]))
    xi = averaged(step.r_weight, t_matrices)
    whole = class_blocks(step, xi, nothing).whole
    return covariance(step, xi, whole, partial(averaged, matrices=t_matrices))


def directions_response(blocks: FloatArray, second: FloatArray, xi: FloatArray) -> FloatArray:
    """U = ΔΞ(I − g_1ΔΞ)⁻¹ with ΔΞ = E[(θ_s·x̃)(θ_s′·x̃)T] − Ξ, (B, 2KS, 2KS) (eqs. 34, 46, 96).

    With one class H = G + GUG. blocks: g_1 = Σ t_cs_cG_c on (p, φ̂), (B, 2K, 2K); second:
    (B, S, S, 2K, 2K).
    """
    rows, count, _, size, _ = second.shape
    several = np.eye(count)[:, :, None, None]
    shape = (rows, count * size, count * size)
    change = second - several * xi[:, None, None]
    flat = change.transpose(0, 1, 3, 2, 4).reshape(shape)
    wide = (several * blocks[:, None, None]).transpose(0, 1, 3, 2, 4).reshape(shape)
    return matmul(flat, inverted(np.eye(count * size) - matmul(wide, flat)))


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


def forces(
    step: Step, found: Covariance, t_matrices: FloatArray, dual: FloatArray, dual_means: FloatArray
) -> FloatArray:
    """What x̃ᵀĈx̃ adds to the mean Σ f_cs_cG_c, (B, 3K, 3K), by its gradients by the G_c.

    For x̃ of the fields (τ, ψ_i, Δ) and of A. With ξ_c(r) = Σ_j r^jξ_cj, m(r) = φ0 Σ f_cs_cG_cξ_c,
    c the response along θ, and e_c its source there, they are φ0f_cs_c E[θ_cθ_cᵀ] + t_cs_c(e_ce_cᵀ)
    with θ_c = ξ_c + T(m + tc), but without E[TccᵀT], which follows from the second part.
    """
    weights, phi = class_weights(step), step.phi[:, None, None]
    rows, size = step.k.shape
    inside = p_hat_index(size)
    xi = matmul(found.on_beta, dual[:, None, None, :, None])[..., 0]  # (B, C, 3, 3K)
    m = matmul(found.inner, dual[:, None, :, None])[..., 0]  # (B, 3, 2K)
    overlaps = found.directions_mean[:, :, inside].reshape(rows, -1, dual.shape[1])
    pulled = matmul(found.response, matmul(overlaps, dual[:, :, None]))
    pulled = pulled.reshape(rows, -1, 2 * size)  # U·(…), (B, S, 2K)
    source = matmul(found.along_directions, dual[:, None, None, :, None])[..., 0]  # (B, C, S, 3K)
    source[..., inside] += pulled[:, None]
    c = matmul(found.directions_mean, dual[:, None, :, None])[..., 0]
    c = c + matmul(pulled, transposed(found.directions_blocks))  # (B, S, 3K)
    powers = step.r_powers[:, _ORDERS]  # (B, 3, M)
    t_m = matmul(t_matrices, np.einsum("bjm,bjp->bmp", powers, m)[..., None])[..., 0]
    t_c = matmul(t_matrices[:, None], c[:, :, None, inside, None])[..., 0]  # (B, S, M, 2K)
    weighted, directed = step.r_weight[:, :, None] * t_m, (step.r_first[..., None] * t_c).sum(1)
    second = step.r_second - np.eye(c.shape[1])[:, :, None] * step.r_weight[:, None, None]
    twice = np.einsum("bstm,btmq->bsmq", second, t_c)
    flat = (rows, -1, 2 * size)
    common = matmul(transposed(t_m), weighted)
    common += matmul(transposed(t_c.reshape(flat)), twice.reshape(flat))
    cross = matmul(transposed(directed), t_m)
    common += cross + transposed(cross)
    # Products with G_c before those of two vectors: x̃ may be large where G_c nearly vanishes.
    answered = matmul(xi, found.whole)  # G_cξ_c, (B, C, 3, 3K)
    turned = found.whole[..., inside]  # (B, C, 3K, 2K)
    # E[ξξᵀ] by the exact moments of r, the rest by its nodes.
    moments = step.r_moments[:, np.add.outer(_ORDERS, _ORDERS)]
    moved = matmul(transposed(answered), moments[:, None], answered)  # (B, C, 3K, 3K)
    mean = np.einsum("bjm,bmp->bjp", powers, weighted + directed)
    one_way = matmul(transposed(matmul(mean[:, None], transposed(turned))), answered)
    moved += one_way + transposed(one_way)
    moved += matmul(turned, common[:, None], transposed(turned))
    moved *= (phi * weights.bulk[:, :, None])[..., None]
    source = matmul(source, found.whole)
    moved += weights.target[:, :, None, None] * matmul(transposed(source), source)
    if np.any(step.output_slope):
        moved[:, 0] += _means_force(step, found, dual, dual_means)
    return weights.mean(weights.eigenvalue, moved) / step.d[:, None, None]


def mean_change(step: Step, whole: FloatArray, pushed: FloatArray) -> FloatArray:
    """The change Σ f_cs_c²G_c dΞ G_c of the mean of G, for G_c (B, C, 3K, 3K)."""
    weights = class_weights(step)
    return weights.mean(weights.bulk * weights.eigenvalue, matmul(whole, pushed[:, None], whole))


def _means_force(
    step: Step, found: Covariance, dual: FloatArray, dual_means: FloatArray
) -> FloatArray:
    """The same of d Σ_h z_h² with z_h = x̃_{A,h} − c_1a_h(Gu)_{p_h} of (35), u along β."""
    size = step.k.shape[1]
    along = matmul(found.along_beta, dual[:, :, None])[:, :, 0]  # u, (B, 3K)
    z = dual_means + matmul(found.with_means, dual[:, :, None])[..., 0] / np.sqrt(step.d)[:, None]
    pulled = np.zeros_like(along)
    pulled[:, :size] = -(step.d * step.output_slope)[:, None] * step.a * z
    whole = found.whole[:, 0]
    one_way = matmul(whole, pulled[:, :, None]) * matmul(along[:, None, :], whole)
    return np.asarray(one_way + transposed(one_way))
