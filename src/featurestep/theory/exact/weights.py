"""Exact weights as a weight side: what the spectrum's equations ask, for few groups of neurons.

The bulk's own unknowns Ξ (22) ride along with χ: a batch with exact weights has K(2K+1) more nodes,
of no weight, at which χ stands for the elements of Ξ, a symmetric matrix. Newton's method then
treats all unknowns alike, and goes smoothly through edges that the weights make. Everything may be
complex.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...types import FloatArray
from ..moments import Batch
from .dyson import (
    Blocks,
    averaged,
    coupled_index,
    diagonals,
    matmul,
    scattering,
    solve_blocks,
    symmetric,
    transposed,
)
from .step import Step


@dataclass(frozen=True)
class ExactWeights:
    """The bulk's answer to Ṽ at given Ξ."""

    batch: Batch
    step: Step
    direction: FloatArray  # (B, Q, K) b = μ√V2
    information: FloatArray  # (B, K, K) Ṽ
    blocks: Blocks
    scattered: FloatArray  # (B, M, 2K, 2K)

    def fluctuation(self) -> FloatArray:
        """Σ μ_gμ_h V1_gh at every node, and the image of Ξ."""
        answered = matmul(self.direction, self.blocks.phi_phi)
        chi = (answered * self.direction).sum(axis=2)
        image = averaged(self.step.r_weight, self.scattered)
        return np.concatenate([chi, symmetric(image.shape[-1]).upper(image)], axis=1)

    def degrees(self) -> FloatArray:
        """V2_gζ_g of (23)."""
        trace = np.einsum("bgh,bhg->bg", self.information, self.blocks.phi_phi)
        return np.asarray(self.batch.d[:, None] * trace)

    @property
    def _size(self) -> int:
        return int(self.direction.shape[2])

    @cached_property
    def _pairs(self) -> FloatArray:
        """b_g b_h of every node for g ≤ h, those of g < h twice, (B, Q, K(K+1)/2)."""
        b = self.direction
        pairs = b[..., :, None] * b[..., None, :]
        return symmetric(self._size).columns(pairs.reshape(*b.shape[:2], -1))

    @cached_property
    def _own(self) -> FloatArray:
        """G_φφ⊗G_φφ = −∂G_φφ/∂Ṽ at fixed Ξ, on symmetric matrices."""
        some = symmetric(self._size)
        return some.both(kronecker(self.blocks.phi_phi, self.blocks.phi_phi), some)

    def respond(
        self,
        noise: tuple[FloatArray, FloatArray],
        mass: FloatArray,
        diagonal: FloatArray,
        r: FloatArray,
        s: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """The linear response of (χ, Ξ) and log V2 to r and s; `mass` is n w h², noise ν²V2.

        In the unknowns Δ = √V2⁻¹ dV1 √V2⁻¹, dΞ and p = d log V2: x = r + b b·Δ + ν²V2 p.
        """
        seen, felt_noise = noise
        batch, size = self.batch, self._size
        few, many = symmetric(size), symmetric(2 * size)
        nodes, first_end = self.direction.shape[1], few.count
        second_end = few.count + many.count
        d = batch.d[:, None, None]
        x_0, xi_0 = r[:, :nodes, None], r[:, nodes:, None]
        inside, outside = coupled_index(size), np.arange(size, 2 * size)
        whole = self.blocks.whole
        coupled, across = whole[:, inside[:, None], inside], whole[:, inside[:, None], outside]
        halves = few.rows(_half_sums(self.information))
        back = few.both(kronecker(transposed(across), transposed(across)), many)
        forth = many.both(_repeated(self.step, self.scattered, across), few)
        around = many.both(_repeated(self.step, self.scattered, coupled), many)
        plain = self.direction[..., few.first] * self.direction[..., few.second]
        weighted = transposed(plain * mass[:, :, None]) / d  # dṼ of −x
        asked = np.concatenate(
            [
                -matmul(weighted, self._pairs),
                np.zeros((len(r), few.count, many.count)),
                halves - matmul(weighted, seen),
            ],
            axis=2,
        )  # dṼ of (Δ, dΞ, p)
        asked_0 = -matmul(weighted, x_0)
        first = matmul(self._own, asked)
        first[:, :, :first_end] += np.eye(few.count)
        first[:, :, first_end:second_end] -= back
        first[:, :, second_end:] -= few.rows(_half_sums(self.blocks.phi_phi))
        second = matmul(forth, asked)
        second[:, :, first_end:second_end] += np.eye(many.count) - around
        heard = transposed((felt_noise + self._reach(halves)) * mass[:, :, None])  # (B, K, Q)
        third = np.concatenate(
            [
                -matmul(heard, self._pairs),
                many.columns(self._degrees_by_xi(across)),
                -matmul(heard, seen) - self._coupling() + diagonals(diagonal),
            ],
            axis=2,
        )
        scale = batch.neurons[:, :, None]
        matrix = np.concatenate([first, second, third / scale], axis=1)
        right = np.concatenate(
            [
                -matmul(self._own, asked_0),
                xi_0 - matmul(forth, asked_0),
                (s[:, :, None] + matmul(heard, x_0)) / scale,
            ],
            axis=1,
        )
        found: Any = np.linalg.solve(matrix, right)
        change, own, p = np.split(found, [first_end, second_end], axis=1)
        x = x_0 + matmul(self._pairs, change) + matmul(seen, p)
        return np.concatenate([x, own], axis=1)[:, :, 0], np.asarray(p[:, :, 0])

    def _reach(self, halves: FloatArray) -> FloatArray:
        """∂χ_q/∂log V2_g of the linear part at fixed Ξ and mass, (B, Q, K)."""
        own = symmetric(self._size).rows(_half_sums(self.blocks.phi_phi))
        return matmul(self._pairs, own - matmul(self._own, halves))

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
    blocks = solve_blocks(many.kept, symmetric(2 * size).whole(xi), information)
    return ExactWeights(
        batch, many, direction, information, blocks, scattering(many, blocks.coupled)
    )


def _repeated(step: Step, scattered: FloatArray, side: FloatArray) -> FloatArray:
    """φ0 E[(TG)⊗(TG)] for columns `side` of G, (B, 4K², c²)."""
    turned = matmul(scattered, side[:, None])  # (B, M, 2K, c)
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
