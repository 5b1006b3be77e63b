"""One interval of the bulk as a function: Chebyshev nodes between two edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...core.types import FloatArray

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

    @property
    def images(self) -> int:
        """How many nodes one solution stands for: a mirrored interval's lower half is an image."""
        return 2 if self.scale == "mirrored" else 1

    def angles(self, count: int) -> FloatArray:
        """The highest Chebyshev nodes: those at which to solve, where the others are images."""
        return angles(self.images * count)[:count]

    def whole(self, values: FloatArray, image: float = 1.0) -> FloatArray:
        """Values at all nodes from those at the highest; an image has them times a sign."""
        return values if self.images == 1 else np.concatenate([values, image * values[::-1]])

    def places(self, theta: FloatArray) -> FloatArray:
        """Singular values at nodes, with a sign in the lower half of a mirrored interval."""
        a, b = self.ends
        t = 0.5 * (a + b) + 0.5 * (b - a) * np.cos(theta)
        return np.asarray(np.exp(t) if self.scale == "log" else t)


@dataclass(frozen=True)
class Interval(Span):
    """One interval of the bulk, in singular values, with its density on Chebyshev nodes."""

    profile: FloatArray  # (M,) density of t over sin θ at the nodes: an analytic function of t
    error: float  # change under the last doubling, relative to the largest value

    @property
    def theta(self) -> FloatArray:
        """Nodes in (0, π), of t from high to low."""
        return angles(self.profile.size)

    def _angle(self, s: FloatArray) -> FloatArray:
        """θ of singular values; those beyond an end are taken for the end."""
        a, b = self.ends
        t = np.log(np.maximum(s, self.low)) if self.scale == "log" else s
        return np.arccos(np.clip((2.0 * t - a - b) / (b - a), -1.0, 1.0))

    def density(self, s: FloatArray) -> FloatArray:
        """Density of singular values at s inside the interval."""
        angle = self._angle(s)
        value = interpolated(self.profile, angle) * np.sin(angle)
        return np.asarray(value / s if self.scale == "log" else value)

    def integral(self, weight: FloatArray) -> float:
        """∫ weight × density, weight given on the nodes."""
        return float(self._powers() @ weight * np.pi / (self.images * weight.size))

    @property
    def nodes(self) -> FloatArray:
        """Singular values at the nodes."""
        return np.abs(self.places(self.theta))

    def _powers(self) -> FloatArray:
        """Density of θ at the nodes."""
        a, b = self.ends
        return np.asarray(0.5 * (b - a) * self.profile * np.sin(self.theta) ** 2)

    @property
    def mass(self) -> float:
        """Share of all eigenvalues."""
        return self.integral(np.ones(self.profile.size))

    def below(self, s: FloatArray) -> FloatArray:
        """Mass of the interval below s."""
        angle, (mean, *rest) = self._angle(s), cosines(self._powers())
        k = np.arange(1, len(rest) + 1)
        above = mean * angle + np.sin(np.multiply.outer(angle, k)) @ (rest / k)
        return np.asarray(np.pi * mean / self.images - above)


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


def cosines(values: FloatArray) -> FloatArray:
    """a_k with values Σ a_k cos kθ at the Chebyshev nodes, (M, …)."""
    k = np.arange(len(values))
    found = 2.0 / k.size * np.tensordot(np.cos(np.outer(k, angles(k.size))), values, axes=1)
    found[0] *= 0.5
    return np.asarray(found)


def interpolated(values: FloatArray, angle: FloatArray) -> FloatArray:
    """The polynomial in cos θ through values at the Chebyshev nodes, at other angles."""
    return np.cos(np.multiply.outer(angle, np.arange(len(values)))) @ cosines(values)
