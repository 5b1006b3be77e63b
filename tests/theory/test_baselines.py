"""Baselines against direct simulation and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurestep import Problem, baselines, predict
from featurestep.theory.baselines import linear_ridge_error, marchenko_pastur, tuned_ridge_error

BASE = Problem(
    n=600, d=300, width=450, step_exponent=0.2, ridge=0.1, noise_std=0.3, target="H1 + 0.5*H2"
)


@given(phi=st.floats(0.02, 50.0), lam=st.floats(1e-5, 100.0))
def test_marchenko_pastur_solves_its_equation(phi: float, lam: float) -> None:
    m, m_square = marchenko_pastur(phi, lam)
    assert phi * lam * m**2 + (1 - phi + lam) * m == pytest.approx(1.0, rel=1e-7)
    step = 1e-5 * lam
    slope = (marchenko_pastur(phi, lam + step)[0] - marchenko_pastur(phi, lam - step)[0]) / 2 / step
    assert m_square == pytest.approx(-slope, rel=1e-4)


@given(signal=st.floats(0.1, 3.0), rest=st.floats(0.01, 3.0), phi=st.floats(0.05, 10.0))
def test_tuned_ridge_is_the_best_ridge(signal: float, rest: float, phi: float) -> None:
    best = tuned_ridge_error(signal, rest, phi)
    around = [linear_ridge_error(signal, rest, phi, lam) for lam in np.geomspace(1e-4, 1e3, 400)]
    assert best <= min(around) * (1 + 1e-9)
    assert best == pytest.approx(min(around), rel=1e-3)


def simulate_linear(p: Problem, n: int, seed: int) -> float:
    rng = np.random.default_rng([1, seed])
    X = rng.standard_normal((n, p.d))
    y = p.sigma_star(X[:, 0]) + p.noise_std * rng.standard_normal(n)
    b = np.linalg.solve(X.T @ X / n + p.ridge * np.eye(p.d), X.T @ y / n)
    c = p.sigma_star.normalised_coefficients(1)
    rest = p.sigma_star.second_moment - c[1] ** 2 + p.noise_std**2
    return float(rest + (b[0] - c[1]) ** 2 + b[1:] @ b[1:])


@pytest.mark.parametrize("name", ["ridge_n", "ridge_all"])
def test_linear_ridge_against_simulation(name: str) -> None:
    n = BASE.n if name == "ridge_n" else BASE.n + BASE.n_step
    runs = np.array([simulate_linear(BASE, n, seed) for seed in range(60)])
    error = runs.std(ddof=1) / np.sqrt(len(runs))
    predicted = getattr(baselines(BASE), name)
    assert error < 0.01 * predicted
    assert abs(runs.mean() - predicted) < 4 * error + predicted / BASE.d


def test_identity_network_of_great_width_is_linear_ridge() -> None:
    """With σ the identity and N → ∞ the untrained network is ridge on the raw inputs, λ = N/d·λ."""
    wide = Problem(
        n=600 * 1000,
        d=300 * 1000,
        width=3 * 10**11,
        step_size=0.0,
        ridge=1e6 * 0.1,
        noise_std=0.3,
        target="H1 + 0.5*H2",
        activation="identity",
    )
    expected = baselines(BASE).ridge_n
    assert predict(wide).test_error == pytest.approx(expected, rel=1e-5)


@given(
    target=st.sampled_from(["tanh", "relu", "H1 + H2", "H1 + H3/6", "abs + 0", "sin"]),
    noise=st.floats(0.0, 1.0),
    exponent=st.floats(0.0, 0.45),
    readout=st.sampled_from(["gaussian", "rademacher", "constant"]),
)
def test_order_of_the_floors(target: str, noise: float, exponent: float, readout: str) -> None:
    target = target.removesuffix(" + 0")
    problem = BASE.replace(target=target, noise_std=noise, step_exponent=exponent, readout=readout)
    found = baselines(problem)
    assert found.noise_floor <= found.best_given_direction_and_linear + 1e-12
    assert found.best_given_direction_and_linear <= found.best_given_direction + 1e-12
    assert found.best_given_direction_and_linear <= predict(problem).test_error
    assert found.best_affine <= found.best_linear <= found.ridge_all_tuned
    assert found.ridge_all_tuned <= found.ridge_n_tuned <= found.ridge_n * (1 + 1e-12)


def test_best_given_direction_against_monte_carlo() -> None:
    """Var of y left by its mean given κ, from binned samples of a fixed direction."""
    found = baselines(BASE)
    gamma = predict(BASE).alignment
    rng = np.random.default_rng(0)
    kappa, s = rng.standard_normal((2, 2_000_000))
    y = BASE.sigma_star(gamma * kappa + np.sqrt(1 - gamma**2) * s)
    bins = np.digitize(kappa, np.quantile(kappa, np.linspace(0, 1, 2001)[1:-1]))
    means = np.bincount(bins, y) / np.bincount(bins)
    left = np.mean((y - means[bins]) ** 2) + BASE.noise_std**2
    assert found.best_given_direction == pytest.approx(left, rel=5e-3)


def test_untrained_is_step_zero() -> None:
    assert baselines(BASE).untrained == predict(BASE.replace(step_size=0.0)).test_error


def test_every_number_is_described() -> None:
    found = baselines(BASE)
    assert set(found.as_dict()) == {*found.MEANINGS, "notes"}
