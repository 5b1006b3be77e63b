"""Functions whose Gaussian moments have closed forms: piecewise linear, polynomial, erf, sine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...types import FloatArray
from ..quadrature import normal_density, trapezoid_normal
from ..special import erf, erfc, factorials, ndtr, owens_t
from .base import Moments, Nonlinearity, hermite, normalised_hermite, over_powers


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

    def derivative_means(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        rho, t = np.broadcast_arrays(rho, t)
        out = np.zeros((order + 1, *t.shape))
        out[0] = self.slope * t + self.intercept
        out[1:2] = self.slope
        for kink, weight in self.corners:
            ramp = _ramp((t - kink) / rho)
            out[0] += weight * rho * ramp.mean
            out[1:2] += weight * ramp.slope
            if order >= 2:  # relu″ is a point mass
                out[2:] += weight * _density_derivatives(order - 2, t - kink, rho)
        return out

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


def _density_derivatives(order: int, x: FloatArray, width: FloatArray) -> FloatArray:
    """Derivatives 0 … order at x of the density φ(x/width)/width."""
    at = x / width
    return over_powers(hermite(order, -at) * (normal_density(at) / width), width)


class _Ramp(NamedTuple):
    """E relu(z + τ) and its slope, and the same for the reflected −|τ|, where nothing cancels."""

    tau: FloatArray
    mean: FloatArray
    slope: FloatArray
    tail_mean: FloatArray
    tail_slope: FloatArray


def _ramp(tau: FloatArray) -> _Ramp:
    low = -np.abs(tau)
    cdf = ndtr(low)
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
        return np.asarray(np.polynomial.hermite_e.hermeval(s, np.array(self.coefficients)))

    def derivative(self, s: FloatArray) -> FloatArray:
        lowered = np.polynomial.hermite_e.hermeder(np.array(self.coefficients))
        return np.asarray(np.polynomial.hermite_e.hermeval(s, lowered), dtype=np.float64)

    def moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        rho, t = np.broadcast_arrays(rho, t)
        smoothed = _smoothed_hermite(len(self.coefficients) - 1, 1.0 - rho**2, t)
        coordinates = [rho**j * self._taylor(j, smoothed) for j in range(len(self.coefficients))]
        mean = coordinates[0]
        slope = coordinates[1] / rho if len(coordinates) > 1 else np.zeros(t.shape)
        spread = np.zeros(t.shape)
        for j in range(2, len(coordinates)):
            spread += math.factorial(j) * coordinates[j] ** 2
        return Moments(mean, slope, spread)

    def derivative_means(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        rho, t = np.broadcast_arrays(rho, t)
        smoothed = _smoothed_hermite(len(self.coefficients) - 1, 1.0 - rho**2, t)
        rows = [math.factorial(j) * self._taylor(j, smoothed) for j in range(order + 1)]
        return np.stack(rows)

    def _taylor(self, j: int, smoothed: list[FloatArray]) -> FloatArray:
        """E f^{(j)}(ρz + t)/j! = E[f(ρz + t)H_j(z)]/(j!ρ^j)."""
        total = np.zeros(smoothed[0].shape)
        for k in range(j, len(self.coefficients)):
            total = total + self.coefficients[k] * math.comb(k, j) * smoothed[k - j]
        return total

    def normalised_coefficients(self, order: int) -> FloatArray:
        out = np.zeros(order + 1)
        size = min(order + 1, len(self.coefficients))
        out[:size] = np.array(self.coefficients[:size]) * np.sqrt(factorials(size))
        return out


def _smoothed_hermite(degree: int, variance: FloatArray, t: FloatArray) -> list[FloatArray]:
    """E H_m(ρz + t) for m = 0 … degree: Hermite polynomials of variance 1 − ρ²."""
    values = [np.ones(t.shape), np.array(t)]
    for m in range(1, degree):
        values.append(t * values[m] - m * variance * values[m - 1])
    return values[: degree + 1]


@dataclass(frozen=True, eq=False, repr=False)
class Erf(Nonlinearity):
    """erf(s): the second moment is Owen's function T."""

    def __call__(self, s: FloatArray) -> FloatArray:
        return np.asarray(erf(s))

    def derivative(self, s: FloatArray) -> FloatArray:
        return np.asarray(2.0 / np.sqrt(np.pi) * np.exp(-s * s))

    def moments(self, rho: FloatArray, t: FloatArray) -> Moments:
        v = rho**2
        wide = np.sqrt(1.0 + 2.0 * v)
        at = t / wide
        mean = erf(at)
        slope = 2.0 / np.sqrt(np.pi) / wide * np.exp(-at * at)
        # E erf² = 1 − 8T(√2·at, 1/√(1+4ρ²)); its complement stays accurate where erf saturates.
        gap = erfc(np.abs(at))
        tail = 8.0 * owens_t(np.sqrt(2.0) * at, 1.0 / np.sqrt(1.0 + 4.0 * v))
        spread = gap * (2.0 - gap) - tail - v * slope**2
        return Moments(*np.broadcast_arrays(mean, slope, np.maximum(spread, 0.0)))

    def derivative_means(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        rho, t = np.broadcast_arrays(rho, t)
        out = np.empty((order + 1, *t.shape))
        out[0] = erf(t / np.sqrt(1.0 + 2.0 * rho**2))
        if order:  # erf′ is twice a normal density of variance ½
            out[1:] = 2.0 * _density_derivatives(order - 1, t, np.sqrt(0.5 + rho**2))
        return out

    def normalised_coefficients(self, order: int) -> FloatArray:
        z, w = trapezoid_normal(16.0, 0.1)
        return normalised_hermite(order, z) @ (w * erf(z))


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

    def derivative_means(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        rho, t = np.broadcast_arrays(rho, t)
        decay = np.exp(-0.5 * rho**2)
        sine, cosine = decay * np.sin(t), decay * np.cos(t)
        return np.stack([(sine, cosine, -sine, -cosine)[k % 4] for k in range(order + 1)])

    def normalised_coefficients(self, order: int) -> FloatArray:
        k = np.arange(order + 1)
        sign = np.array([0.0, 1.0, 0.0, -1.0])[k % 4]
        return np.asarray(sign * np.exp(-0.5) / np.sqrt(factorials(order + 1)))


def _sinh_minus(v: FloatArray) -> FloatArray:
    """Series of sinh(v) − v for small v."""
    v2 = v * v
    return v * v2 / 6 * (1 + v2 / 20 * (1 + v2 / 42 * (1 + v2 / 72 * (1 + v2 / 110))))
