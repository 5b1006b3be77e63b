"""Covariances of the readout's fields τ, ψ_1 … ψ_r and Δ, and their gradients.

Fields are combinations of the vectors Σ^aβ_j, β_j = X0ᵀr^j/n0, and of the target's r directions
Σ^½θ, each contracted with one of a group's p, φ, φ̂: a field is a column of `on_beta` and
`on_directions`. In a class of coordinates they have the factors s_c^a and s_c^½. Their covariances,
and the gradients of a quadratic form of them, are the same sums for all fields; isotropic inputs
are one class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...core.types import FloatArray
from .dyson import (
    averaged,
    class_blocks,
    class_weights,
    inverted,
    matmul,
    p_hat_index,
    t_matrix_without_readout,
    transposed,
)
from .step import Step

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
