"""Labels ±1 of a target: y = sign(σ⋆(t) + ε), some of them flipped (theory, section 30)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy import special

from ..core.types import FloatArray
from .nonlinearity import Nonlinearity, divide_by_powers, gaussian_panels, hermite_polynomials
from .quadrature import normal_density, panels
from .roots import find_root

REACH = 8.0  # |t| up to which the target's sign is looked at
_LEVELS = np.array([0.0, 2.2, -2.2, 6.0, -6.0])  # of σ⋆/σ_ε, between which Φ is near a polynomial
_GRID = np.linspace(-REACH, REACH, 1601)
_CLOSE = 1e-9  # crossings that count as one
_ORDER = 16  # nodes of a panel
_EDGES = np.array([-9.0, -6.0, -3.0, 0.0, 3.0, 6.0, 9.0])


@dataclass(frozen=True, eq=False, repr=False)
class MeanSign(Nonlinearity):
    """E[y|t] = 2π(t) − 1 of labels y = ±1."""

    base: Nonlinearity  # σ⋆
    noise_std: float
    flip: float

    def probability(self, t: FloatArray) -> FloatArray:
        """π(t) = P(y = 1|t) (eq. 71): flip + (1 − 2·flip)·Φ(σ⋆(t)/σ_ε)."""
        value = self.base(t)
        if self.noise_std == 0.0:
            clean = (value >= 0.0).astype(np.float64)
        else:
            clean = special.ndtr(value / self.noise_std)
        return np.asarray(self.flip + (1.0 - 2.0 * self.flip) * clean)

    def __call__(self, s: FloatArray) -> FloatArray:
        return np.asarray(2.0 * self.probability(s) - 1.0)

    def derivative(self, s: FloatArray) -> FloatArray:
        if self.noise_std == 0.0:
            return np.zeros_like(s)
        density = normal_density(self.base(s) / self.noise_std) / self.noise_std
        return np.asarray(2.0 * (1.0 - 2.0 * self.flip) * density * self.base.derivative(s))

    @cached_property
    def kinks(self) -> tuple[float, ...]:
        """Places where σ⋆ changes its sign: jumps of labels without noise."""
        return tuple(_sign_changes(self.base, 0.0, at_zero=True))

    def breaks(self, reach: float) -> FloatArray:
        found = np.concatenate([self.base.breaks(reach), self.crossings])
        return np.unique(found[np.abs(found) < reach])

    @cached_property
    def crossings(self) -> tuple[float, ...]:
        """Places where σ⋆/σ_ε crosses 0, ±2.2 and ±6, or σ⋆ changes its sign without noise."""
        levels = _LEVELS[:1] if self.noise_std == 0.0 else _LEVELS * self.noise_std
        found = [
            t
            for level in levels
            for t in _sign_changes(self.base, float(level), at_zero=self.noise_std == 0.0)
        ]
        ordered = sorted(found)
        kept = ordered[:1]
        for t in ordered[1:]:
            if t - kept[-1] > _CLOSE:
                kept.append(t)
        return tuple(kept)

    @cached_property
    def second_moment(self) -> float:
        z, w = gaussian_panels(self)
        return float(w @ self(z) ** 2)

    @cached_property
    def share(self) -> float:
        """P(y = 1)."""
        z, w = gaussian_panels(self)
        return float(w @ self.probability(z))

    @cached_property
    def by_label(self) -> FloatArray:
        """E[t^k (1 − π)] and E[t^k π] for k = 0, 1, 2, (3, 2): moments of t with either label."""
        z, w = gaussian_panels(self)
        probability = self.probability(z)
        powers = z ** np.arange(3)[:, None] * w
        return np.stack([powers @ (1.0 - probability), powers @ probability], axis=1)

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        """By panels between the places where the label's mean changes fast."""
        inside = (np.array(self.breaks(REACH)) - t[..., None]) / rho[..., None]
        standard = np.broadcast_to(_EDGES, (*t.shape, _EDGES.size))
        edges = np.sort(np.concatenate([standard, np.clip(inside, -9.0, 9.0)], axis=-1), axis=-1)
        z, w = panels(edges, _ORDER)
        weighted = w * normal_density(z)
        value = self(rho[..., None] * z + t[..., None])
        out = np.empty((order + 2, *t.shape))
        hermite = hermite_polynomials(order, z)
        out[:-1] = (hermite * (weighted * value)).sum(axis=-1)
        out[-1] = (weighted * value**2).sum(axis=-1) - out[0] ** 2 - out[1] ** 2
        divide_by_powers(out[:-1], rho)
        return out


def _sign_changes(f: Nonlinearity, level: float, *, at_zero: bool) -> FloatArray:
    """Places in [−REACH, REACH] where f − level changes its sign.

    With `at_zero` 0 counts as positive, as it does for labels without noise.
    """
    values = f(_GRID) - level
    high = values >= 0.0
    places = np.flatnonzero(high[1:] != high[:-1])
    if not places.size:
        return np.empty(0)

    def shifted(t: FloatArray) -> FloatArray:
        found = f(t) - level
        return np.where(found >= 0.0, np.maximum(found, 1e-300), found) if at_zero else found

    return find_root(shifted, _GRID[places], _GRID[places + 1], absolute=1e-13)


@lru_cache(maxsize=256)
def mean_sign(star: Nonlinearity, noise_std: float, flip: float) -> MeanSign:
    """The mean label of a target, noise and share of flips: one object for each."""
    return MeanSign(f"sign({star.name})", star, noise_std, flip)
