"""Activations: functions with closed-form moments, the named ones, and users' specifications."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..core.checks import readable
from ..core.errors import InvalidProblem
from ..core.types import FloatArray, special
from .formula import MAX_DEGREE, Formula, formula, hermite_formula, suggestion
from .nonlinearity import (
    ZERO,
    Analytic,
    Nonlinearity,
    Rescaled,
    Shifted,
    UserFunction,
    divide_by_powers,
    factorials,
    hermite_polynomials,
    normalised_hermite,
)
from .quadrature import gauss_hermite, normal_density

LEAKY_SLOPE = 0.01
VARIABLE = re.compile(r"\bz\d*\b")  # of a formula


class _Closed(Nonlinearity):
    """A function with closed-form averages, and so coefficients: E[f(z)H_k(z)] = E f^{(k)}(z)."""

    def normalised_coefficients(self, order: int) -> FloatArray:
        means = self.derivative_means(np.ones(()), np.zeros(()), order)
        return np.asarray(means / np.sqrt(factorials(order + 1)))


@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseLinear(_Closed):
    """slope·s + intercept + Σ weight·relu(s − kink)."""

    slope: float
    intercept: float
    corners: tuple[tuple[float, float], ...]  # (kink, weight)

    @property
    def kinks(self) -> tuple[float, ...]:
        return tuple(kink for kink, _ in self.corners)

    @property
    def is_odd(self) -> bool:
        far = 1.0 + max(map(abs, self.kinks), default=0.0)  # f(s) + f(−s) is linear between these
        at = np.array([0.0, *self.kinks, far, 2.0 * far])
        return bool(np.all(self(at) == -self(-at)))

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

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        out = np.zeros((order + 2, *t.shape))
        out[0] = self.slope * t + self.intercept
        out[1] = self.slope
        ramps: list[_Ramp] = []
        for kink, weight in self.corners:
            ramp = _ramp((t - kink) / rho)
            out[0] += weight * rho * ramp.mean
            out[1] += weight * ramp.slope
            if order >= 2:  # relu″ is a point mass
                out[2:-1] += weight * _density_derivatives(order - 2, t - kink, rho)
            out[-1] += weight**2 * _ramp_covariance(ramp, ramp)
            for (_, other), earlier in zip(self.corners, ramps, strict=False):
                out[-1] += 2 * weight * other * _ramp_covariance(earlier, ramp)
            ramps.append(ramp)
        out[-1] = np.maximum(rho**2 * out[-1], 0.0)
        return out


def piecewise_linear(f: Nonlinearity) -> PiecewiseLinear | None:
    """f, shifts and changes of scale included, if it is linear between kinks; else None."""
    if isinstance(f, PiecewiseLinear):
        return f
    inner = piecewise_linear(f.base) if isinstance(f, (Shifted, Rescaled)) else None
    if inner is None:
        return None
    if isinstance(f, Shifted):
        return replace(inner, intercept=inner.intercept - f.offset)
    assert isinstance(f, Rescaled)
    corners = tuple((kink / f.factor, f.factor * weight) for kink, weight in inner.corners)
    return replace(inner, slope=f.factor * inner.slope, corners=corners)


def _density_derivatives(order: int, x: FloatArray, width: FloatArray) -> FloatArray:
    """Derivatives 0 … order at x of the density φ(x/width)/width."""
    at = x / width
    return divide_by_powers(hermite_polynomials(order, -at) * (normal_density(at) / width), width)


class _Ramp(NamedTuple):
    """E relu(z + τ) and its slope, and both for −|τ|, where nothing cancels."""

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
    """Covariance of relu(z + τ₁) and relu(z + τ₂) without their linear parts; τ₁ ≥ τ₂.

    Reflecting both, τ → −τ, leaves it unchanged because relu(x) = x + relu(−x). It is computed on
    the side where the second is small: E[(z + τ₁)relu(z + τ₂)] = Φ(τ₂) + τ₁E relu(z + τ₂).
    """
    if upper is lower:
        mean, cdf, tau = upper.tail_mean, upper.tail_slope, -np.abs(upper.tau)
        return np.asarray(cdf * (1.0 - cdf) + mean * (tau - mean))
    reflect = upper.tau + lower.tau > 0
    high_tau = np.where(reflect, -lower.tau, upper.tau)
    high_mean = np.where(reflect, lower.mean - lower.tau, upper.mean)
    high_cdf = np.where(reflect, 1.0 - lower.slope, upper.slope)
    # After reflection the lower τ is ≤ 0, so that its values are those at −|τ|.
    low_mean = np.where(reflect, upper.tail_mean, lower.tail_mean)
    low_cdf = np.where(reflect, upper.tail_slope, lower.tail_slope)
    return np.asarray(low_cdf * (1.0 - high_cdf) + low_mean * (high_tau - high_mean))


@dataclass(frozen=True, eq=False, repr=False)
class HermiteSum(_Closed):
    """Σ c_k H_k."""

    coefficients: tuple[float, ...]

    @property
    def is_odd(self) -> bool:
        return not any(self.coefficients[::2])

    def __call__(self, s: FloatArray) -> FloatArray:
        return np.asarray(np.polynomial.hermite_e.hermeval(s, np.array(self.coefficients)))

    def derivative(self, s: FloatArray) -> FloatArray:
        lowered = np.polynomial.hermite_e.hermeder(np.array(self.coefficients))
        return np.asarray(np.polynomial.hermite_e.hermeval(s, lowered), dtype=np.float64)

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        degree = len(self.coefficients) - 1
        smoothed = _smoothed_hermite(degree, 1.0 - rho**2, t)
        means = np.zeros((max(order, degree) + 1, *t.shape))
        for j in range(degree + 1):
            for k in range(j, degree + 1):
                means[j] += self.coefficients[k] * math.perm(k, j) * smoothed[k - j]
        spread = np.zeros(t.shape)
        for j in range(2, degree + 1):
            spread += (rho**j * means[j]) ** 2 / math.factorial(j)
        return np.stack([*means[: order + 1], spread])


def _smoothed_hermite(degree: int, variance: FloatArray, t: FloatArray) -> list[FloatArray]:
    """E H_m(ρz + t) for m = 0 … degree: Hermite polynomials of variance 1 − ρ² at t."""
    values = [np.ones(t.shape), np.array(t)]
    for m in range(1, degree):
        values.append(t * values[m] - m * variance * values[m - 1])
    return values[: degree + 1]


@dataclass(frozen=True, eq=False, repr=False)
class Erf(_Closed):
    """erf(s); its second moment is Owen's function T."""

    @property
    def is_odd(self) -> bool:
        return True

    def __call__(self, s: FloatArray) -> FloatArray:
        return np.asarray(special.erf(s))

    def derivative(self, s: FloatArray) -> FloatArray:
        return np.asarray(2.0 / np.sqrt(np.pi) * np.exp(-s * s))

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        v = rho**2
        at = t / np.sqrt(1.0 + 2.0 * v)
        out = np.empty((order + 2, *t.shape))
        out[0] = special.erf(at)
        # erf′ is twice a normal density of variance ½
        out[1:-1] = 2.0 * _density_derivatives(order - 1, t, np.sqrt(0.5 + v))
        # E erf² = 1 − 8T(√2·at, 1/√(1+4ρ²)); its complement stays accurate where erf saturates.
        gap = special.erfc(np.abs(at))
        tail = 8.0 * special.owens_t(np.sqrt(2.0) * at, 1.0 / np.sqrt(1.0 + 4.0 * v))
        out[-1] = np.maximum(gap * (2.0 - gap) - tail - v * out[1] ** 2, 0.0)
        return out


@dataclass(frozen=True, eq=False, repr=False)
class Sine(_Closed):
    """sin(s)."""

    @property
    def is_odd(self) -> bool:
        return True

    @property
    def oscillates(self) -> bool:
        return True

    def __call__(self, s: FloatArray) -> FloatArray:
        return np.sin(s)

    def derivative(self, s: FloatArray) -> FloatArray:
        return np.cos(s)

    def _averages(self, rho: FloatArray, t: FloatArray, order: int) -> FloatArray:
        v = rho**2
        decay = np.exp(-0.5 * v)
        sine, cosine = np.sin(t), np.cos(t)
        # Var(sin) − linear part, split into squares so that small ρ does not cancel:
        # e^{−ρ²}[sin²t (cosh ρ² − 1) + cos²t (sinh ρ² − ρ²)]
        even = 0.5 * np.expm1(-v) ** 2
        odd = np.where(v < 0.3, np.exp(-v) * _sinh_minus(v), 0.5 * -np.expm1(-2 * v) - v * decay**2)
        means = [decay * (sine, cosine, -sine, -cosine)[k % 4] for k in range(order + 1)]
        return np.stack([*means, sine**2 * even + cosine**2 * odd])


def _sinh_minus(v: FloatArray) -> FloatArray:
    """sinh(v) − v for small v, by its series."""
    v2 = v * v
    return v * v2 / 6 * (1 + v2 / 20 * (1 + v2 / 42 * (1 + v2 / 72 * (1 + v2 / 110))))


def _sigmoid(s: FloatArray) -> FloatArray:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * s))


def _softplus(s: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(s, 0.0) + np.log1p(np.exp(-np.abs(s))))


def _silu_slope(s: FloatArray) -> FloatArray:
    sigmoid = _sigmoid(s)
    return sigmoid * (1.0 + s * (1.0 - sigmoid))


NAMED: dict[str, Nonlinearity] = {
    f.name: f
    for f in (
        Analytic("tanh", np.tanh, lambda s: 1.0 - np.tanh(s) ** 2, odd=True),
        Erf("erf"),
        PiecewiseLinear("relu", 0.0, 0.0, ((0.0, 1.0),)),
        PiecewiseLinear("leaky_relu", LEAKY_SLOPE, 0.0, ((0.0, 1.0 - LEAKY_SLOPE),)),
        Analytic("softplus", _softplus, _sigmoid, is_ramp=True),
        Analytic(
            "gelu",
            lambda s: s * special.ndtr(s),
            lambda s: special.ndtr(s) + s * normal_density(s),
            is_ramp=True,
        ),
        Analytic("silu", lambda s: s * _sigmoid(s), _silu_slope, is_ramp=True),
        Analytic("sigmoid", _sigmoid, lambda s: _sigmoid(s) * (1.0 - _sigmoid(s))),
        Sine("sin"),
        PiecewiseLinear("hard_tanh", 0.0, -1.0, ((-1.0, 1.0), (1.0, -1.0))),
        PiecewiseLinear("abs", -1.0, 0.0, ((0.0, 2.0),)),
        PiecewiseLinear("identity", 1.0, 0.0, ()),
    )
}


def function(
    call: Callable[[FloatArray], Any],
    *,
    derivative: Callable[[FloatArray], Any] | None = None,
    kinks: Iterable[float] = (),
    name: str | None = None,
) -> UserFunction:
    """Wrap a vectorised callable for use as an activation or a target.

    Kinks and jumps must be declared; one that was not is found and refused. Without a
    derivative, simulations use a fourth-order difference.

    >>> function(lambda s: np.maximum(s - 0.5, 0.0), kinks=(0.5,)).kinks
    (0.5,)
    """
    if not callable(call):
        raise InvalidProblem("function", "must be callable", call)
    if derivative is not None and not callable(derivative):
        raise InvalidProblem("derivative", "must be callable", derivative)
    if name is not None and not isinstance(name, str):
        raise InvalidProblem("name", "must be text", name)
    label = name or _name_of(call)
    return UserFunction(label, call, derivative, _checked_kinks(kinks), label)


def _checked_kinks(kinks: Iterable[float]) -> tuple[float, ...]:
    with readable("kinks", "must be a list of numbers", kinks):
        values = tuple(sorted(float(k) for k in kinks))
    if not all(np.isfinite(values)):
        raise InvalidProblem("kinks", "must be finite", kinks)
    return values


def resolve(spec: object, parameter: str) -> Nonlinearity:
    """The function that a name, a Hermite sum, a callable or a Nonlinearity stands for."""
    if isinstance(spec, Nonlinearity):
        return spec
    if isinstance(spec, str):
        return _from_text(spec, parameter)
    if callable(spec):
        return _from_callable(spec, parameter)
    raise InvalidProblem(
        parameter,
        "must be a name, a Hermite sum such as 'H1 + 0.5*H2', a formula in z, or a callable",
        spec,
    )


@lru_cache(maxsize=256)
def _from_text(text: str, parameter: str) -> Nonlinearity:
    name = text.strip()
    if name in NAMED:
        return NAMED[name]
    if VARIABLE.search(name):
        return from_formula(name, formula(name, NAMED, parameter), parameter)
    if name.isidentifier():
        hint = suggestion(name, NAMED)
        if hint:
            rule = f"must be one of {', '.join(NAMED)}, a Hermite sum or a formula{hint}"
            raise InvalidProblem(parameter, rule, text)
    coefficients = hermite_formula(name, parameter, tuple(NAMED))
    return HermiteSum(name, coefficients)


def from_formula(text: str, call: Formula, parameter: str) -> Nonlinearity:
    """The function of a formula in one variable: a Hermite sum if it is a polynomial."""
    polynomial = _polynomial(call)
    if polynomial is not None:
        return HermiteSum(text, polynomial)
    kinks = call.kinks({name: known.kinks for name, known in NAMED.items()})

    def value(t: FloatArray) -> FloatArray:
        return call(np.reshape(t, (-1, 1))).reshape(np.shape(t))

    return UserFunction(text, value, None, kinks, parameter)


def _polynomial(call: Formula) -> tuple[float, ...] | None:
    """Hermite coefficients of a formula in one variable if it is a polynomial, else None."""
    z, w = gauss_hermite(2 * MAX_DEGREE)
    values = call(z[:, None])
    if not np.all(np.isfinite(values)):
        return None
    basis = normalised_hermite(MAX_DEGREE, z)
    c = basis @ (w * values)
    size = np.sqrt(w @ values**2)
    c[np.abs(c) < ZERO * size] = 0.0
    missed = np.abs(values - c @ basis) * np.sqrt(w)
    if not np.any(c) or missed.max() > 10.0 * ZERO * size:
        return None
    plain = c / np.sqrt(factorials(MAX_DEGREE + 1))
    return tuple(float(v) for v in plain[: np.flatnonzero(plain)[-1] + 1])


@lru_cache(maxsize=64)
def _from_callable(call: Callable[[FloatArray], FloatArray], parameter: str) -> Nonlinearity:
    return UserFunction(_name_of(call), call, None, (), parameter)


def _name_of(call: object) -> str:
    return str(getattr(call, "__name__", "function"))
