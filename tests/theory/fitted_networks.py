"""Real networks fitted with any loss, in plain NumPy: what section 31 is compared with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy import optimize

from featurestep import Problem


def draw(problem: Problem, seed: int, n_test: int = 8000) -> dict[str, float]:
    """Losses and errors of one network, after its step and the fit of its readout."""
    rng = np.random.default_rng(seed)
    n, d, width = problem.n, problem.d, problem.width
    target = rng.standard_normal(d)
    target /= np.linalg.norm(target)

    def sample(count):
        x = rng.standard_normal((count, d))
        y = problem.sigma_star(x @ target) + problem.noise_std * rng.standard_normal(count)
        if problem.is_binary:
            y = np.where(y >= 0.0, 1.0, -1.0)
            y = np.where(rng.random(count) < problem.flip, -y, y)
        return x, y

    weights = rng.standard_normal((width, d)) / np.sqrt(d)
    if problem.initial == "sphere":
        weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    law = problem.law
    start = rng.choice(law.values, p=law.probabilities, size=width) / np.sqrt(width)
    x, y = sample(problem.n_step)
    slopes = problem.sigma.derivative(x @ weights.T)
    weights = weights + problem.step_size / problem.n_step * (slopes * y[:, None] * start).T @ x
    x, y = sample(n)
    features = problem.sigma(x @ weights.T)
    a, b = fit(features, y, problem.loss, problem.ridge, intercept=problem.intercept)
    x_test, y_test = sample(n_test)
    train, test = features @ a + b, problem.sigma(x_test @ weights.T) @ a + b
    return {
        "test_loss": float(loss(y_test, test, problem.loss).mean()),
        "train_loss": float(loss(y, train, problem.loss).mean()),
        "test_error": float(error(y_test, test, problem).mean()),
        "train_error": float(error(y, train, problem).mean()),
        "readout_norm": float(np.linalg.norm(a)),
        "intercept": float(b),
    }


def loss(y, f, name):
    if name in ("square", "square_signs"):
        return 0.5 * (y - f) ** 2
    if name == "huber":
        u = np.abs(y - f)
        return np.where(u <= 1.0, 0.5 * u**2, u - 0.5)
    if name == "logistic":
        return np.logaddexp(0.0, -y * f)
    gap = np.maximum(1.0 - y * f, 0.0)
    return gap if name == "hinge" else 0.5 * gap**2


def error(y, f, problem):
    return (y * f < 0.0).astype(float) if problem.is_binary else (y - f) ** 2


def fit(features, y, name, ridge, *, intercept):
    """The minimum of (1/n)Σℓ + (λ/2)‖a‖²: Newton's method, for the hinge its dual."""
    if name == "hinge":
        assert not intercept
        return _hinge(features, y, ridge), 0.0
    n, width = features.shape
    columns = np.column_stack([features, np.ones(n)]) if intercept else features
    penalty = np.full(columns.shape[1], ridge)
    penalty[width:] = 0.0
    a = np.zeros(columns.shape[1])

    def objective(a):
        return loss(y, columns @ a, name).mean() + 0.5 * penalty @ a**2

    for _ in range(100):
        f = columns @ a
        slope, bend = _derivatives(y, f, name)
        gradient = columns.T @ slope / n + penalty * a
        if np.abs(gradient).max() < 1e-10:
            break
        curvature = (columns * bend[:, None]).T @ columns / n + np.diag(penalty + 1e-12)
        move = np.linalg.solve(curvature, gradient)
        size, now = 1.0, objective(a)
        while objective(a - size * move) > now - 1e-4 * size * gradient @ move and size > 1e-8:
            size *= 0.5
        a = a - size * move
    return a[:width], float(a[width]) if intercept else 0.0


def _derivatives(y, f, name):
    if name == "square":
        return f - y, np.ones_like(f)
    if name == "huber":
        return np.clip(f - y, -1.0, 1.0), (np.abs(f - y) <= 1.0).astype(float)
    if name == "logistic":
        e = 1.0 / (1.0 + np.exp(y * f))
        return -y * e, e * (1.0 - e)
    gap = 1.0 - y * f
    return -y * np.maximum(gap, 0.0), (gap > 0.0).astype(float)


def _hinge(features, y, ridge):
    """By its dual, max Σα − ‖Σ α y F‖²/2λn over 0 ≤ α ≤ 1."""
    n = len(y)
    signed = features * y[:, None]
    gram = signed @ signed.T / (ridge * n)

    def dual(alpha):
        pulled = gram @ alpha
        return 0.5 * alpha @ pulled - alpha.sum(), pulled - 1.0

    found = optimize.minimize(
        dual,
        np.full(n, 0.5),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * n,
        options={"maxiter": 3000, "ftol": 1e-12, "gtol": 1e-6},
    )
    return signed.T @ found.x / (ridge * n)


SIZES = {"n": 600, "d": 300, "width": 450, "n_step": 1200, "step_size": 17.0}
PROBLEMS = {
    "logistic": Problem(
        **SIZES,
        activation="tanh",
        target="H0/2 + H1",
        noise_std=0.3,
        ridge=0.02,
        readout="rademacher",
        loss="logistic",
        intercept=True,
        flip=0.05,
    ),
    "squared hinge": Problem(
        **SIZES,
        activation="relu",
        centre=True,
        target="H1",
        noise_std=0.5,
        ridge=0.1,
        readout="constant",
        loss="squared_hinge",
    ),
    "hinge": Problem(
        **SIZES,
        activation="erf",
        target="tanh",
        noise_std=0.3,
        ridge=0.05,
        readout="constant",
        loss="hinge",
    ),
    "huber": Problem(
        **SIZES,
        activation="gelu",
        target="H1 + H2/2",
        noise_std=0.5,
        ridge=0.05,
        readout="rademacher",
        loss="huber",
        intercept=True,
        initial="gaussian",
    ),
}
RECORD = Path(__file__).with_name("fitted_networks.json")


def record(seeds: int) -> None:
    """Simulate every problem so many times, and write down means and standard errors."""
    found = {}
    for name, problem in PROBLEMS.items():
        draws = [draw(problem, seed) for seed in range(seeds)]
        table = {key: np.array([each[key] for each in draws]) for key in draws[0]}
        found[name] = {
            "seeds": seeds,
            "mean": {key: float(values.mean()) for key, values in table.items()},
            "standard_error": {
                key: float(values.std(ddof=1) / seeds**0.5) for key, values in table.items()
            },
            "first": draws[0],
        }
        RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":  # python -m tests.theory.fitted_networks
    record(150)
