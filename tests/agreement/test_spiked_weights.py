"""Equations (1)–(4) against one real gradient step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featurestep import Problem
from featurestep.core.spiked import spiked_weights
from featurestep.functions.nonlinearity import coefficients, gaussian_panels

CASES: dict[str, dict[str, Any]] = {
    "tanh, labels": {"readout": "rademacher"},
    "tanh, full": {"readout": "rademacher", "residual": "full"},
    "relu, labels": {"activation": "relu", "centre": True, "target": "H1 + H2/sqrt(2)"},
    "relu, full": {
        "activation": "relu",
        "centre": True,
        "target": "H1 + H2/sqrt(2)",
        "residual": "full",
    },
    "softplus, E r ≠ 0": {"activation": "softplus", "target": "relu", "centre": True},
}


def one_step(p: Problem, rng: np.random.Generator) -> dict[str, float]:
    """The step's scalars, measured: shifts and norms by regression on g and g²."""
    W0 = rng.standard_normal((p.width, p.d))
    W0 /= np.linalg.norm(W0, axis=1, keepdims=True)
    g = p.law.sample(rng, p.width)
    a = g / np.sqrt(p.width)
    X = rng.standard_normal((p.n_step, p.d))
    y = p.sigma_star(X[:, 0]) + p.noise_std * rng.standard_normal(p.n_step)
    Z = X @ W0.T
    r = y - (p.sigma(Z) @ a if p.residual == "full" else 0.0)
    G = ((r[:, None] * p.sigma.derivative(Z)) * a).T @ X / p.n_step
    beta = X.T @ r / p.n_step
    norm = float(np.linalg.norm(beta))
    along = p.step_size * G @ beta / norm
    W = W0 + p.step_size * G

    def beside(M: np.ndarray) -> np.ndarray:
        return np.sum(M**2, axis=1) - (M @ beta / norm) ** 2

    design = np.stack([g, g**2], axis=1)
    drift, growth = np.linalg.lstsq(design, beside(W) - beside(W0), rcond=None)[0]
    return {
        "beta_norm": norm,
        "alignment": float(beta[0]) / norm,
        "unit_shift": float(along @ g / (g @ g)),
        "first": float(drift),
        "second": float(growth),
    }


def own_output(p: Problem) -> float:
    """A neuron's own output in the residual: −2η a_j²(E[σσ′z] − c_1²), below the order of (4)."""
    z, w = gaussian_panels(p.sigma)
    product = float(w @ (p.sigma(z) * p.sigma.derivative(z) * z))
    return -2.0 * p.step_size / p.width * (product - float(coefficients(p.sigma, 1)[1]) ** 2)


@pytest.mark.parametrize("case", CASES)
def test_step_scalars(case: str) -> None:
    problem = Problem(
        n=1000, d=500, width=600, step_exponent=0.35, ridge=0.1, noise_std=0.3, **CASES[case]
    )
    weights = spiked_weights(problem)
    runs = [one_step(problem, np.random.default_rng([3, i])) for i in range(12)]
    expected = {
        "beta_norm": weights.beta_norm,
        "alignment": weights.alignment,
        "unit_shift": weights.unit_shift,
        "first": 2.0 * weights.unit_drift,
        "second": weights.unit_drift**2 + weights.unit_growth,
    }
    if problem.residual == "full":
        expected["second"] += own_output(problem)
    # Corrections of relative order 1/n_step and 1/d, beyond the theory's order.
    allowance = 3.0 / problem.d
    if problem.law.name == "rademacher":  # g² = 1: only the sum of both orders is seen
        for values in (*runs, expected):
            values["second"] += values.pop("first") * problem.law.mean
    for name, value in expected.items():
        sample = np.array([run[name] for run in runs])
        error = sample.std(ddof=1) / np.sqrt(len(sample))
        gap = abs(sample.mean() - value)
        size = abs(value) + abs(expected["unit_shift"]) * float(name == "first")
        assert gap < 4 * error + allowance * size, (name, sample.mean(), value, error)


def test_shift_scale_is_the_one_of_the_gradient() -> None:
    problem = Problem(n=100, d=50, width=64, step_size=2.0, ridge=1.0, readout="constant")
    weights = spiked_weights(problem)
    c_1 = coefficients(problem.sigma, 1)[1]
    assert weights.shift(np.ones(1)) == pytest.approx(c_1 * 2.0 * weights.beta_norm / 8.0)
