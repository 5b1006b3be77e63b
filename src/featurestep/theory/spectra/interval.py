"""One interval of the bulk as a function: Chebyshev nodes between two edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...types import FloatArray

Scale = Literal["linear", "log", "mirrored"]


@dataclass(frozen=True)
class Span:
    """Singular values between two edges, and the scale of the variable t with Chebyshev nodes."""

    low: float
    high: float
    scale: Scale

    @property
    def ends(self) -> tuple[float, float]:
        """The interval in the variable t."""
        if self.scale == "log":
            return float(np.log(self.low)), float(np.log(self.high))
        return (-self.high if self.scale == "mirrored" else self.low), self.high

    def angles(self, count: int) -> FloatArray:
        """Chebyshev nodes; of a mirrored interval the upper half, the rest being its image."""
        theta = angles(count)
        return theta[: count // 2] if self.scale == "mirrored" else theta

    def places(self, theta: FloatArray) -> FloatArray:
        """Singular values at nodes, with a sign in the lower half of a mirrored interval."""
        a, b = self.ends
        t = 0.5 * (a + b) + 0.5 * (b - a) * np.cos(theta)
        return np.asarray(np.exp(t) if self.scale == "log" else t)


@dataclass(frozen=True)
class Interval(Span):
    """One interval of the bulk, in singular values, with its density on Chebyshev nodes."""

    theta: FloatArray  # (M,) nodes in (0, π), of t from high to low
    profile: FloatArray  # (M,) density of t over sin θ, an analytic function of t
    error: float  # change under the last doubling, relative to the largest value

    def density(self, s: FloatArray) -> FloatArray:
        """Density of singular values at s inside the interval."""
        a, b = self.ends
        t = np.log(s) if self.scale == "log" else s
        c = np.clip((2.0 * t - a - b) / (b - a), -1.0, 1.0)
        value = interpolated(self.theta, self.profile, c) * np.sqrt(1.0 - c * c)
        return np.asarray(value / s if self.scale == "log" else value)

    def integral(self, weight: FloatArray) -> float:
        """∫ weight × density, weight given on the nodes."""
        return float(self._masses() @ weight)

    @property
    def nodes(self) -> FloatArray:
        """Singular values at the nodes."""
        return np.abs(self.places(self.theta))

    def _masses(self) -> FloatArray:
        a, b = self.ends
        half = 0.5 if self.scale == "mirrored" else 1.0
        return np.asarray(
            half * 0.5 * (b - a) * self.profile * np.sin(self.theta) ** 2 * np.pi / self.theta.size
        )

    @property
    def mass(self) -> float:
        """Share of all eigenvalues."""
        return float(self._masses().sum())

    def below(self, s: FloatArray) -> FloatArray:
        """Mass of the interval below s."""
        a, b = self.ends
        t = np.log(np.maximum(s, self.low)) if self.scale == "log" else s
        angle = np.arccos(np.clip((2.0 * t - a - b) / (b - a), -1.0, 1.0))
        size = self.theta.size
        values = self.profile * np.sin(self.theta) ** 2 * 0.5 * (b - a)
        k = np.arange(1, size)
        series = 2.0 / size * (np.cos(np.outer(k, self.theta)) @ values)
        above = values.mean() * angle + np.sin(np.multiply.outer(angle, k)) @ (series / k)
        total = np.pi * values.mean()
        if self.scale == "mirrored":
            return np.asarray(0.5 * total - above)
        return np.asarray(total - above)


def angles(count: int) -> FloatArray:
    """Chebyshev nodes in (0, π)."""
    return np.asarray((np.arange(count) + 0.5) * np.pi / count)


def curve(parts: tuple[Interval, ...], points: int) -> tuple[FloatArray, FloatArray]:
    """Singular values over some intervals, increasing, and their density."""
    share = max(8, points // len(parts))
    theta = np.linspace(0.0, np.pi, share)
    s = [0.5 * (p.low + p.high) - 0.5 * (p.high - p.low) * np.cos(theta) for p in parts]
    return np.concatenate(s), density(parts, np.concatenate(s))


def density(parts: tuple[Interval, ...], s: FloatArray) -> FloatArray:
    """Density of singular values."""
    out = np.zeros(s.shape)
    for part in parts:
        inside = (s > part.low) & (s < part.high)
        if np.any(inside):
            out[inside] += part.density(s[inside])
    return out


def interpolated(theta: FloatArray, values: FloatArray, c: FloatArray) -> FloatArray:
    """The polynomial through values at cos θ (Chebyshev nodes), at c: barycentric form."""
    signs = np.where(np.arange(theta.size) % 2 == 0, 1.0, -1.0) * np.sin(theta)
    gaps = np.subtract.outer(c, np.cos(theta))
    exact = gaps == 0.0
    gaps[exact] = 1.0
    weights = signs / gaps
    hit = exact.any(axis=1)
    weights[hit] = exact[hit]
    return np.asarray((weights @ values).T / weights.sum(axis=1)).T
