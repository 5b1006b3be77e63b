"""Singular values of the weights after the step: a Marchenko–Pastur bulk and one spike.

Row j of W is ρ_j times a direction without structure plus u_j β/‖β‖ (eqs. 3, 4). With
m = (1/d) tr(WᵀW − z)⁻¹ the bulk is z(m) = −1/m + Σ_g (N_g/d) ρ_g²/(1 + ρ_g² m): edges are its
turning points. The spike is where −m Σ_g N_g u_g²/(1 + ρ_g² m) = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...core.borders import Border, border_of
from ...core.types import FloatArray
from ...functions.roots import find_root
from ..moments import Batch


@dataclass(frozen=True)
class WeightSpike:
    """The singular value that the step pushes out of the weights' bulk."""

    singular_value: float
    alignment: float  # squared overlap of its right vector with β
    target_alignment: float  # squared overlap with β⋆
    readout_alignment: float  # squared overlap of its left vector with the shifts u (with a)


@dataclass(frozen=True)
class WeightSpectrum:
    """The law of the min(N, d) singular values of W."""

    ratio: FloatArray  # (K,) N_g/d
    square: FloatArray  # (K,) ρ_g²
    shift: FloatArray  # (K,) u_g, the lean of the full residual taken off
    d: float
    gamma: float  # β⋆·β/‖β‖

    @cached_property
    def edges(self) -> tuple[float, float]:
        """Ends of the bulk, as singular values."""
        if abs(self.ratio.sum() - 1.0) < 1e-9:
            low = 0.0
        else:
            low = max(self._place(self._lower), 0.0)
        return float(np.sqrt(low)), float(np.sqrt(self._place(self._upper)))

    @cached_property
    def border(self) -> Border:
        """Where a spike begins, as an eigenvalue of WᵀW: z − E = ½z″(m − m_E)² at the edge."""
        m, high = self._upper, self.edges[1] ** 2
        bend = 2.0 * (self.ratio * (self.square / (1.0 + self.square * m)) ** 3).sum() - 2.0 / m**3
        return border_of(high, float(np.sqrt(2.0 / bend) * self.d) ** (-2.0 / 3.0))

    @property
    def _lower(self) -> float:
        """m at the lower edge."""
        if self.ratio.sum() > 1.0:
            return _root(self._slope, 1e-9, 1e9)
        lowest = 1.0 / self.square.min()
        return _root(self._slope, -1e12 * lowest, -lowest * (1.0 + 1e-12))

    @property
    def _upper(self) -> float:
        """m at the upper edge."""
        highest = 1.0 / self.square.max()
        return _root(self._slope, -highest * (1.0 - 1e-12), -1e-12 * highest)

    def _place(self, m: float) -> float:
        return float(-1.0 / m + (self.ratio * self.square / (1.0 + self.square * m)).sum())

    def _slope(self, m: float) -> float:
        """dz/dm, times m²."""
        terms = self.ratio * (self.square * m / (1.0 + self.square * m)) ** 2
        return float(1.0 - terms.sum())

    def density(self, s: FloatArray) -> FloatArray:
        """Density of the singular values at s."""
        s = np.asarray(s, dtype=np.float64)
        low, high = self.edges
        inside = (s > low) & (s < high)
        out = np.zeros(s.shape)
        if np.any(inside):
            m = self._trace(s[inside] ** 2)
            out[inside] = 2.0 * s[inside] * m.imag / np.pi / min(1.0, float(self.ratio.sum()))
        return out

    def _trace(self, x: FloatArray) -> np.ndarray:
        """m on the real axis, continued down from the upper half-plane."""
        z = x + 4j * max(1.0, float(x.max()))
        m = -1.0 / z
        for height in (*np.geomspace(2.0, 1e-6, 24) * max(1.0, float(x.max())), 0.0):
            z = x + 1j * height
            for _ in range(60):
                below = 1.0 + np.multiply.outer(m, self.square)
                gap = -1.0 / m + (self.ratio * self.square / below).sum(axis=1) - z
                slope = 1.0 / m**2 - (self.ratio * self.square**2 / below**2).sum(axis=1)
                step = -gap / slope
                factor = np.minimum(1.0, 0.5 * np.abs(m) / np.maximum(np.abs(step), 1e-300))
                m = m + factor * step
                if np.abs(gap).max() < 1e-12 * np.abs(z).max():
                    break
            m = np.where(m.imag < 0.0, m.conj(), m)
        return np.asarray(m)

    @cached_property
    def spike(self) -> WeightSpike | None:
        """The outlier, if the step is large enough for one."""
        upper = self._upper
        if not np.any(self.shift) or self._strength(upper) <= 1.0:
            return None
        m = _root(lambda t: self._strength(t) - 1.0, upper, -1e-300)
        z = self._place(m)
        below = 1.0 + self.square * m
        weight = self.ratio * self.d * self.shift**2
        rise = -float((weight / below**2).sum()) / (self._slope(m) / m**2)  # d strength/dz
        alignment = m / rise
        left = -float((weight / below).sum()) / (z * rise * float(weight.sum()))
        return WeightSpike(float(np.sqrt(z)), alignment, self.gamma**2 * alignment, left)

    def _strength(self, m: float) -> float:
        weight = self.ratio * self.d * self.shift**2
        return float(-m * (weight / (1.0 + self.square * m)).sum())


def weight_spectrum(batch: Batch) -> WeightSpectrum:
    """The weights' spectrum from the groups of one problem."""
    d = float(batch.d[0])
    return WeightSpectrum(
        ratio=batch.neurons[0] / d,
        square=batch.norm[0] ** 2,
        shift=batch.shift[0] - batch.lean[0],
        d=d,
        gamma=float(batch.alignment[0]),
    )


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    return find_root(function, low, high, relative=1e-13)
