"""Planted single-index data of the theory's own kind."""

from __future__ import annotations

import numpy as np

from featurestep import Problem

# E y² = 1, noise included: the estimators bring labels to variance 1 anyway.
PROBLEM = Problem(
    activation="relu",
    target="0.7*H1 + 0.4*H2",
    noise_std=(1.0 - 0.49 - 0.32) ** 0.5,
    n=1000,
    n_step=1000,
    d=200,
    width=600,
    step_size=12.0,
    ridge=0.05,
    centre=True,
)


def planted(seed, n, problem=PROBLEM):
    """Rows, labels and the direction."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, problem.d))
    direction = rng.standard_normal(problem.d)
    direction /= np.linalg.norm(direction)
    y = problem.sigma_star(X @ direction) + problem.noise_std * rng.standard_normal(n)
    return X, y, direction
