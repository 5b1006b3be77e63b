"""The papers' procedure as a plain NumPy script: one point at a time, nothing shared."""

from __future__ import annotations

import numpy as np


def point(
    *, n: int, d: int, width: int, n_test: int, eta: float, ridge: float, noise: float, seed: int
) -> tuple[float, float]:
    """Test error and training loss of a tanh network after one step, for one draw."""
    rng = np.random.default_rng(seed)
    beta = rng.standard_normal(d)
    beta /= np.linalg.norm(beta)
    W0 = rng.standard_normal((width, d))
    W0 /= np.linalg.norm(W0, axis=1, keepdims=True)
    a = rng.standard_normal(width) / np.sqrt(width)

    X_step = rng.standard_normal((n, d))
    y_step = np.tanh(X_step @ beta) + noise * rng.standard_normal(n)
    slope_moments = 1.0 - np.tanh(W0 @ X_step.T) ** 2
    G = (np.outer(a, y_step) * slope_moments) @ X_step / n
    W = W0 + eta * G

    X = rng.standard_normal((n, d))
    y = np.tanh(X @ beta) + noise * rng.standard_normal(n)
    F = np.tanh(X @ W.T)
    a_hat = np.linalg.solve(F.T @ F + ridge * n * np.eye(width), F.T @ y)

    X_test = rng.standard_normal((n_test, d))
    y_test = np.tanh(X_test @ beta) + noise * rng.standard_normal(n_test)
    test_error = np.mean((y_test - np.tanh(X_test @ W.T) @ a_hat) ** 2)
    train_loss = np.mean((y - F @ a_hat) ** 2) + ridge * np.sum(a_hat**2)
    return float(test_error), float(train_loss)
