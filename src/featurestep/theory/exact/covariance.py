"""Covariances of the fields that the readout uses of the special directions.

Fields τ, ψ_1 … ψ_r and Δ of a group are combinations of the vectors β_j = X0ᵀr^j/n0 and of the
target's r directions, each contracted with one of the group's fields p, φ, φ̂. A field is a column
of `on_beta` and `on_directions`; its covariances, and the gradients of a quadratic form of them,
are the same sums for all fields.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.types import FloatArray
from .dyson import (
    Blocks,
    averaged,
    matmul,
    p_hat_index,
    solve_blocks,
    special_response,
    t_matrix_without_readout,
    transposed,
)
from .step import Step

_ORDERS = (1, 2, 3)  # of β_j


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


def covariance(
    step: Step, information: FloatArray, blocks: Blocks, t_matrices: FloatArray
) -> Covariance:
    """Covariances of the fields τ, ψ_1 … ψ_r and Δ (eqs. 24, 28, 35, 47).

    For the bulk's G and T(r), with Ṽ as `information`: ⟨β_i|β_j⟩, ⟨β_j|θ⟩ and ⟨θ|θ′⟩, each the
    same sum over what a field is made of.
    """
    size = step.k.shape[1]
    inside = p_hat_index(size)
    on_beta, on_directions = _on_beta(step), _on_directions(step)
    response = step.phi[:, None, None, None] * matmul(blocks.whole[:, None], on_beta)
    inner = response[:, :, inside]  # (B, 3, 2K, f)
    powers = step.r[:, None, :] ** np.arange(7)[:, None]  # (B, 7, M)
    orders = averaged(step.r_weight[:, None] * powers[:, 2:], t_matrices)  # E[r^n T], n = 2 … 6
    first = averaged(step.r_first[:, :, None] * powers[:, None, 1:4], t_matrices)
    second = averaged(step.r_second, t_matrices)
    h = special_response(step, information, second)
    overlaps = on_directions + np.einsum("bsj,bjpf->bspf", step.r_overlaps[:, :, 1:], on_beta)
    overlaps[:, :, inside] += matmul(first, inner[:, None]).sum(axis=2)
    overlaps = overlaps.reshape(len(step), -1, on_beta.shape[-1])
    matrix = matmul(transposed(overlaps), h, overlaps)
    for i in _ORDERS:
        for j in _ORDERS:
            moment = step.r_moments[:, i + j, None, None]
            matrix = matrix + moment * matmul(transposed(on_beta[:, i - 1]), response[:, j - 1])
            matrix = matrix + matmul(
                transposed(inner[:, i - 1]), orders[:, i + j - 2], inner[:, j - 1]
            )
    along = _along_beta(step) if step.is_isotropic else on_beta[:, 0]
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
    return covariance(step, nothing, blocks, t_matrices)


def _along_beta(step: Step) -> FloatArray:
    """τ = φ·β/‖β‖ and ψ_1 ∋ −(γ/q)φ·β/‖β‖ as multiples of β, (B, 3K, f)."""
    rows, size = step.k.shape
    along = np.zeros((rows, 3 * size, (2 + step.directions) * size))
    g = np.arange(size)
    along[:, size + g, g] = (1.0 / step.beta)[:, None]
    along[:, size + g, size + g] = -(step.alignment / (step.across * step.beta))[:, None]
    return along


def _on_beta(step: Step) -> FloatArray:
    """Fields as combinations of β_1, β_2, β_3, (B, 3, 3K, f); zero for isotropic weights."""
    rows, size = step.k.shape
    on_beta = np.zeros((rows, 3, 3 * size, (2 + step.directions) * size))
    if step.is_isotropic:
        return on_beta
    g = np.arange(size)
    p, hat, delta = g, 2 * size + g, (1 + step.directions) * size + g
    on_beta[:, 0] = _along_beta(step)
    for j in range(3):
        on_beta[:, j, p, delta] = step.norm_on_weights[:, :, j]
        on_beta[:, j, hat, delta] = step.norm_on_noise[:, :, j]
    return on_beta


def _on_directions(step: Step) -> FloatArray:
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
    mean = step.r_weight[:, :, None] * t_g_xi + np.einsum("bsm,bsmp->bmp", step.r_first, t_c)
    padded = np.zeros((len(step), 3, 3 * size), dtype=xi.dtype)
    padded[:, :, inside] = np.einsum("bjm,bmp->bjp", powers, mean)
    one_way = phi * matmul(transposed(padded), xi)
    gradient = gradient + one_way + transposed(one_way)
    both = np.einsum("bm,bmp,bmq->bpq", step.r_weight, t_g_xi, t_g_xi, optimize=True)
    both += np.einsum("bstm,bsmp,btmq->bpq", step.r_second, t_c, t_c, optimize=True)
    cross = np.einsum("bsm,bsmp,bmq->bpq", step.r_first, t_c, t_g_xi, optimize=True)
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
