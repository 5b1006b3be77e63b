"""Scalar functions with their Gaussian moments and Hermite coefficients: σ and σ⋆ of the theory.

For s = ρz + t with z ~ N(0,1) (theory, eqs. 5 and 6) a function f has

mean       m = E f(s)
slope      E f′(s) = E[z f(s)]/ρ
spread     ν² = Var f(s) − (ρ·slope)²: the variance of f without its linear part in z

and the means of its derivatives E f^{(k)}(s), of which the mean and the slope are the first two.
They are closed forms (`activations`) or quadratures (`sampled`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from ..core.types import FloatArray
from .quadrature import normal_density, panels

Function = Callable[[FloatArray], FloatArray]
_DIFFERENCE = 1e-4  # relative, of a difference quotient in ρ
ZERO = 1e-12  # a Hermite coefficient smaller than this, relative to √E f², counts as absent


class Moments(NamedTuple):
    """Mean, slope and spread of f(ρz + t), arrays of the shape of ρ and t."""

    mean: FloatArray
    slope: FloatArray
    spread: FloatArray


@dataclass(frozen=True, eq=False)
class Nonlinearity:
    """A scalar function with the Gaussian moments that the theory needs."""

    name: str

    def __call__(self, s: FloatArray) -> FloatArray:
        """f(s), elementwise."""
        raise TypeError(f"{type(self).__name__} is abstract")

    def derivative(self, s: FloatArray) -> FloatArray:
        """f′(s), elementwise (one-sided at kinks)."""
        raise TypeError(f"{type(self).__name__} is abstract")

    def averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        """E f^{(k)}(ρz + t) for k = 0 … order ≥ 1, then the spread: (order + 2, *shape).

        ρ and t are broadcast to one shape. The means are E[f(ρz + t)H_k(z)]/ρ^k, so that no
        derivative of f is taken.
        """
        rho, t = np.broadcast_arrays(rho, t)
        return self._averages(rho, t, order)

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        """`averages` for ρ and t of one shape."""
        raise TypeError(f"{type(self).__name__} is abstract")

    def averages_with_growth(
        self, rho: FloatArray, t: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray]:
        """`averages` for an order ≥ 3, and ρ²∂/∂ρ² of E f(ρz + t)², of the shape of ρ and t."""
        rho, t = np.broadcast_arrays(rho, t)
        return self._averages_with_growth(rho, t, order)

    def _averages_with_growth(
        self, rho: FloatArray, t: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray]:
        """The same for ρ and t of one shape, by a difference quotient."""
        sizes = np.multiply.outer([1.0 + _DIFFERENCE, 1.0 - _DIFFERENCE], rho)
        mean, slope, spread = self.averages(sizes, t, 1)
        up, down = mean**2 + (sizes * slope) ** 2 + spread
        return self._averages(rho, t, order), (up - down) / (4.0 * _DIFFERENCE)

    def moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        """Moments of f(ρz + t) for every (ρ, t)."""
        return Moments(*self.averages(rho, t, 1))

    def derivative_means(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        """E f^{(k)}(ρz + t) for k = 0 … order: (order + 1, *shape)."""
        return self.averages(rho, t, max(order, 1))[: order + 1]

    def normalised_coefficients(self, order: int) -> FloatArray:
        """E[f(z)H_k(z)]/√k! for k = 0 … order, as computed (see the function of that name)."""
        z, w = gaussian_panels(self)
        return normalised_hermite(order, z) @ (w * self(z))

    @property
    def oscillates(self) -> bool:
        """True if f varies at unit scale arbitrarily far from 0."""
        return False

    @property
    def is_odd(self) -> bool:
        """True if f(−s) = −f(s) is known."""
        return False

    @property
    def kinks(self) -> tuple[float, ...]:
        """Points where f is not smooth."""
        return ()

    def breaks(self, reach: float) -> FloatArray:
        """Points of [−reach, reach] between which f is close to polynomials of moderate degree."""
        kinks = np.array(self.kinks)
        return np.asarray(kinks[np.abs(kinks) < reach])

    @cached_property
    def second_moment(self) -> float:
        """E f(z)²."""
        mean, slope, spread = self.moments(np.ones(1), np.zeros(1))
        return float(mean[0] ** 2 + slope[0] ** 2 + spread[0])

    @cached_property
    def mean_slope(self) -> float:
        """E f′(z), by integrating the derivative."""
        z, w = gaussian_panels(self)
        return float(w @ self.derivative(z))

    @cached_property
    def slope_variance(self) -> float:
        """Var f′(z)."""
        z, w = gaussian_panels(self)
        slopes = self.derivative(z)
        return float(w @ (slopes - w @ slopes) ** 2)

    def centred(self) -> Nonlinearity:
        """f − E f(z)."""
        if self.is_odd:
            return self
        offset = float(self.normalised_coefficients(0)[0])
        return self if offset == 0.0 else Shifted(self.name, self, offset)

    def __repr__(self) -> str:
        return f"<{self.name}>"


@dataclass(frozen=True, eq=False, repr=False)
class Shifted(Nonlinearity):
    """base − offset."""

    base: Nonlinearity
    offset: float

    def __call__(self, s: FloatArray) -> FloatArray:
        return self.base(s) - self.offset

    def derivative(self, s: FloatArray) -> FloatArray:
        return self.base.derivative(s)

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        out = self.base.averages(rho, t, order)
        out[0] -= self.offset
        return out

    def _averages_with_growth(
        self, rho: FloatArray, t: FloatArray, order: int
    ) -> tuple[FloatArray, FloatArray]:
        out, growth = self.base.averages_with_growth(rho, t, order)
        out[0] -= self.offset
        return out, growth - self.offset * rho**2 * out[2]

    def normalised_coefficients(self, order: int) -> FloatArray:
        out = self.base.normalised_coefficients(order)
        out[0] -= self.offset
        return out

    @property
    def oscillates(self) -> bool:
        return self.base.oscillates

    @property
    def kinks(self) -> tuple[float, ...]:
        return self.base.kinks

    def breaks(self, reach: float) -> FloatArray:
        return self.base.breaks(reach)


@dataclass(frozen=True, eq=False, repr=False)
class Rescaled(Nonlinearity):
    """base(factor·s)."""

    base: Nonlinearity
    factor: float

    def __call__(self, s: FloatArray) -> FloatArray:
        return self.base(self.factor * s)

    def derivative(self, s: FloatArray) -> FloatArray:
        return np.asarray(self.factor * self.base.derivative(self.factor * s))

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        out = self.base.averages(self.factor * rho, self.factor * t, order)
        for k in range(1, order + 1):
            out[k] *= self.factor**k
        return out

    @property
    def oscillates(self) -> bool:
        return self.base.oscillates

    @property
    def is_odd(self) -> bool:
        return self.base.is_odd

    @property
    def kinks(self) -> tuple[float, ...]:
        return tuple(kink / self.factor for kink in self.base.kinks)

    def breaks(self, reach: float) -> FloatArray:
        return self.base.breaks(reach * self.factor) / self.factor


def innermost(f: Nonlinearity) -> Nonlinearity:
    """The function without its shifts and changes of scale."""
    while isinstance(f, (Shifted, Rescaled)):
        f = f.base
    return f


def gaussian_panels(f: Nonlinearity) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the average over z ~ N(0,1), for products of f and smooth functions."""
    inside = f.breaks(16.0)
    edges = np.unique(np.concatenate([np.linspace(-16.0, 16.0, 33), inside[np.abs(inside) < 16.0]]))
    z, w = panels(edges, 16)
    return z, w * normal_density(z)


def normalised_hermite(order: int, x: FloatArray) -> FloatArray:
    """H_k(x)/√k! for k = 0 … order: (order + 1, *shape of x)."""
    out = np.empty((order + 1, *np.shape(x)))
    out[0] = 1.0
    if order:
        out[1] = x
    for k in range(1, order):
        out[k + 1] = (x * out[k] - np.sqrt(k) * out[k - 1]) / np.sqrt(k + 1.0)
    return out


def hermite_polynomials(order: int, x: FloatArray) -> FloatArray:
    """H_k(x) for k = 0 … order: (order + 1, *shape of x)."""
    sizes = np.sqrt(factorials(order + 1)).reshape(-1, *[1] * np.ndim(x))
    return normalised_hermite(order, x) * sizes


def divide_by_powers(rows: FloatArray, rho: FloatArray) -> FloatArray:
    """Divide row k by ρ^k, in place."""
    for k in range(1, len(rows)):
        rows[k:] /= rho
    return rows


@lru_cache(maxsize=512)
def coefficients(f: Nonlinearity, order: int) -> FloatArray:
    """c_k = E[f(z)H_k(z)]/k! for k = 0 … order (theory, section 1)."""
    normalised = normalised_coefficients(f, order)
    values = normalised / np.sqrt(factorials(order + 1))
    values.setflags(write=False)
    return values


@lru_cache(maxsize=512)
def normalised_coefficients(f: Nonlinearity, order: int) -> FloatArray:
    """√k!·c_k for k = 0 … order, whose squares sum to E f²; exactly 0 at rounding level."""
    values = f.normalised_coefficients(order)
    values[np.abs(values) < ZERO * np.sqrt(f.second_moment)] = 0.0
    values.setflags(write=False)
    return values


def factorials(count: int) -> FloatArray:
    """0!, 1!, …, (count − 1)! as floats."""
    steps = np.maximum(np.arange(count), 1).astype(np.float64)
    return np.asarray(np.cumprod(steps), dtype=np.float64)
