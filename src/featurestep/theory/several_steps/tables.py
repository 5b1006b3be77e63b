"""Averages of the activation's slope over a neuron's pre-activation at given coordinates (160).

A fresh sample with coordinates ξ in the frame of the weights gives a neuron of group g the
pre-activation ρ_gz + ω_g, z ~ N(0,1) over the bulk. The next gradient is made of its slope
S = σ′(ρ_gz + ω_g).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.types import FloatArray, IntArray
from ...functions.nonlinearity import Nonlinearity
from ...functions.quadrature import normal_density, panels, trapezoid_normal

_HALF_WIDTH = 9.0  # of the rule in z
_SPACING = 0.3  # of the equispaced rule, for ρ ≤ 1
_PANEL, _ORDER = 2.25, 16  # width of a panel and its nodes, for activations with kinks
_CHUNK = 1_000_000  # values of σ′ at a time
_POWERS = ((1, 4), (2, 3), (3, 2), (4, 1))  # powers b of ψ, and how many powers of z with each


class SlopeTables(NamedTuple):
    """The averages, (X, K) each: ψ = S − E S, p = ρz, h = ψ − μp; a prime is ∂/∂ρ²."""

    mean: FloatArray  # m = E S
    slope: FloatArray  # μ = E S′
    variance: FloatArray  # E ψ²
    noise: FloatArray  # ν² = E h²
    mean_change: FloatArray  # m′
    slope_change: FloatArray  # μ′
    square_change: FloatArray  # (E S²)′
    z2_psi: FloatArray  # E[z²ψ]
    z_psi2: FloatArray  # E[zψ²]
    p_psi_h: FloatArray  # E[pψh]
    psi2_h: FloatArray  # E[ψ²h]
    p_psi_square: FloatArray  # E of [pψ]², nonlinear parts as in (27)
    p_psi_psi2: FloatArray  # of [pψ][ψ²]
    psi2_square: FloatArray  # of [ψ²]²

    def at(self, places: IntArray) -> SlopeTables:
        """The averages at some of the places."""
        return SlopeTables(*(table[places] for table in self))


def slope_tables(sigma: Nonlinearity, rho: FloatArray, place: FloatArray) -> SlopeTables:
    """Averages for norms ρ_g (K,) and places ω_g (X, K) (eq. 160).

    Means of powers of S alone are enough: no derivative of σ′ is taken.
    """
    moments = _moments(sigma, rho, place)
    (mean, z1, z2, z3), (p2, zp2, zzp2), (p3, zp3), (p4,) = moments
    slope = z1 / rho
    z2_psi = z2  # ψ has no mean
    variance = p2
    # S = m + ψ: E[(z²−1)S²] = 2m E[z²ψ] + E[(z²−1)ψ²].
    return SlopeTables(
        mean=mean,
        slope=slope,
        variance=variance,
        noise=np.maximum(variance - z1**2, 0.0),
        mean_change=0.5 * z2_psi / rho**2,
        slope_change=0.5 * (z3 - 3.0 * z1) / rho**3,
        square_change=0.5 * (2.0 * mean * z2_psi + zzp2 - p2) / rho**2,
        z2_psi=z2_psi,
        z_psi2=zp2,
        p_psi_h=rho * zp2 - slope * rho**2 * z2_psi,
        psi2_h=p3 - slope * rho * zp2,
        p_psi_square=rho**2 * (zzp2 - z1**2 - z2_psi**2),
        p_psi_psi2=rho * (zp3 - z1 * p2 - z2_psi * zp2),
        psi2_square=p4 - p2**2 - zp2**2,
    )


def _moments(sigma: Nonlinearity, rho: FloatArray, place: FloatArray) -> list[list[FloatArray]]:
    """E S, then E[z^a ψ^b] with b = 1 … 4 and the powers a of `_POWERS`, (X, K) each."""
    joined = np.empty((sum(powers for _, powers in _POWERS), *place.shape))
    octave = np.ceil(np.log2(rho))
    for level in np.unique(octave):  # groups whose σ′ is needed at the same panels
        some = np.flatnonzero(octave == level)
        size, at = rho[some], place[:, some]
        slopes = _slopes(sigma, size, at)
        rows = max(1, _CHUNK // (some.size * slopes.points))
        for i in range(0, len(place), rows):
            joined[:, i : i + rows, some] = _chunk(*slopes.at(size, at[i : i + rows]))
    found, start = [], 0
    for _, powers in _POWERS:
        found.append(list(joined[start : start + powers]))
        start += powers
    return found


def _chunk(z: FloatArray, w: FloatArray, slope: FloatArray) -> FloatArray:
    """The same for σ′ at nodes z with weights, which broadcast to (X, K, Z)."""
    mean = (slope * w).sum(axis=2)
    psi = slope - mean[:, :, None]
    found = [mean]
    power = w
    for b, powers in _POWERS:
        power = power * psi
        weighted = power
        if b > 1:
            found.append(weighted.sum(axis=2))
        for _ in range(powers - 1):
            weighted = weighted * z
            found.append(weighted.sum(axis=2))
    return np.stack(found)


class _Equispaced(NamedTuple):
    """One rule in z for a function without panels."""

    sigma: Nonlinearity
    z: FloatArray  # (Z,)
    w: FloatArray

    @property
    def points(self) -> int:
        """Nodes of one place."""
        return int(self.z.size)

    def at(self, rho: FloatArray, place: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Nodes z, weights, and σ′ at ρz + ω, which broadcast to (X, K, Z)."""
        return self.z, self.w, self.sigma.derivative(rho[:, None] * self.z + place[:, :, None])


class _Panels(NamedTuple):
    """σ′ on panels of the real line between its breaks, of which each place sees those near it."""

    edges: FloatArray  # (P + 1,)
    s: FloatArray  # (P, nodes)
    w: FloatArray
    slope: FloatArray
    seen: int  # panels of one place

    @property
    def points(self) -> int:
        """Nodes of one place."""
        return self.seen * _ORDER

    def at(self, rho: FloatArray, place: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Nodes z, weights, and σ′ at ρz + ω, (X, K, Z) each."""
        first = np.searchsorted(self.edges, place - _HALF_WIDTH * rho, "right") - 1
        last = len(self.s) - self.seen
        window = np.clip(first, 0, last)[..., None] + np.arange(self.seen)
        shape = (*place.shape, -1)
        z = (self.s[window].reshape(shape) - place[..., None]) / rho[:, None]
        w = self.w[window].reshape(shape) / rho[:, None] * normal_density(z)
        return z, w, self.slope[window].reshape(shape)


def _slopes(sigma: Nonlinearity, rho: FloatArray, place: FloatArray) -> _Equispaced | _Panels:
    """σ′ for norms ρ_g within a factor of two."""
    low, high = (place - _HALF_WIDTH * rho).min(), (place + _HALF_WIDTH * rho).max()
    breaks = sigma.breaks(float(max(-low, high)))
    if not breaks.size:
        return _Equispaced(sigma, *trapezoid_normal(_HALF_WIDTH, _SPACING / max(1.0, rho.max())))
    cells = int(np.ceil((high - low) / (_PANEL * rho.min())))
    inside = breaks[(breaks > low) & (breaks < high)]
    edges = np.unique(np.concatenate([np.linspace(low, high, cells + 1), inside]))
    s, w = (part.reshape(-1, _ORDER) for part in panels(edges, _ORDER))
    first = np.searchsorted(edges, place - _HALF_WIDTH * rho, "right") - 1
    end = np.searchsorted(edges, place + _HALF_WIDTH * rho, "left")
    return _Panels(edges, s, w, sigma.derivative(s), int((end - first).max()))
