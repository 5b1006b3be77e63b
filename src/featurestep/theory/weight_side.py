"""The weight side: how the weights answer what the readout asks of them (eqs. 9, 10 and C of 11).

The resolvent equations know weights through `fluctuation`, `degrees` and a linear response, for
which exact weights (`exact.weights`) have their own. Here all quantities are scaled by √V2 and √D,
D = ρ²V2/d, as b = ρμ√V2 is.

Y = (I + S)⁻¹ of (9) is found in two ways that give the same numbers. S = √D V̂1 √D comes as
S = CᵀC with C the scaled directions, one row a node. In these terms V1 = d·√D Y √D and
ρ_g²Λ_gg V2_g = d·(SY)_gg.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..core.types import FloatArray
from .exact.dyson import symmetric
from .exact.weights import Links
from .labels import across_alignment
from .moments import Batch

Gain = tuple[FloatArray, FloatArray, FloatArray]  # Y = (I + S)⁻¹, SY and bY


class Frame(NamedTuple):
    """Columns of the regression (11), in scaled unknowns Ã, τ̃, ψ̃ with penalties near the identity.

    Weights that lean against β, as the `full` residual makes them, give τ and ψ a part
    proportional to A. In τ + lean·A and ψ − (γ/q)·lean·A the penalty of (11) is diagonal again,
    except for I − (d/q²)(lean/ρ)SY(lean/ρ) on Ã.
    """

    means: FloatArray  # (B, Q, K) of Ã in the part of y along κ
    lines: FloatArray  # (B, Q, K) of ψ̃, and times κ of τ̃
    means_across: FloatArray  # (B, Q, K) of Ã in the part along s, 0 unless weights lean
    tilt: FloatArray  # (B, K) lean·A in units of √D, as a multiple of Ã
    across: FloatArray  # (B, 1) q = √(1 − γ²)

    @property
    def leans(self) -> bool:
        """Whether the parts along κ and along s are tied together."""
        return bool(np.any(self.tilt))


@dataclass(frozen=True)
class IsotropicWeights:
    """Weights without structure beside β: C = blockdiag(V2, X, X), X = V1/d."""

    batch: Batch
    direction: FloatArray  # (B, Q, K) b = ρμ√V2
    gain: FloatArray  # (B, K, K) Y = (I + S)⁻¹
    loss: FloatArray  # (B, K, K) S Y = I − Y
    mixed: FloatArray  # (B, Q, K) U = bY

    def fluctuation(self) -> FloatArray:
        """Σ μ_gμ_h V1_gh at every node, (B, Q)."""
        total = np.asarray((self.mixed * self.direction).sum(axis=2))
        return total if np.iscomplexobj(total) else np.maximum(total, 0.0)

    def degrees(self) -> FloatArray:
        """Degrees of freedom of each group's linear part, V2_g ρ_g² Λ_gg, (B, K)."""
        return np.asarray(self.batch.d[:, None] * np.diagonal(self.loss, axis1=1, axis2=2))

    def kernel(self, first: int) -> FloatArray:
        """−∂χ_q/∂(n w_p h_p) for nodes q ≥ first, (B, Q − first, Q)."""
        kernel = np.matmul(self.mixed[:, first:], self.direction.transpose(0, 2, 1))  # G
        np.square(kernel, out=kernel)
        kernel /= self.batch.d[:, None, None]
        return np.asarray(kernel)

    def reach(self) -> FloatArray:
        """∂χ_q/∂ log V2_g of the linear part, (B, Q, K)."""
        return np.square(self.mixed)

    def coupling(self) -> FloatArray:
        """Change of group g's degrees of freedom with log V2_h beyond scaling, (B, K, K)."""
        return np.asarray(self.batch.d[:, None, None] * self.loss**2)

    @property
    def has_few_pairs(self) -> bool:
        """Whether pairs of groups are fewer unknowns than nodes are, or than half of them."""
        _, q, k = self.direction.shape
        return bool(symmetric(k).count + k < 0.8 * (q + k) * (0.6 if self.batch.mirrored else 1.0))

    def links(self) -> Links:
        """The same response in the unknowns Ξ_gh, g ≤ h."""
        (size, _, k), b = self.direction.shape, self.direction
        both = symmetric(k)
        g, h, own = both.first, both.second, both.count
        direct = np.zeros((size, own + k, own + k), dtype=b.dtype)
        direct[:, :own, own:] = self.gain[:, g] * self.gain[:, h]
        direct[:, own:, own:] = self.coupling()
        return Links(
            seen=np.where(g == h, 1.0, 2.0) * b[:, :, g] * b[:, :, h],
            felt=self.mixed[:, :, g] * self.mixed[:, :, h] / self.batch.d[:, None, None],
            reach=self.reach(),
            direct=direct,
        )

    def frame(self, v2: FloatArray) -> Frame:
        """The regression (11) that these weights allow."""
        batch, root = self.batch, np.sqrt(self.batch.d)[:, None]
        lines = self.direction / root[:, :, None]  # μ√D
        across = across_alignment(batch.alignment)[:, None]
        tilt = batch.lean / batch.norm * root
        tilted = lines * tilt[:, None, :]
        means = batch.mean * np.sqrt(v2)[:, None, :] - batch.kappa[:, None] * tilted
        ratio = (batch.alignment[:, None] / across)[:, :, None]
        return Frame(means, lines, ratio * tilted, tilt, across)

    def penalty(self, frame: Frame) -> FloatArray:
        """That of (11) on Ã, (B, K, K)."""
        scaled = frame.tilt / frame.across
        unit = np.eye(scaled.shape[1])
        return np.asarray(unit - scaled[:, :, None] * self.loss * scaled[:, None, :])


def weight_side(
    batch: Batch, v2: FloatArray, mass: FloatArray, *, careful: bool
) -> IsotropicWeights:
    """The weights' answer to V2 and to the information n w h of every node, `mass` (B, Q).

    `careful` pays for a QR factorisation instead of forming S.
    """
    direction = batch.linear * np.sqrt(v2)[:, None, :]
    method = gain_by_qr if careful else gain_by_lu
    found = method(linear_information(batch, direction, mass), direction)
    return IsotropicWeights(batch, direction, *found)


def linear_information(batch: Batch, direction: FloatArray, mass: FloatArray) -> FloatArray:
    """C with CᵀC = √D V̂1 √D, V̂1_gh = n E[μ_gμ_h/(1+χ)] of (8)."""
    return direction * np.sqrt(mass / batch.d[:, None])[:, :, None]


def gain_by_lu(scaled: FloatArray, direction: FloatArray) -> Gain:
    """Y = (I + S)⁻¹, S Y and bY by one factorisation.

    Solving for bY instead of multiplying by Y keeps b·bY accurate when S is large along b.
    """
    k = scaled.shape[-1]
    s = np.matmul(scaled.transpose(0, 2, 1), scaled)
    if k == 1:
        gain = 1.0 / (1.0 + s)
        return gain, s * gain, direction * gain
    unit = np.eye(k)
    right = np.concatenate([s, direction.transpose(0, 2, 1)], axis=2)
    solved = np.linalg.solve(s + unit, right)
    loss = solved[:, :, :k]
    return unit - loss, loss, solved[:, :, k:].transpose(0, 2, 1)


def gain_by_qr(scaled: FloatArray, direction: FloatArray) -> Gain:
    """The same from the triangular factor of [scaled; I]: errors grow with √‖S‖, not ‖S‖."""
    size, _, k = scaled.shape
    unit = np.broadcast_to(np.eye(k), (size, k, k))
    triangle = np.linalg.qr(np.concatenate([scaled, unit], axis=1), mode="r")
    inverse = np.linalg.solve(triangle, unit)  # Y = inverse inverseᵀ
    inverse_t = inverse.transpose(0, 2, 1)
    gain = np.matmul(inverse, inverse_t)
    loss = np.matmul(scaled.transpose(0, 2, 1), np.matmul(np.matmul(scaled, inverse), inverse_t))
    return gain, loss, np.matmul(np.matmul(direction, inverse), inverse_t)
