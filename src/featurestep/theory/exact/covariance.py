"""Covariances of what the readout picks up of the special directions: (24), (28), (34), (35), (48).

Fields τ, ψ_1 … ψ_r and Δ of a group are made of the vectors β_j = X0ᵀr^j/n0 and of the target's r
directions, each seen by the group's fields p, φ, φ̂. A field's place among these is a column of
`parts` and `star`; covariances, and forces that act back on the bulk, are the same sums for all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.types import FloatArray
from .dyson import Blocks, averaged, coupled_index, free, matmul, solve_blocks, special, transposed
from .step import Step

_ORDERS = (1, 2, 3)  # of β_j


@dataclass(frozen=True)
class Covariance:
    """Ĉ of the fields (τ, ψ_1 … ψ_r, Δ), f of them, in scaled units, and what it is made of."""

    parts: FloatArray  # (B, 3, 3K, f) fields as combinations of β_1, β_2, β_3
    star: FloatArray  # (B, S, 3K, f) and of the special directions
    answered: FloatArray  # (B, 3, 3K, f) φ0 G·parts
    met: FloatArray  # (B, 3KS, f) what the special directions show of each field
    special: FloatArray  # (B, 3KS, 3KS) H
    matrix: FloatArray  # (B, f, f) Ĉ without the lean of `full`
    along: FloatArray  # (B, 3K, f) fields' parts along β, all that w_a has to do with
    lean: FloatArray  # (B, K, f) −c_1 a_h (G·along) in row p_h, 0 for labels

    @property
    def total(self) -> FloatArray:
        """Ĉ with the lean of `full` (35); `lean` times d is the covariance with A."""
        return np.asarray(self.matrix + matmul(transposed(self.lean), self.lean))


def covariance(
    step: Step, information: FloatArray, blocks: Blocks, scattered: FloatArray
) -> Covariance:
    """Equations (24) and (28) for the bulk's G and T, with Ṽ as `information`."""
    size = step.k.shape[1]
    inside = coupled_index(size)
    parts, star = _parts(step), _star(step)
    answered = step.phi[:, None, None, None] * matmul(blocks.whole[:, None], parts)
    seen = answered[:, :, inside]  # (B, 3, 2K, f)
    powers = step.r[:, None, :] ** np.arange(7)[:, None]  # (B, 7, M)
    orders = averaged(step.r_weight[:, None] * powers[:, 2:], scattered)  # E[r^n T], n = 2 … 6
    first = averaged(step.r_first[:, :, None] * powers[:, None, 1:4], scattered)
    second = averaged(step.r_second, scattered)
    h = special(step, information, second)
    met = star + np.einsum("bsj,bjpf->bspf", step.r_overlaps[:, :, 1:], parts)
    met[:, :, inside] += matmul(first, seen[:, None]).sum(axis=2)
    met = met.reshape(len(step), -1, parts.shape[-1])
    matrix = matmul(transposed(met), h, met)
    for i in _ORDERS:
        for j in _ORDERS:
            moment = step.r_moments[:, i + j, None, None]
            matrix = matrix + moment * matmul(transposed(parts[:, i - 1]), answered[:, j - 1])
            matrix = matrix + matmul(
                transposed(seen[:, i - 1]), orders[:, i + j - 2], seen[:, j - 1]
            )
    along = _along_beta(step) if step.is_isotropic else parts[:, 0]
    own = matmul(blocks.whole[:, :size], along)  # in rows p
    lean = -(step.lean[:, None] * step.a)[:, :, None] * own * np.sqrt(step.d)[:, None, None]
    return Covariance(parts, star, answered, met, h, matrix, along, lean)


def alone(step: Step) -> Covariance:
    """The same at Ṽ = 0, where groups do not see each other and T is explicit."""
    scattered = free(step)
    nothing = np.zeros((len(step), step.k.shape[1], step.k.shape[1]))
    blocks = solve_blocks(step.kept, averaged(step.r_weight, scattered), nothing)
    return covariance(step, nothing, blocks, scattered)


def _along_beta(step: Step) -> FloatArray:
    """τ = φ·β/‖β‖ and ψ_1 ∋ −(γ/q)φ·β/‖β‖ as multiples of β, (B, 3K, f)."""
    rows, size = step.k.shape
    along = np.zeros((rows, 3 * size, (2 + step.directions) * size))
    g = np.arange(size)
    along[:, size + g, g] = (1.0 / step.beta)[:, None]
    along[:, size + g, size + g] = -(step.alignment / (step.across * step.beta))[:, None]
    return along


def _parts(step: Step) -> FloatArray:
    """Fields as combinations of β_1, β_2, β_3, (B, 3, 3K, f); none for isotropic weights."""
    rows, size = step.k.shape
    parts = np.zeros((rows, 3, 3 * size, (2 + step.directions) * size))
    if step.is_isotropic:
        return parts
    g = np.arange(size)
    p, hat, delta = g, 2 * size + g, (1 + step.directions) * size + g
    parts[:, 0] = _along_beta(step)
    for j in range(3):
        parts[:, j, p, delta] = step.along_weights[:, :, j]
        parts[:, j, hat, delta] = step.along_noise[:, :, j]
    return parts


def _star(step: Step) -> FloatArray:
    """ψ_1 = (φ·θ_1 − γτ)/q and ψ_i = φ·θ_i (48): the parts along the directions.

    For isotropic weights τ = φ·θ_1 and ψ = φ·θ_2, with θ_1 along β.
    """
    rows, size = step.k.shape
    star = np.zeros((rows, step.r_first.shape[1], 3 * size, (2 + step.directions) * size))
    g = np.arange(size)
    if step.is_isotropic:
        star[:, 0, size + g, g] = star[:, 1, size + g, size + g] = 1.0
        return star
    star[:, 0, size + g, size + g] = (1.0 / step.across)[:, None]
    for i in range(1, step.directions):
        star[:, i, size + g, (1 + i) * size + g] = 1.0
    return star


@dataclass(frozen=True)
class Forces:
    """How the bulk changes when the readout leans on the fields, x̂ᵀCx̂ → its gradient."""

    self_energy: FloatArray  # (B, 3K, 3K) added to Ξ
    response: FloatArray  # (B, K, K) added to d·G_φφ, as an answer along φ


def forces(
    step: Step, found: Covariance, scattered: FloatArray, asked: FloatArray, use: FloatArray
) -> Forces:
    """Gradients of x̃ᵀĈx̃ by G and by Ṽ; `asked` is x̃ of (τ, ψ_i, Δ) and `use` that of A."""
    size = step.k.shape[1]
    inside = coupled_index(size)
    phi = step.phi[:, None, None]
    a = matmul(found.parts, asked[:, None, :, None])[..., 0]  # (B, 3, 3K)
    seen = matmul(found.answered[:, :, inside], asked[:, None, :, None])[..., 0]  # (B, 3, 2K)
    turned = matmul(found.special, matmul(found.met, asked[:, :, None]))[..., 0]
    turned = turned.reshape(len(step), -1, 3 * size)  # (B, S, 3K) Hw
    inner = turned[:, :, inside]
    powers = step.r[:, None, :] ** np.array(_ORDERS)[:, None]  # (B, 3, M)
    reached = np.einsum("bjm,bjp->bmp", powers, seen)  # g(r)
    from_bulk = matmul(scattered, reached[..., None])[..., 0]  # T g, (B, M, 2K)
    from_star = matmul(scattered[:, None], inner[:, :, None, :, None])[..., 0]  # (B, S, M, 2K)
    answer = step.r_weight[:, :, None] * from_bulk + np.einsum(
        "bsm,bsmp->bmp", step.r_first, from_star
    )
    moments = step.r_moments[:, np.add.outer(_ORDERS, _ORDERS)]  # (B, 3, 3)
    gradient = phi * matmul(transposed(a), moments, a)
    padded = np.zeros((len(step), 3, 3 * size), dtype=a.dtype)
    padded[:, :, inside] = np.einsum("bjm,bmp->bjp", powers, answer)
    one_way = phi * matmul(transposed(padded), a)
    gradient = gradient + one_way + transposed(one_way)
    back = np.einsum("bm,bmp,bmq->bpq", step.r_weight, from_bulk, from_bulk, optimize=True)
    cross = np.einsum("bsm,bsmp,bmq->bpq", step.r_first, from_star, from_bulk, optimize=True)
    both = np.einsum("bstm,bsmp,btmq->bpq", step.r_second, from_star, from_star, optimize=True)
    gradient[:, inside[:, None], inside] += phi * (back + cross + transposed(cross) + both)
    if np.any(step.lean):
        along = matmul(found.along, asked[:, :, None])[:, :, 0]
        gradient = gradient + _lean_force(step, found, along, asked, use)
    along = turned[:, :, size : 2 * size]
    return Forces(gradient / step.d[:, None, None], matmul(transposed(along), along))


def _lean_force(
    step: Step, found: Covariance, along: FloatArray, asked: FloatArray, use: FloatArray
) -> FloatArray:
    """Gradient by G of d Σ_h z_h², z_h = x̃_{A,h} − c_1a_h(Gu)_{p_h} (35), u (B, 3K) `along`."""
    size = step.k.shape[1]
    root = np.sqrt(step.d)[:, None]
    z = use + matmul(found.lean, asked[:, :, None])[..., 0] / root
    pulled = np.zeros_like(along)
    pulled[:, :size] = -(step.d * step.lean)[:, None] * step.a * z
    one_way = pulled[:, :, None] * along[:, None, :]
    return np.asarray(one_way + transposed(one_way))
