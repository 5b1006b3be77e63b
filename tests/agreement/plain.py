"""The papers' procedure in a page of NumPy: no reuse, no shortcut, nothing from the theory.

Only the functions σ, σ⋆ and the readout law are shared with the package.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featurestep import Problem

OBSERVED = ("test_error", "train_loss", "train_mse", "readout_norm")


@dataclass(frozen=True)
class Simulated:
    """Observations of independent repetitions, one column each."""

    problem: Problem
    runs: np.ndarray  # (seeds, observables)

    @property
    def mean(self) -> np.ndarray:
        return self.runs.mean(axis=0)

    @property
    def standard_error(self) -> np.ndarray:
        return self.runs.std(axis=0, ddof=1) / np.sqrt(len(self.runs))


def run_once(p: Problem, rng: np.random.Generator, n_test: int = 4000) -> list[float]:
    """One network: draw, step, refit, test."""
    W0 = rng.standard_normal((p.width, p.d))
    W0 /= np.linalg.norm(W0, axis=1, keepdims=True)
    a = p.law.sample(rng, p.width) / np.sqrt(p.width)
    beta_star = np.zeros(p.d)
    beta_star[0] = 1.0

    def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.standard_normal((n, p.d))
        return X, p.sigma_star(X @ beta_star) + p.noise_std * rng.standard_normal(n)

    X_step, y_step = sample(p.n_step)
    Z = X_step @ W0.T
    r = y_step - (p.sigma(Z) @ a if p.residual == "full" else 0.0)
    G = ((r[:, None] * p.sigma.derivative(Z)) * a).T @ X_step / p.n_step
    W = W0 + p.step_size * G

    X, y = sample(p.n)
    F = p.sigma(X @ W.T)
    lam = p.ridge * p.n
    if p.n < p.width:
        a_hat = F.T @ np.linalg.solve(F @ F.T + lam * np.eye(p.n), y)
    else:
        a_hat = np.linalg.solve(F.T @ F + lam * np.eye(p.width), F.T @ y)
    mse = float(np.mean((y - F @ a_hat) ** 2))
    X_test = rng.standard_normal((n_test, p.d))
    clean = p.sigma_star(X_test @ beta_star)
    error = float(np.mean((clean - p.sigma(X_test @ W.T) @ a_hat) ** 2)) + p.noise_std**2
    norm = float(np.linalg.norm(a_hat))
    return [error, mse + p.ridge * norm**2, mse, norm]


def simulate_plainly(p: Problem, *, seeds: int, entropy: int) -> Simulated:
    """Independent repetitions from one entropy."""
    children = np.random.SeedSequence(entropy).spawn(seeds)
    return Simulated(p, np.array([run_once(p, np.random.default_rng(c)) for c in children]))
