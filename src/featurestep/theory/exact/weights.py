"""Exact weights as a weight side: what the spectrum's equations ask, for few groups of neurons.

The readout's unknowns (V2, χ) are given; the bulk's own Ξ (22) is solved for them here, by Newton's
method with a dense Jacobian: 4K² unknowns, so that K must be small. Everything may be complex.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ...errors import NotConverged
from ...quadrature import FloatArray
from ..batch import Batch, IntArray
from .covariance import coupled_index
from .dyson import Blocks, averaged, matmul, scattering, solve_blocks, transposed
from .step import Step

MOST_GROUPS = 5
_TOLERANCE = 1e-13
_ACCEPTED = 1e-10
_MOST = 60
_STAGES = (1.0, 0.5, 0.2, 0.05)  # share of Ṽ with which the way to it begins


@dataclass(frozen=True)
class ExactWeights:
    """The bulk's answer to Ṽ, and how it changes with it."""

    batch: Batch
    step: Step
    direction: FloatArray  # (B, Q, K) b = μ√V2
    information: FloatArray  # (B, K, K) Ṽ
    blocks: Blocks
    scattered: FloatArray  # (B, M, 2K, 2K)

    def fluctuation(self) -> FloatArray:
        return np.asarray((self._answered * self.direction).sum(axis=2))

    @cached_property
    def _answered(self) -> FloatArray:
        return matmul(self.direction, self.blocks.phi_phi)

    def degrees(self) -> FloatArray:
        trace = np.einsum("bgh,bhg->bg", self.information, self.blocks.phi_phi)
        return np.asarray(self.batch.d[:, None] * trace)

    @cached_property
    def _change(self) -> FloatArray:
        """−∂G_φφ/∂Ṽ on pairs of groups, (B, K², K²); Y⊗Y for isotropic weights."""
        size = self.direction.shape[2]
        whole = self.blocks.whole
        inside = coupled_index(size)
        outside = np.arange(size, 2 * size)
        coupled = whole[:, inside[:, None], inside]
        across = whole[:, inside[:, None], outside]  # (B, 2K, K)
        matrix = np.eye(4 * size * size) - repeated(self.step, self.scattered, coupled)
        force = repeated(self.step, self.scattered, across)  # (B, 4K², K²)
        found: Any = np.linalg.solve(matrix, force)
        back = kronecker(transposed(across), transposed(across))
        own = self.blocks.phi_phi
        return np.asarray(matmul(back, found) + kronecker(own, own))

    @cached_property
    def _pairs(self) -> FloatArray:
        """b_g b_h of every node, (B, Q, K²)."""
        b = self.direction
        return np.asarray((b[..., :, None] * b[..., None, :]).reshape(*b.shape[:2], -1))

    @cached_property
    def _carried(self) -> FloatArray:
        """How log V2_k enters √V2 G_φφ √V2 beyond scaling, (B, K², K)."""
        size = self.direction.shape[2]
        pulled = matmul(self._change, _half_sums(self.information))
        return np.asarray(_half_sums(self.blocks.phi_phi) - pulled).reshape(-1, size * size, size)

    def kernel(self, first: int) -> FloatArray:
        seen = matmul(self._pairs[:, first:], self._change)
        return np.asarray(matmul(seen, transposed(self._pairs)) / self.batch.d[:, None, None])

    def reach(self) -> FloatArray:
        return matmul(self._pairs, self._carried)

    def coupling(self) -> FloatArray:
        own, asked = self.blocks.phi_phi, self.information
        size = own.shape[1]
        halves = _half_sums(asked)  # dṼ/d log V2_k
        moved = -matmul(self._change, halves)  # dG
        by_asking = matmul(own[:, None], _matrices(halves, size))
        by_answer = matmul(asked[:, None], _matrices(moved, size))
        change = np.einsum("bkgg->bgk", by_asking + by_answer)
        degrees = np.einsum("bgh,bhg->bg", asked, own)
        total = degrees[:, :, None] * np.eye(size) - change
        return np.asarray(self.batch.d[:, None, None] * total)

    def pairs(self) -> Any:
        from ..weight_side import Pairs  # the two sides know each other by this name alone

        size = self.direction.shape[2]
        keep, multiplicity = _upper(size)
        felt = matmul(self._pairs, transposed(self._change))[:, :, keep]
        return Pairs(
            seen=self._pairs[:, :, keep] * multiplicity,
            felt=felt / self.batch.d[:, None, None],
            carried=self._carried[:, keep],
        )


def exact_weights(batch: Batch, step: Step, v2: FloatArray, mass: FloatArray) -> ExactWeights:
    """The answer to V2 and to the information n w h of every node, `mass` (B, Q)."""
    slope = batch.linear / batch.norm[:, None, :]
    direction = slope * np.sqrt(v2)[:, None, :]
    scaled = direction * (mass / batch.d[:, None])[:, :, None]
    information = matmul(transposed(direction), scaled)
    many = _tiled(step, len(v2))
    xi = solve_bulk(many, information)
    blocks = solve_blocks(many.kept, xi, information)
    scattered = scattering(many, blocks.coupled)
    return ExactWeights(batch, many, direction, information, blocks, scattered)


def solve_bulk(step: Step, information: FloatArray) -> FloatArray:
    """Ξ of (22) for Ṽ, by Newton's method; if that is lost, along t·Ṽ with t growing to 1."""
    for share in _STAGES:
        xi = _free(step, information.dtype)
        t = share
        while True:
            xi, residual = _newton(step, xi, t * information)
            if not np.all(residual < _ACCEPTED):
                break
            if t >= 1.0:
                return xi
            t = min(1.0, 1.6 * t)
    raise NotConverged("the bulk of the weights was not resolved", residual=float(residual.max()))


def _newton(step: Step, xi: FloatArray, information: FloatArray) -> tuple[FloatArray, FloatArray]:
    size = step.k.shape[1]
    residual = np.full(len(xi), np.inf)
    for _ in range(_MOST):
        blocks = solve_blocks(step.kept, xi, information)
        coupled = blocks.coupled
        scattered = scattering(step, coupled)
        gap = averaged(step.r_weight, scattered) - xi
        before, residual = residual, np.abs(gap).max(axis=(1, 2)) / (1.0 + np.abs(xi).max())
        if not np.all(np.isfinite(residual)):
            return xi, np.full(len(xi), np.inf)
        if np.all((residual < _TOLERANCE) | ((residual < _ACCEPTED) & (residual > 0.3 * before))):
            break
        matrix = np.eye(4 * size * size) - repeated(step, scattered, coupled)
        move: Any = np.linalg.solve(matrix, gap.reshape(len(xi), -1, 1))
        xi = xi + move[:, :, 0].reshape(xi.shape)
    return xi, residual


def _free(step: Step, dtype: Any) -> FloatArray:
    """Ξ at Ṽ = 0: T = N + NΓN is explicit there."""
    size = step.k.shape[1]
    nothing = np.zeros((len(step), size, size))
    alone = solve_blocks(step.kept, np.zeros((len(step), 2 * size, 2 * size)), nothing)
    return averaged(step.r_weight, scattering(step, alone.coupled)).astype(dtype)


def repeated(step: Step, scattered: FloatArray, side: FloatArray) -> FloatArray:
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


@lru_cache(maxsize=32)
def _upper(size: int) -> tuple[IntArray, FloatArray]:
    """Places of pairs g ≤ h among K², and how often each stands there."""
    rows, columns = np.triu_indices(size)
    return rows * size + columns, np.where(rows == columns, 1.0, 2.0)


def _tiled(step: Step, count: int) -> Step:
    return step if len(step) == count else step.take(np.zeros(count, dtype=np.intp))
