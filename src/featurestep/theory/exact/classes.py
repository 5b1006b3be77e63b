"""Inputs with a covariance: classes of coordinates in the bulk's Dyson equation (sections 30–32).

A class c has the eigenvalue s_c of Σ, the share f_c of the coordinates and the mass t_c of the
target's direction θ = Σ^½β⋆ (`step.Classes`). It has its own G_c; averages over the classes stand
where isotropic inputs have G. The readout's fields are combinations of Σ^aβ_j and Σ^½θ: in a class
they have the factors s_c^a and s_c^½.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from ...core.types import FloatArray
from .dyson import (
    Blocks,
    Covariance,
    Forces,
    along_beta,
    averaged,
    covariance,
    covariance_without_readout,
    fields_on_beta,
    fields_on_directions,
    inverted,
    matmul,
    p_hat_index,
    solve_blocks,
    t_matrix_without_readout,
    transposed,
)
from .inputs import Classes
from .step import Step

_ORDERS = np.array([1, 2, 3])  # of β_j


def class_blocks(step: Step, xi: FloatArray, information: FloatArray) -> Blocks:
    """G_c = (B_c − s_cΞ)⁻¹ of every class in its blocks, (B, C, K, K) each (eq. 94).

    The readout's field φ has no part along a direction that is conditioned on: G_c vanishes there.
    """
    classes = _classes(step)
    s = classes.eigenvalue[:, :, None, None]
    if step.visible is None:
        return solve_blocks(classes.factor, s * xi[:, None], s * information[:, None])
    linear = classes.linear[:, :, None, None]
    bare = solve_blocks(classes.factor, s * xi[:, None], linear * s * information[:, None])
    return replace(
        bare,
        p_phi=linear * bare.p_phi,
        phi_phi=linear * bare.phi_phi,
        phi_hat=linear * bare.phi_hat,
    )


def mean_blocks(step: Step, blocks: Blocks) -> Blocks:
    """Σ_c f_cs_cG_c in its blocks, (B, K, K) each (eq. 95)."""
    classes = _classes(step)
    weight = classes.share * classes.eigenvalue
    return Blocks(*(_mean(weight, getattr(blocks, f.name)) for f in fields(Blocks)))


def bulk_blocks(step: Step, xi: FloatArray, information: FloatArray) -> Blocks:
    """The blocks of G, or for inputs with a covariance of its mean over the classes."""
    if step.classes is None:
        return solve_blocks(step.initial_factor, xi, information)
    return mean_blocks(step, class_blocks(step, xi, information))


def bulk_covariance(
    step: Step, information: FloatArray, blocks: Blocks, t_matrices: FloatArray
) -> Covariance:
    """Covariances of the fields τ, ψ and Δ, with classes of coordinates where there are any."""
    if step.classes is None:
        return covariance(step, information, blocks, partial(averaged, matrices=t_matrices))
    return class_covariance(step, information, t_matrices)


def covariance_before_readout(step: Step) -> Covariance:
    """The same at Ṽ = 0, where groups are independent and T(r) is explicit (eq. 107)."""
    if step.classes is None:
        return covariance_without_readout(step)
    nothing = np.zeros((len(step), step.k.shape[1], step.k.shape[1]))
    return class_covariance(step, nothing, t_matrix_without_readout(step))


def _classes(step: Step) -> Classes:
    assert step.classes is not None
    return step.classes


def _mean(weight: FloatArray, values: FloatArray) -> FloatArray:
    """Σ_c weight_c values_c, for (B, C) and (B, C, …)."""
    rows, count = values.shape[:2]
    flat = values.reshape(rows, count, -1)
    return matmul(weight[:, None, :], flat)[:, 0].reshape(rows, *values.shape[2:])


@dataclass(frozen=True)
class ClassCovariance(Covariance):
    """The same with classes of coordinates, and what its gradients need."""

    whole: FloatArray  # (B, C, 3K, 3K) G_c
    class_on_beta: FloatArray  # (B, C, 3, 3K, f) fields as combinations of β_1, β_2, β_3
    inner: FloatArray  # (B, 3, 2K, f) φ0 Σ f_cs_cG_c·class_on_beta, on (p, φ̂)
    along_target: FloatArray  # (B, C, S, 3K, f) fields along θ, before the response
    target_mean: FloatArray  # (B, S, 3K, f) Σ t_cs_cG_c·along_target
    target_blocks: FloatArray  # (B, 3K, 2K) g_1, its columns p and φ̂


def class_covariance(
    step: Step, information: FloatArray, t_matrices: FloatArray
) -> ClassCovariance:
    """Covariances of τ, ψ and Δ for inputs with a covariance (eqs. 97, 98, 106).

    ⟨Σ^aβ_i|Σ^bβ_j⟩, ⟨Σ^aβ_j|Σ^½θ⟩ and ⟨Σ^½θ|Σ^½θ⟩, each the same sum over what a field is made of:
    of β_j with a = 1 in τ and ψ, and a = 0 in Δ.
    """
    classes, phi = _classes(step), step.phi[:, None, None]
    rows, count = classes.share.shape
    size = step.k.shape[1]
    inside = p_hat_index(size)
    xi = averaged(step.r_weight, t_matrices)
    whole = class_blocks(step, xi, information).whole  # (B, C, 3K, 3K)
    on_beta, on_directions = fields_on_beta(step), fields_on_directions(step)
    total = on_beta.shape[-1]
    own = np.repeat(on_beta[:, None], count, axis=1)  # (B, C, 3, 3K, f)
    beyond = (classes.eigenvalue - 1.0)[:, :, None, None]
    own[:, :, 0] += beyond * along_beta(step)[:, None]
    seen = matmul(whole[:, :, None], own)
    bulk = classes.share * classes.eigenvalue
    inner = step.phi[:, None, None, None] * _mean(bulk, seen)[:, :, inside]
    moments = step.r_moments[:, np.add.outer(_ORDERS, _ORDERS)]  # (B, 3, 3)
    mixed = matmul(moments[:, None], seen.reshape(rows, count, 3, -1))
    mixed = (bulk[:, :, None, None] * mixed).reshape(rows, -1, total)
    matrix = phi * matmul(transposed(own.reshape(rows, -1, total)), mixed)
    powers = step.r[:, None, :] ** np.arange(7)[:, None]  # (B, 7, M)
    orders = averaged(step.r_weight[:, None] * powers[:, 2:], t_matrices)
    both = orders[:, np.add.outer(_ORDERS, _ORDERS) - 2].transpose(0, 1, 3, 2, 4)
    flat = inner.reshape(rows, 6 * size, total)
    matrix += matmul(transposed(flat), both.reshape(rows, 6 * size, 6 * size), flat)
    first = averaged(step.r_first[:, :, None] * powers[:, None, 1:4], t_matrices)
    along = on_directions[:, None] + np.einsum("bsj,bcjpf->bcspf", step.r_overlaps[:, :, 1:], own)
    along[:, :, :, inside] += matmul(first, inner[:, None]).sum(axis=2)[:, None]
    target = classes.mass * classes.eigenvalue
    answered = matmul(whole[:, :, None], along)  # (B, C, S, 3K, f)
    weighted = (target[:, :, None, None, None] * answered).reshape(rows, -1, total)
    matrix += matmul(transposed(along.reshape(rows, -1, total)), weighted)
    mean = _mean(target, answered)
    blocks = _mean(target, whole[..., inside])
    response = target_response(blocks[:, inside], averaged(step.r_second, t_matrices), xi)
    flat = mean[:, :, inside].reshape(rows, -1, total)
    matrix += matmul(transposed(flat), response, flat)
    return ClassCovariance(
        on_beta=on_beta,
        on_directions=on_directions,
        response_to_beta=inner,
        special_overlaps=flat,
        special_response=response,
        matrix=matrix,
        along_beta=on_beta[:, 0],
        with_means=np.zeros((rows, size, total)),
        whole=whole,
        class_on_beta=own,
        inner=inner,
        along_target=along,
        target_mean=mean,
        target_blocks=blocks,
    )


def target_response(blocks: FloatArray, second: FloatArray, xi: FloatArray) -> FloatArray:
    """U = ΔΞ(I − g_1ΔΞ)⁻¹ with ΔΞ = E[(θ_s·x̃)(θ_s′·x̃)T] − Ξ, (B, 2KS, 2KS) (eq. 96).

    blocks: g_1 = Σ t_cs_cG_c on (p, φ̂), (B, 2K, 2K); second: (B, S, S, 2K, 2K).
    """
    rows, count, _, size, _ = second.shape
    several = np.eye(count)[:, :, None, None]
    shape = (rows, count * size, count * size)
    change = second - several * xi[:, None, None]
    flat = change.transpose(0, 1, 3, 2, 4).reshape(shape)
    wide = (several * blocks[:, None, None]).transpose(0, 1, 3, 2, 4).reshape(shape)
    return matmul(flat, inverted(np.eye(count * size) - matmul(wide, flat)))


def class_forces(
    step: Step, found: ClassCovariance, t_matrices: FloatArray, dual: FloatArray
) -> Forces:
    """What x̃ᵀĈx̃ adds to the mean of G, by its gradients with respect to the G_c.

    With ξ_c(r) = Σ_j r^jξ_cj, m(r) = φ0 Σ f_cs_cG_cξ_c(r), c the response along θ, and e_c its
    source there, they are φ0f_cs_c E[θ_cθ_cᵀ] + t_cs_c(e_ce_cᵀ) with θ_c = ξ_c + T(m + tc), but
    without E[TccᵀT], which follows from the second part.
    """
    classes, phi = _classes(step), step.phi[:, None, None]
    size = step.k.shape[1]
    inside = p_hat_index(size)
    xi = matmul(found.class_on_beta, dual[:, None, None, :, None])[..., 0]  # (B, C, 3, 3K)
    m = matmul(found.inner, dual[:, None, :, None])[..., 0]  # (B, 3, 2K)
    rows = len(step)
    pulled = matmul(found.special_response, matmul(found.special_overlaps, dual[:, :, None]))
    pulled = pulled.reshape(rows, -1, 2 * size)  # U·(…), (B, S, 2K)
    source = matmul(found.along_target, dual[:, None, None, :, None])[..., 0]  # (B, C, S, 3K)
    source[..., inside] += pulled[:, None]
    c = matmul(found.target_mean, dual[:, None, :, None])[..., 0]
    c = c + matmul(pulled, transposed(found.target_blocks))  # (B, S, 3K)
    powers = step.r[:, None, :] ** _ORDERS[:, None]  # (B, 3, M)
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
    moments = step.r_moments[:, np.add.outer(_ORDERS, _ORDERS)]
    gradient = matmul(transposed(xi), moments[:, None], xi)  # (B, C, 3K, 3K)
    padded = np.zeros((rows, 3, 3 * size))
    padded[:, :, inside] = np.einsum("bjm,bmp->bjp", powers, weighted + directed)
    one_way = matmul(transposed(padded)[:, None], xi)
    gradient += one_way + transposed(one_way)
    gradient[:, :, inside[:, None], inside] += common[:, None]
    gradient *= (phi * (classes.share * classes.eigenvalue)[:, :, None])[..., None]
    target = (classes.mass * classes.eigenvalue)[:, :, None, None]
    gradient += target * matmul(transposed(source), source)
    moved = matmul(found.whole, gradient, found.whole)
    shift = _mean(classes.eigenvalue, moved) / step.d[:, None, None]
    none = np.zeros_like(shift)
    return Forces(none, none[:, :size, :size], shift)


def class_change(step: Step, whole: FloatArray, pushed: FloatArray) -> FloatArray:
    """The change Σ f_cs_c²G_c dΞ G_c of the mean of G, for G_c (B, C, 3K, 3K)."""
    classes = _classes(step)
    weight = classes.share * classes.eigenvalue**2
    return _mean(weight, matmul(whole, pushed[:, None], whole))
