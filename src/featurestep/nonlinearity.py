"""Scalar functions and their Gaussian moments, the only way the theory sees σ and σ⋆.

Every function f answers, for s = ρz + t with z ~ N(0,1) (theory, eqs. 5 and 6):
the mean E f(s), the slope E[z f(s)]/ρ and the spread, the variance of f left when its
linear part in z is taken away. Closed forms where they exist, otherwise quadrature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from .panels import PiecewisePanels
from .quadrature import FloatArray, normal_density, trapezoid_normal
from .quadrature import panels as panel_rule

Function = Callable[[FloatArray], FloatArray]

_CHUNK = 1 << 16  # elements of one (points × nodes) block, small enough to stay in cache


class Moments(NamedTuple):
    """Mean, slope and spread of f(ρz + t), arrays of one shape."""

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

    def moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        """Moments of f(ρz + t) for every (ρ, t), broadcast together."""
        raise TypeError(f"{type(self).__name__} is abstract")

    def normalised_coefficients(self, order: int) -> FloatArray:
        """E[f(z)H_k(z)]/√k! for k = 0 … order: the L² coordinates of f."""
        raise TypeError(f"{type(self).__name__} is abstract")

    @property
    def oscillates(self) -> bool:
        """Whether f varies at unit scale arbitrarily far from 0."""
        return False

    @property
    def kinks(self) -> tuple[float, ...]:
        """Points where f is not smooth."""
        return ()

    @cached_property
    def second_moment(self) -> float:
        """E f(z)²."""
        mean, slope, spread = self.moments(np.ones(1), np.zeros(1))
        return float(mean[0] ** 2 + slope[0] ** 2 + spread[0])

    @cached_property
    def mean_slope(self) -> float:
        """E f′(z), from the derivative itself."""
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

    def moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        mean, slope, spread = self.base.moments(rho, t)
        return Moments(mean - self.offset, slope, spread)

    def normalised_coefficients(self, order: int) -> FloatArray:
        out = self.base.normalised_coefficients(order).copy()
        out[0] -= self.offset
        return out

    @property
    def oscillates(self) -> bool:
        return self.base.oscillates

    @property
    def kinks(self) -> tuple[float, ...]:
        return self.base.kinks


@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseLinear(Nonlinearity):
    """slope·s + intercept + Σ weight·relu(s − kink), all moments in closed form."""

    slope: float
    intercept: float
    corners: tuple[tuple[float, float], ...]  # (kink, weight)

    @property
    def kinks(self) -> tuple[float, ...]:
        return tuple(kink for kink, _ in self.corners)

    def __call__(self, s: FloatArray) -> FloatArray:
        out = self.slope * s + self.intercept
        for kink, weight in self.corners:
            out = out + weight * np.maximum(s - kink, 0.0)
        return out

    def derivative(self, s: FloatArray) -> FloatArray:
        out = np.full(np.shape(s), self.slope)
        for kink, weight in self.corners:
            out = out + weight * (s > kink)
        return out

    def moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        rho, t = np.broadcast_arrays(rho, t)
        mean = self.slope * t + self.intercept
        slope = np.full(t.shape, self.slope)
        spread = np.zeros(t.shape)
        ramps: list[_Ramp] = []
        for kink, weight in self.corners:
            ramp = _ramp((t - kink) / rho)
            mean = mean + weight * rho * ramp.mean
            slope = slope + weight * ramp.slope
            spread += weight**2 * _ramp_covariance(ramp, ramp)
            for (_, other), earlier in zip(self.corners, ramps, strict=False):
                spread += 2 * weight * other * _ramp_covariance(earlier, ramp)
            ramps.append(ramp)
        return Moments(mean, slope, np.maximum(rho**2 * spread, 0.0))

    def normalised_coefficients(self, order: int) -> FloatArray:
        out = np.zeros(order + 1)
        out[0] = self.intercept
        if order:
            out[1] = self.slope
        for kink, weight in self.corners:
            ramp = _ramp(np.array(-kink))
            out[0] += weight * ramp.mean
            if order:
                out[1] += weight * ramp.slope
            # ⟨relu(z − a), H_k⟩ = H_{k−2}(a) φ(a)
            h = normalised_hermite(order, np.array([kink]))[:, 0]
            k = np.arange(2, order + 1)
            tail = h[: max(order - 1, 0)] / np.sqrt(k * (k - 1.0))
            out[2:] += weight * normal_density(np.array(kink)) * tail
        return out


class _Ramp(NamedTuple):
    """E relu(z + τ) and its slope, and the same for the reflected −|τ|, where nothing cancels."""

    tau: FloatArray
    mean: FloatArray
    slope: FloatArray
    tail_mean: FloatArray
    tail_slope: FloatArray


def _ramp(tau: FloatArray) -> _Ramp:
    low = -np.abs(tau)
    cdf = special.ndtr(low)
    tail = np.maximum(normal_density(low) + low * cdf, 0.0)
    return _Ramp(tau, tail + np.maximum(tau, 0.0), np.where(tau > 0, 1.0 - cdf, cdf), tail, cdf)


def _ramp_covariance(upper: _Ramp, lower: _Ramp) -> FloatArray:
    """Covariance of relu(z + τ₁), relu(z + τ₂), less their linear parts; τ₁ ≥ τ₂.

    relu(x) = x + relu(−x) leaves it unchanged when both are reflected, so it is computed on the
    side where the second ramp is in its tail: E[(z + τ₁)relu(z + τ₂)] = Φ(τ₂) + τ₁E relu(z + τ₂).
    """
    if upper is lower:
        mean, cdf, tau = upper.tail_mean, upper.tail_slope, -np.abs(upper.tau)
        return np.asarray(cdf * (1.0 - cdf) + mean * (tau - mean))
    reflect = upper.tau + lower.tau > 0
    high_tau = np.where(reflect, -lower.tau, upper.tau)
    high_mean = np.where(reflect, lower.mean - lower.tau, upper.mean)
    high_cdf = np.where(reflect, 1.0 - lower.slope, upper.slope)
    # After reflection the lower ramp has τ ≤ 0: its tail values are its own.
    low_mean = np.where(reflect, upper.tail_mean, lower.tail_mean)
    low_cdf = np.where(reflect, upper.tail_slope, lower.tail_slope)
    return np.asarray(low_cdf * (1.0 - high_cdf) + low_mean * (high_tau - high_mean))


@dataclass(frozen=True, eq=False, repr=False)
class HermiteSum(Nonlinearity):
    """Σ c_k H_k, with c_k the coefficients themselves (not normalised)."""

    coefficients: tuple[float, ...]

    def __call__(self, s: FloatArray) -> FloatArray:
        return np.polynomial.hermite_e.hermeval(s, np.array(self.coefficients))

    def derivative(self, s: FloatArray) -> FloatArray:
        lowered = np.polynomial.hermite_e.hermeder(np.array(self.coefficients))
        return np.polynomial.hermite_e.hermeval(s, lowered)

    def moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        rho, t = np.broadcast_arrays(rho, t)
        smoothed = _smoothed_hermite(len(self.coefficients) - 1, 1.0 - rho**2, t)
        coordinates = [self._coordinate(j, rho, smoothed) for j in range(len(self.coefficients))]
        mean = coordinates[0]
        slope = coordinates[1] / rho if len(coordinates) > 1 else np.zeros(t.shape)
        spread = np.zeros(t.shape)
        for j in range(2, len(coordinates)):
            spread += special.factorial(j) * coordinates[j] ** 2
        return Moments(mean, slope, spread)

    def _coordinate(self, j: int, rho: FloatArray, smoothed: list[FloatArray]) -> FloatArray:
        """E[f(ρz + t)H_j(z)]/j! = ρ^j/j!·E f^{(j)}."""
        total = np.zeros(rho.shape)
        for k in range(j, len(self.coefficients)):
            total = total + self.coefficients[k] * special.binom(k, j) * smoothed[k - j]
        return np.asarray(rho**j * total)

    def normalised_coefficients(self, order: int) -> FloatArray:
        out = np.zeros(order + 1)
        size = min(order + 1, len(self.coefficients))
        k = np.arange(size)
        out[:size] = np.array(self.coefficients[:size]) * np.sqrt(special.factorial(k))
        return out


def _smoothed_hermite(degree: int, variance: FloatArray, t: FloatArray) -> list[FloatArray]:
    """E H_m(ρz + t) for m = 0 … degree: Hermite polynomials of variance 1 − ρ²."""
    values = [np.ones(t.shape), np.array(t)]
    for m in range(1, degree):
        values.append(t * values[m] - m * variance * values[m - 1])
    return values[: degree + 1]


@dataclass(frozen=True, eq=False, repr=False)
class Sine(Nonlinearity):
    """sin(s), all moments in closed form."""

    @property
    def oscillates(self) -> bool:
        return True

    def __call__(self, s: FloatArray) -> FloatArray:
        return np.sin(s)

    def derivative(self, s: FloatArray) -> FloatArray:
        return np.cos(s)

    def moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        rho, t = np.broadcast_arrays(rho, t)
        v = rho**2
        decay = np.exp(-0.5 * v)
        sine, cosine = np.sin(t), np.cos(t)
        # Var(sin) − linear part, split into squares so that small ρ does not cancel:
        # e^{−ρ²}[sin²t (cosh ρ² − 1) + cos²t (sinh ρ² − ρ²)]
        even = 0.5 * np.expm1(-v) ** 2
        odd = np.where(v < 0.3, np.exp(-v) * _sinh_minus(v), 0.5 * -np.expm1(-2 * v) - v * decay**2)
        return Moments(decay * sine, decay * cosine, sine**2 * even + cosine**2 * odd)

    def normalised_coefficients(self, order: int) -> FloatArray:
        k = np.arange(order + 1)
        sign = np.array([0.0, 1.0, 0.0, -1.0])[k % 4]
        return sign * np.exp(-0.5 - 0.5 * special.gammaln(k + 1.0))


def _sinh_minus(v: FloatArray) -> FloatArray:
    """Series of sinh(v) − v for small v."""
    v2 = v * v
    return v * v2 / 6 * (1 + v2 / 20 * (1 + v2 / 42 * (1 + v2 / 72 * (1 + v2 / 110))))


@dataclass(frozen=True, eq=False, repr=False)
class Analytic(Nonlinearity):
    """A named function analytic in a strip |Im s| ≥ π/2: the equispaced rule converges fast."""

    function: Function
    slope_function: Function
    is_ramp: bool = False  # f(s) = s + f(−s): evaluated where it decays, so nothing cancels

    def __call__(self, s: FloatArray) -> FloatArray:
        return self.function(s)

    def derivative(self, s: FloatArray) -> FloatArray:
        return self.slope_function(s)

    @cached_property
    def _panels(self) -> PiecewisePanels:
        return PiecewisePanels(self.function, self.name, ())

    def moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        if self.is_ramp:
            mean, slope, spread = self._moments(rho, -np.abs(t))
            return Moments(mean + np.maximum(t, 0.0), np.where(t > 0, 1.0 - slope, slope), spread)
        return self._moments(rho, t)

    def _moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        rho, t = np.broadcast_arrays(rho, t)
        flat_rho, flat_t = rho.ravel(), t.ravel()
        out = np.empty((3, t.size))
        octave = np.ceil(6 * np.log2(np.maximum(flat_rho, 0.5)) - 1e-9).astype(int)
        for level in np.unique(octave):
            pick = np.flatnonzero(octave == level)
            bound = 2.0 ** (level / 6)
            if bound <= 6.0:
                rule = trapezoid_normal(8.5, 0.34 / bound)
                out[:, pick] = _moments_by_rule(self.function, flat_rho[pick], flat_t[pick], rule)
            else:
                out[:, pick] = self._panels.moments(flat_rho[pick], flat_t[pick])
        return Moments(*(row.reshape(t.shape) for row in out))

    def normalised_coefficients(self, order: int) -> FloatArray:
        z, w = trapezoid_normal(TAIL_COEFFICIENTS, 0.1)
        return normalised_hermite(order, z) @ (w * self.function(z))


TAIL_COEFFICIENTS = 16.0  # normalised Hermite polynomials of degree ≤ 60 have decayed there


def _moments_by_rule(
    f: Function, rho: FloatArray, t: FloatArray, rule: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """The three moments for flat ρ, t with one set of nodes in z, block by block.

    The plain second moment is enough: f is of order 1 wherever this is called.
    """
    z, w = rule
    out = np.empty((3, t.size))
    projections = np.stack([w, w * z], axis=1)
    rows = max(1, _CHUNK // z.size)
    for start in range(0, t.size, rows):
        block = slice(start, start + rows)
        points = np.multiply.outer(rho[block], z)  # (rows, nodes)
        points += t[block, None]
        values = f(points)
        mean, along = (values @ projections).T
        out[0, block] = mean
        out[1, block] = along / rho[block]
        second = np.square(values, out=values) @ w
        out[2, block] = np.maximum(second - mean**2 - along**2, 0.0)
    return out


@dataclass(frozen=True, eq=False, repr=False)
class UserFunction(Nonlinearity):
    """A user's vectorised callable: adaptive panels, with undeclared kinks refused."""

    function: Function
    slope_function: Function | None = None
    declared_kinks: tuple[float, ...] = ()
    parameter: str = "activation"
    _panels: PiecewisePanels = field(init=False)

    def __post_init__(self) -> None:
        panels = PiecewisePanels(self.function, self.parameter, self.declared_kinks)
        object.__setattr__(self, "_panels", panels)
        panels.refuse_divergent()

    @property
    def kinks(self) -> tuple[float, ...]:
        return self.declared_kinks

    @property
    def oscillates(self) -> bool:
        """Judged by how many panels the range 16 … 64 needs beyond a few."""
        return self._panels.breaks(64.0).size > self._panels.breaks(16.0).size + 40

    def __call__(self, s: FloatArray) -> FloatArray:
        return self._panels.evaluate(s)

    def derivative(self, s: FloatArray) -> FloatArray:
        """The declared derivative, or a fourth-order difference that stays on s's side of kinks."""
        if self.slope_function is not None:
            return np.asarray(self.slope_function(s), dtype=np.float64)
        return one_sided_difference(self._panels.evaluate, np.asarray(s), self.declared_kinks)

    def moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        rho, t = np.broadcast_arrays(rho, t)
        out = self._panels.moments(rho.ravel(), t.ravel())
        return Moments(*(row.reshape(t.shape) for row in out))

    def normalised_coefficients(self, order: int) -> FloatArray:
        z, w = gaussian_panels(self)
        return normalised_hermite(order, z) @ (w * self._panels.evaluate(z))


def one_sided_difference(f: Function, s: FloatArray, kinks: Sequence[float]) -> FloatArray:
    """f′(s) from five points, shifted so that none lies beyond a kink."""
    step = 1e-3
    shift = np.zeros(np.shape(s))  # in steps, of the stencil's centre
    for kink in kinks:
        gap = (s - kink) / step
        shift = np.where((gap >= 0) & (gap < 2), 2 - gap, shift)
        shift = np.where((gap < 0) & (gap > -2), -2 - gap, shift)
    # Derivative at offset −shift of the quartic through the five values.
    offsets = np.arange(-2.0, 3.0)
    centre = s + shift * step
    at = -shift
    total = np.zeros(np.shape(s))
    for i, a in enumerate(offsets):
        others = np.delete(offsets, i)
        scale = np.prod(a - others)
        slope = np.zeros(np.shape(s))
        for j in range(4):
            slope = slope + np.prod([at - others[m] for m in range(4) if m != j], axis=0)
        total = total + f(centre + a * step) * slope / scale
    return np.asarray(total / step)


def gaussian_panels(f: Nonlinearity) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of E over z ~ N(0,1), split where f is not smooth."""
    base = f.base if isinstance(f, Shifted) else f
    panels = getattr(base, "_panels", None)
    breaks = panels.breaks(16.0) if panels is not None else np.array(f.kinks)
    inside = breaks[np.abs(breaks) < 16.0]
    edges = np.unique(np.concatenate([np.linspace(-16.0, 16.0, 33), inside]))
    z, w = panel_rule(edges, 16)
    return z, w * normal_density(z)


def normalised_hermite(order: int, x: FloatArray) -> FloatArray:
    """H_k(x)/√k! for k = 0 … order, one row each, by the stable recurrence."""
    out = np.empty((order + 1, *np.shape(x)))
    out[0] = 1.0
    if order:
        out[1] = x
    for k in range(1, order):
        out[k + 1] = (x * out[k] - np.sqrt(k) * out[k - 1]) / np.sqrt(k + 1.0)
    return out
