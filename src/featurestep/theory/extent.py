"""How far a spectrum reaches, roughly and at once: the untrained bulk's edge, the first spike."""

from __future__ import annotations

import math

import numpy as np

from ..functions.hermite import coefficients
from ..functions.quadrature import gauss_hermite, gauss_law
from ..problem import Problem
from ..spiked import spiked_weights
from ..types import FloatArray
from .resolution import finite_groups

_ANGLES = 200  # of the Marchenko–Pastur law


def untrained_edge(problem: Problem) -> float:
    """Upper edge of the untrained features' singular values, F0/√n, as n → ∞.

    Given W0 the rows of F0 have covariance c_1² W0W0ᵀ + c_{>1}², whose law is Marchenko and
    Pastur's: the edge is where the inverse of the Stieltjes transform has its minimum.
    """
    c = coefficients(problem.sigma, 1)
    linear = float(c[1]) ** 2
    rest = max(problem.sigma.second_moment - float(c[0]) ** 2 - linear, 0.0)
    population, share = _covariance(problem.width / problem.d, linear, rest)
    m = -1.0 / (1.0 + np.exp(-np.linspace(-9.0, 9.0, 361))) / population.max()
    sums = (share * population / (1.0 + population * m[:, None])).sum(axis=1)
    return float(np.sqrt(np.min(-1.0 / m + problem.width / problem.n * sums)))


def _covariance(ratio: float, linear: float, rest: float) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of c_1² W0W0ᵀ + c_{>1}² and their shares; `ratio` is N/d."""
    angle = (np.arange(_ANGLES) + 0.5) * np.pi / _ANGLES
    x = 1.0 + ratio + 2.0 * math.sqrt(ratio) * np.cos(angle)
    share = np.sin(angle) ** 2 / x
    nothing = max(0.0, 1.0 - 1.0 / ratio)  # of the eigenvalues are 0
    share *= (1.0 - nothing) / share.sum()
    return np.append(linear * x, 0.0) + rest, np.append(share, nothing)


def largest_mean(problem: Problem) -> float:
    """Largest singular value of the features' mean given κ, E[F|κ]/√n: about the first spike's."""
    weights = spiked_weights(problem)
    g, share = finite_groups(problem) or gauss_law(problem.law.name, 15)
    kappa, weight = gauss_hermite(60)
    mean = problem.sigma.moments(weights.norm(g), weights.shift(g) * kappa[:, None])[0]  # (Q, K)
    scaled = np.sqrt(weight)[:, None] * mean * np.sqrt(share * problem.width)
    return float(np.linalg.norm(scaled, 2))
