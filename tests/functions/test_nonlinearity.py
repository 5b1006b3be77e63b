"""Gaussian moments and Hermite coefficients of every kind of function."""

from __future__ import annotations

import itertools
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special

from featurestep import InaccurateQuadrature, InvalidProblem, function
from featurestep.functions.activations import NAMED, resolve
from featurestep.functions.nonlinearity import (
    Nonlinearity,
    Sampled,
    UserFunction,
    coefficients,
    innermost,
    normalised_coefficients,
)
from featurestep.functions.quadrature import gauss_hermite, normal_density, panels

FORMULAS = ("H1 + 0.3*H3", "(H1 + H2)/sqrt(2)", "H1 + H2/2 - 0.2*H4")
EVERY = [*NAMED, *FORMULAS]


def adaptive(f: Nonlinearity, weight: object, rho: float, t: float) -> float:
    """E[weight(z) f(ρz + t)] by adaptive quadrature split at the kinks."""
    points = sorted({-12.0, 12.0, -t / rho, *((k - t) / rho for k in f.kinks)})
    points = [x for x in points if -12.0 <= x <= 12.0]

    def integrand(z: float) -> float:
        value = float(f(np.array([rho * z + t]))[0])
        return float(weight(z)) * value * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)

    total = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", integrate.IntegrationWarning)  # rounding level reached
        for low, high in itertools.pairwise(points):
            total += integrate.quad(integrand, low, high, epsabs=1e-14, epsrel=1e-13, limit=400)[0]
    return total


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(("rho", "t"), [(1.0, 0.0), (1.07, 0.8), (0.4, -1.9), (3.3, 2.5)])
def test_moments_against_adaptive_quadrature(name: str, rho: float, t: float) -> None:
    f = resolve(name, "activation")
    mean, slope, spread = (float(m[0]) for m in f.moments(np.array([rho]), np.array([t])))
    scale = max(1.0, np.sqrt(mean**2 + rho**2 * slope**2 + spread))
    assert mean == pytest.approx(adaptive(f, lambda z: 1.0, rho, t), abs=1e-12 * scale)
    assert slope == pytest.approx(adaptive(f, lambda z: z, rho, t) / rho, abs=1e-12 * scale / rho)
    square = UserFunction("square", lambda s: f(s) ** 2, None, f.kinks)
    second = adaptive(square, lambda z: 1.0, rho, t)
    assert mean**2 + rho**2 * slope**2 + spread == pytest.approx(second, abs=1e-12 * scale**2)


@cache
def by_panels(name: str) -> UserFunction:
    """A function of ours as if a user had brought it."""
    f = resolve(name, "activation")
    return UserFunction(name, f.__call__, None, f.kinks)


@pytest.mark.parametrize("name", [n for n in EVERY if n != "sin"])
@given(
    rho=st.floats(0.05, 60.0),
    t=st.floats(-400.0, 400.0),
)
def test_moments_against_panels_far_out(name: str, rho: float, t: float) -> None:
    f = resolve(name, "activation")
    ours = f.moments(np.array([rho]), np.array([t]))
    theirs = by_panels(name).moments(np.array([rho]), np.array([t]))
    scale = np.sqrt(1.0 + ours.mean**2 + rho**2 * ours.slope**2 + ours.spread)
    assert np.abs(ours.mean - theirs.mean) <= 1e-12 * scale
    assert np.abs(ours.slope - theirs.slope) * rho <= 1e-12 * scale
    assert np.abs(ours.spread - theirs.spread) <= 1e-12 * scale**2


@pytest.mark.parametrize("name", EVERY)
def test_coefficients_against_adaptive_quadrature(name: str) -> None:
    f = resolve(name, "activation")
    c = coefficients(f, 8)
    for k in range(9):
        h = special.hermitenorm(k)
        direct = adaptive(f, h, 1.0, 0.0) / special.factorial(k)
        assert c[k] == pytest.approx(direct, abs=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_odd_functions_say_so(name: str) -> None:
    f, s = resolve(name, "activation"), np.linspace(0.01, 9.0, 400)
    assert f.is_odd == bool(np.allclose(f(s), -f(-s), rtol=1e-12))
    if f.is_odd:
        assert f.centred() is f


@pytest.mark.parametrize("name", EVERY)
def test_coefficients_sum_to_the_second_moment(name: str) -> None:
    """Σ k!c_k² = Eσ², from below, up to the slow tail of kinked functions."""
    f = resolve(name, "activation")
    total = float(np.sum(normalised_coefficients(f, 60) ** 2))
    assert total <= f.second_moment * (1 + 1e-12)
    assert total == pytest.approx(f.second_moment, rel=2e-3 if f.kinks else 1e-7)


def kinked(s: np.ndarray) -> np.ndarray:
    return np.where(s > 0.7, 1.0 / (1.0 + s * s), np.abs(s) + np.exp(-s * s))


WITH_DERIVATIVES = {
    **NAMED,
    **{formula: resolve(formula, "activation") for formula in FORMULAS},
    "kinked": function(kinked, kinks=(0.0, 0.7)),
    "centred softplus": NAMED["softplus"].centred(),
    "centred kinked": function(kinked, kinks=(0.0, 0.7)).centred(),
}
every_with_derivatives = pytest.mark.parametrize(
    "f", WITH_DERIVATIVES.values(), ids=list(WITH_DERIVATIVES)
)


def brute_derivative_means(f: Nonlinearity, rho: float, t: float) -> tuple[np.ndarray, float]:
    """E[f(ρz + t)H_k(z)]/ρ^k for k = 0 … 4 by fine panels split at the kinks, and √E f²."""
    cuts = (np.concatenate([np.linspace(-14.0, 14.0, 113), f.kinks]) - t) / rho
    edges = np.concatenate([np.linspace(-14.0, 14.0, 113), cuts[np.abs(cuts) < 14.0]])
    z, w = panels(np.unique(edges), 20)
    w = w * normal_density(z)
    values = f(rho * z + t)
    centre = f(np.array([t]))[0]  # changes only k = 0, and spares the others rounding
    rows = [w @ (special.hermitenorm(k)(z) * (values - centre)) / rho**k for k in range(5)]
    rows[0] += centre
    return np.array(rows), float(np.sqrt(w @ values**2))


@every_with_derivatives
@pytest.mark.parametrize("rho", [0.05, 0.3, 0.5, 1.07, 3.3, 5.9, 20.0])
def test_derivative_means_against_fine_panels(f: Nonlinearity, rho: float) -> None:
    t = np.array([-60.0, -20.0, -1.9, 0.0, 0.8, 15.0, 60.0])
    ours = f.derivative_means(np.array([rho]), t, 4)
    for i, place in enumerate(t):
        brute, size = brute_derivative_means(f, rho, place)
        assert ours[:, i] == pytest.approx(brute, rel=0, abs=1e-10 * max(1.0, size))


@every_with_derivatives
@pytest.mark.parametrize("rho", [0.05, 0.5, 1.07, 3.3, 20.0])
def test_the_growth_of_the_square_against_fine_panels(f: Nonlinearity, rho: float) -> None:
    """ρ²∂/∂ρ² of E f(ρz + t)² is E[f(ρz + t)²H_2(z)]/2; closed forms use a difference quotient."""
    accuracy = 1e-10 if isinstance(innermost(f), Sampled) else 1e-6
    t = np.array([-20.0, -1.9, 0.0, 0.8, 15.0])
    averages, growth = f.averages_with_growth(np.array([rho]), t, 5)
    assert averages[:-1] == pytest.approx(f.derivative_means(np.array([rho]), t, 5), rel=1e-12)
    for i, place in enumerate(t):
        cuts = (np.array(f.kinks) - place) / rho
        edges = np.concatenate([np.linspace(-14.0, 14.0, 113), cuts[np.abs(cuts) < 14.0]])
        z, w = panels(np.unique(edges), 20)
        square = f(rho * z + place) ** 2 * w * normal_density(z)
        own = 0.5 * (square * (z**2 - 1.0)).sum()
        assert growth[i] == pytest.approx(own, rel=0, abs=accuracy * max(1.0, square.sum()))


@every_with_derivatives
def test_derivative_means_begin_with_the_moments(f: Nonlinearity) -> None:
    rho = np.array([0.05, 0.5, 1.0, 7.0])[:, None]
    t = np.array([-60.0, -0.3, 0.0, 2.5, 60.0])
    mean, slope, spread = f.moments(rho, t)
    size = np.sqrt(1.0 + mean**2 + rho**2 * slope**2 + spread)
    for order in (0, 1, 4):
        rows = f.derivative_means(rho, t, order)
        assert rows.shape == (order + 1, 4, 5)
        assert np.all(np.abs(rows[0] - mean) <= 1e-11 * size)
        assert np.all(np.abs(rows[1:2] - slope) * rho <= 1e-11 * size)


@every_with_derivatives
def test_derivative_means_are_derivatives_of_each_other(f: Nonlinearity) -> None:
    """d/dt of row k is row k + 1, and d/d(ρ²) is half of row k + 2."""
    rho = np.array([0.6, 1.0, 2.7, 7.0])[:, None]
    t = np.array([-30.0, -1.9, 0.0, 0.8, 5.0])
    step = 1e-4
    rows = f.derivative_means(rho, t, 6)
    size = np.maximum(1.0, np.abs(rows).max(axis=0))
    along_t = f.derivative_means(rho, t + step, 5) - f.derivative_means(rho, t - step, 5)
    assert np.all(np.abs(along_t / (2 * step) - rows[1:]) <= 1e-6 * size)
    above, below = np.sqrt(rho**2 + step), np.sqrt(rho**2 - step)
    along_variance = f.derivative_means(above, t, 4) - f.derivative_means(below, t, 4)
    assert np.all(np.abs(along_variance / (2 * step) - 0.5 * rows[2:]) <= 1e-6 * size)


@pytest.mark.parametrize("formula", FORMULAS)
@given(rho=st.floats(1e-6, 20.0), t=st.floats(-60.0, 60.0))
def test_derivative_means_of_polynomials_are_exact(formula: str, rho: float, t: float) -> None:
    f = resolve(formula, "activation")
    ours = f.derivative_means(np.array(rho), np.array(t), 6)
    z, w = gauss_hermite(8)
    c = coefficients(f, 6)
    for k in range(7):
        derived = np.polynomial.hermite_e.hermeder(c, k)
        values = np.polynomial.hermite_e.hermeval(rho * z + t, derived)
        # Where the derivative is 0, the reference is not: its terms cancel to rounding.
        rounding = 1e-15 * np.polynomial.polynomial.polyval(1.0 + abs(t) + rho, np.abs(derived))
        close = max(1e-12 * (w @ np.abs(values)), rounding)
        assert ours[k] == pytest.approx(w @ values, rel=1e-12, abs=close)


@every_with_derivatives
def test_derivative_means_stay_finite_at_the_smallest_rho(f: Nonlinearity) -> None:
    rows = f.derivative_means(np.array([1e-6, 1e-3])[:, None], np.array([-60.0, 0.0, 0.7, 60.0]), 4)
    assert np.all(np.isfinite(rows))


def test_known_coefficients() -> None:
    root = np.sqrt(2 * np.pi)
    relu = coefficients(resolve("relu", "activation"), 6)
    exact = [1 / root, 0.5, 1 / (2 * root), 0.0, -1 / (24 * root), 0.0, 1 / (240 * root)]
    assert relu == pytest.approx(exact, abs=1e-15)
    sine = coefficients(resolve("sin", "activation"), 5)
    assert sine[[1, 3, 5]] == pytest.approx(np.exp(-0.5) * np.array([1, -1 / 6, 1 / 120]))
    erf = coefficients(resolve("erf", "activation"), 3)
    assert erf[1] == pytest.approx(2 / np.sqrt(3 * np.pi), rel=1e-13)
    assert coefficients(resolve("H1 + 0.3*H3", "activation"), 4) == pytest.approx([0, 1, 0, 0.3, 0])


@pytest.mark.parametrize("name", EVERY)
def test_derivative_integrates_to_the_slope(name: str) -> None:
    f = resolve(name, "activation")
    assert f.mean_slope == pytest.approx(coefficients(f, 1)[1], abs=1e-11)
    x = np.array([-2.3, -0.4, 0.31, 1.7])
    step = 1e-6
    assert f.derivative(x) == pytest.approx((f(x + step) - f(x - step)) / (2 * step), abs=1e-8)


@pytest.mark.parametrize("name", ["relu", "softplus", "sigmoid", "abs", "H1 + H2"])
def test_centring_removes_the_mean_and_nothing_else(name: str) -> None:
    f = resolve(name, "activation")
    centred = f.centred()
    c, plain = coefficients(centred, 5), coefficients(f, 5)
    assert c[0] == 0.0
    assert c[1:] == pytest.approx(plain[1:])
    assert centred.second_moment == pytest.approx(f.second_moment - plain[0] ** 2)


def test_smooth_callable_reaches_its_accuracy() -> None:
    f = function(lambda s: np.tanh(50.0 * s) + 0.1 * s**2, name="steep")
    c = coefficients(f, 3)
    for k in range(4):
        direct = adaptive(f, special.hermitenorm(k), 1.0, 0.0) / special.factorial(k)
        assert c[k] == pytest.approx(direct, abs=1e-8)


def test_callable_with_declared_kinks_equals_the_closed_form() -> None:
    f = function(lambda s: np.clip(s, -1.0, 1.0), kinks=(-1.0, 1.0))
    rho, t = np.array([0.3, 1.0, 7.0]), np.array([0.9, 0.0, -30.0])
    for ours, exact in zip(f.moments(rho, t), NAMED["hard_tanh"].moments(rho, t), strict=True):
        assert ours == pytest.approx(exact, abs=1e-12)


@given(place=st.floats(-3.0, 3.0), size=st.floats(1e-7, 10.0))
def test_no_kink_is_missed_silently(place: float, size: float) -> None:
    """An undeclared kink is refused, unless it is so slight that panels resolve it anyway."""

    def bent(s: np.ndarray) -> np.ndarray:
        return np.tanh(s) + size * np.maximum(s - place, 0.0)

    if size >= 0.1:
        with pytest.raises(InaccurateQuadrature, match="near s ="):
            function(bent)
        return
    try:
        undeclared = function(bent)
    except InaccurateQuadrature:
        return
    declared = function(bent, kinks=(place,))
    assert coefficients(undeclared, 6) == pytest.approx(coefficients(declared, 6), abs=1e-10)


@given(place=st.floats(-3.0, 3.0))
def test_no_jump_is_missed_silently(place: float) -> None:
    with pytest.raises(InaccurateQuadrature, match="kink or jump"):
        function(lambda s: np.where(s > place, 1.0, np.sin(s)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: float(s.sum()), "vectorised"),
        (lambda s: np.exp(s * s), "second moment"),
        (lambda s: np.where(np.abs(s) < 1, np.nan, s), "finite"),
        (lambda s: s + 1j, "real"),
        (lambda s: np.sin(1e5 * s), "vary slowly enough"),
    ],
)
def test_unusable_callables_are_refused(call: object, words: str) -> None:
    with pytest.raises(InaccurateQuadrature, match=words):
        function(call)  # type: ignore[arg-type]


def test_missing_derivative_is_a_difference_that_respects_kinks() -> None:
    f = function(lambda s: np.maximum(s - 0.5, 0.0) ** 2 + np.abs(s), kinks=(0.0, 0.5))
    x = np.array([-1.0, -1e-5, 1e-5, 0.4999, 0.5001, 2.0])
    exact = np.sign(x) + 2 * np.maximum(x - 0.5, 0.0)
    assert f.derivative(x) == pytest.approx(exact, abs=1e-8)


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InvalidProblem, match="tanh, erf"):
        resolve("swish", "activation")
