"""Exact weights as a weight side: what the spectrum's equations ask, for few groups of neurons.

The bulk's own unknowns Ξ (22) ride along with χ: a batch with exact weights has K(2K+1) more nodes,
of no weight, at which χ stands for the elements of Ξ, a symmetric matrix. Newton's method then
treats all unknowns alike, and goes smoothly through edges that the weights make. Everything may be
complex.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray
from ..moments import Batch
from .dyson import (
    Blocks,
    averaged,
    diagonals,
    matmul,
    p_hat_index,
    solve_blocks,
    symmetric,
    t_matrix,
    transposed,
)
from .step import Step


class Links(NamedTuple):
    """The weights' own unknowns y in the linear response, and what ties them to χ and V2.

    With n w h² x as m, and the first y alone in χ:

        x = r + seen·y + ν²V2 p,   y = feltᵀm + direct_yy y + direct_yp p,
        a p = s + (ν²V2 + reach)ᵀm + direct_py y + direct_pp p
    """

    seen: FloatArray  # (B, Q, ·) how the first y enter χ
    felt: FloatArray  # (B, Q, Y) how χ enters y
    reach: FloatArray  # (B, Q, K) ∂χ/∂log V2 of the linear part
    direct: FloatArray  # (B, Y + K, Y + K) what y and p owe each other at fixed χ


@dataclass(frozen=True)
class ExactWeights:
    """The bulk's answer to Ṽ at given Ξ."""

    batch: Batch
    step: Step
    direction: FloatArray  # (B, Q, K) b = μ√V2
    information: FloatArray  # (B, K, K) Ṽ
    blocks: Blocks
    t_matrices: FloatArray  # (B, M, 2K, 2K)

    def fluctuation(self) -> FloatArray:
        """Σ μ_gμ_h V1_gh at every node, and the image of Ξ."""
        answered = matmul(self.direction, self.blocks.phi_phi)
        chi = (answered * self.direction).sum(axis=2)
        image = averaged(self.step.r_weight, self.t_matrices)
        return np.concatenate([chi, symmetric(image.shape[-1]).upper(image)], axis=1)

    def degrees(self) -> FloatArray:
        """V2_gζ_g of (23)."""
        trace = np.einsum("bgh,bhg->bg", self.information, self.blocks.phi_phi)
        return np.asarray(self.batch.d[:, None] * trace)

    @property
    def _size(self) -> int:
        return int(self.direction.shape[2])

    def links(self) -> Links:
        """The response in the unknowns Δ = √V2⁻¹ dV1 √V2⁻¹ and dΞ."""
        size = self._size
        few, many = symmetric(size), symmetric(2 * size)
        own = few.count + many.count
        first, second, third = slice(0, few.count), slice(few.count, own), slice(own, own + size)
        inside, outside = p_hat_index(size), np.arange(size, 2 * size)
        whole = self.blocks.whole
        coupled, across = whole[:, inside[:, None], inside], whole[:, inside[:, None], outside]
        kept = few.both(kronecker(self.blocks.phi_phi, self.blocks.phi_phi), few)  # −∂G_φφ/∂Ṽ
        forth = many.both(_repeated(self.step, self.t_matrices, across), few)
        answers = np.concatenate([kept, forth], axis=1)  # of the unknowns to −dṼ
        b = self.direction
        plain = b[..., few.first] * b[..., few.second]
        seen = np.where(few.first == few.second, plain, 2.0 * plain)
        carried = -matmul(answers, few.rows(_half_sums(self.information)))
        carried[:, first] += few.rows(_half_sums(self.blocks.phi_phi))
        direct = np.zeros((len(b), own + size, own + size), dtype=b.dtype)
        direct[:, first, second] = few.both(kronecker(*[transposed(across)] * 2), many)
        direct[:, second, second] = many.both(_repeated(self.step, self.t_matrices, coupled), many)
        direct[:, :own, third] = carried
        direct[:, third, second] = -many.columns(self._degrees_by_xi(across))
        direct[:, third, third] = self._coupling()
        felt = matmul(plain, transposed(answers)) / self.batch.d[:, None, None]
        return Links(seen, felt, matmul(seen, carried[:, first]), direct)

    def _coupling(self) -> FloatArray:
        """Change of group g's degrees of freedom with log V2_h beyond scaling, (B, K, K)."""
        own, asked = self.blocks.phi_phi, self.information
        size = own.shape[1]
        halves = _half_sums(asked)
        moved = -matmul(kronecker(own, own), halves)  # dG
        by_asking = matmul(own[:, None], _matrices(halves, size))
        by_answer = matmul(asked[:, None], _matrices(moved, size))
        change = np.einsum("bkgg->bgk", by_asking + by_answer)
        degrees = np.einsum("bgh,bhg->bg", asked, own)
        return np.asarray(self.batch.d[:, None, None] * (diagonals(degrees) - change))

    def _degrees_by_xi(self, across: FloatArray) -> FloatArray:
        """d∂[ṼG_φφ]_gg/∂Ξ, (B, K, 4K²)."""
        left = matmul(self.information, transposed(across))  # (B, K, 2K)
        product = left[:, :, :, None] * transposed(across)[:, :, None, :]
        size = self._size
        return np.asarray(self.batch.d[:, None, None] * product.reshape(-1, size, 4 * size * size))


def exact_weights(
    batch: Batch, step: Step, v2: FloatArray, mass: FloatArray, xi: FloatArray
) -> ExactWeights:
    """The answer to V2, to the information n w h of every node, `mass` (B, Q), and to Ξ."""
    nodes = batch.readout_nodes
    size = v2.shape[1]
    slope = batch.linear[:, :nodes] / batch.norm[:, None, :]
    direction = slope * np.sqrt(v2)[:, None, :]
    scaled = direction * (mass[:, :nodes] / batch.d[:, None])[:, :, None]
    information = matmul(transposed(direction), scaled)
    many = step if len(step) == len(v2) else step.take(np.zeros(len(v2), dtype=np.intp))
    blocks = solve_blocks(many.initial_factor, symmetric(2 * size).whole(xi), information)
    return ExactWeights(batch, many, direction, information, blocks, t_matrix(many, blocks.coupled))


def _repeated(step: Step, t_matrices: FloatArray, side: FloatArray) -> FloatArray:
    """φ0 E[(TG)⊗(TG)] for columns `side` of G, (B, 4K², c²)."""
    turned = matmul(t_matrices, side[:, None])  # (B, M, 2K, c)
    rows, count, height, width = turned.shape
    weighted = turned * (step.phi[:, None] * step.r_weight)[:, :, None, None]
    flat = (rows, count, height * width)
    product = matmul(transposed(weighted.reshape(flat)), turned.reshape(flat))
    product = product.reshape(rows, height, width, height, width)
    return np.asarray(product.transpose(0, 1, 3, 2, 4)).reshape(rows, height**2, width**2)


def kronecker(a: FloatArray, b: FloatArray) -> FloatArray:
    """a ⊗ b on rows and columns of matrices laid out one after the other."""
    product = a[:, :, None, :, None] * b[:, None, :, None, :]
    rows, i, k, j, m = product.shape
    return np.asarray(product.reshape(rows, i * k, j * m))


def _half_sums(matrix: FloatArray) -> FloatArray:
    """½(E_kA + AE_k) for every k, (B, K², K): the change of √D A √D with log D_k."""
    size = matrix.shape[1]
    unit = np.eye(size)
    change = 0.5 * (unit[:, None, :] + unit[None, :, :])  # (g, h, k)
    return np.asarray((matrix[..., None] * change).reshape(-1, size * size, size))


def _matrices(columns: FloatArray, size: int) -> FloatArray:
    """(B, K², K) as matrices (B, K, K, K), the last axis first."""
    return np.asarray(transposed(columns)).reshape(-1, size, size, size)
