"""The untrained network by one scalar equation: m_1, m_2, their λ-derivatives, and its edge.

(m_1, m_2) = (N/n)(tr R, tr(RXXᵀ)/d) with R = (F0F0ᵀ + λn)⁻¹. A road of its own to step 0,
independent of the engine, and what the published closed forms are written in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..core.errors import NotConverged
from ..core.problem import Problem
from ..core.types import FloatArray
from ..functions.hermite import coefficients
from ..functions.roots import root_between

_ANGLES = 200  # of the Marchenko–Pastur law


@dataclass(frozen=True)
class Traces:
    """m_1, m_2 and their derivatives in λ."""

    m1: float
    m2: float
    dm1: float
    dm2: float


def traces(problem: Problem) -> Traces:
    """Solve the scalar equation of section 3 and differentiate it implicitly."""
    ratio = problem.width / problem.n
    return _traces(*_powers(problem), ratio, problem.phi, problem.ridge)


def _powers(problem: Problem) -> tuple[float, float]:
    """c_1² and c_{>1}², of the features' linear part and of what is beyond it."""
    sigma = problem.sigma
    c = coefficients(sigma, 1)
    linear = float(c[1]) ** 2
    beyond = max(sigma.second_moment - float(c[0]) ** 2 - linear, 0.0)
    return linear, beyond if sigma.slope_variance else 0.0


def _traces(linear: float, rest: float, ratio: float, phi: float, lam: float) -> Traces:
    """`linear` = c_1², `rest` = c_{>1}², `ratio` = N/n."""

    def parts(log: float) -> tuple[float, float, float, float]:
        """δ, t_1, t_2 and B; the unknown is δ for N ≤ n and λt_1 for N > n, so nothing cancels."""
        if ratio > 1.0:
            share = float(np.exp(log))  # λ t_1
            delta, t1 = (1.0 - share) / (ratio - 1.0 + share), share / lam
        else:
            delta = float(np.exp(log))
            t1 = (1.0 - ratio * delta / (1.0 + delta)) / lam
        b = ratio * linear / ((1.0 + delta) * phi)
        return delta, t1, t1 / (1.0 + b * t1), b

    def gap(log: float) -> float:
        """Increasing in log for N > n, decreasing for N ≤ n."""
        delta, t1, t2, _ = parts(log)
        return float(np.log(linear * t2 + rest * t1) - np.log(delta))

    high = -1e-15 if ratio > 1.0 else float(np.log((linear + rest) / lam))
    low = high - 1.0
    while gap(low) * (1.0 if ratio > 1.0 else -1.0) > 0.0:
        low -= 2.0
        if low < high - 400.0:
            raise NotConverged("the scalar equation of the untrained network has no bracket")
    at_top = gap(high) == 0.0
    delta, t1, t2, b = parts(high if at_top else root_between(gap, low, high))
    # G(δ, λ) = c_1² t_2 + c_{>1}² t_1 − δ, differentiated with the cancelling terms left out.
    shrink = (1.0 / (1.0 + b * t1)) ** 2
    turn = t1**2 * b / (1.0 + delta)
    t1_delta, t1_lam = -ratio / ((1.0 + delta) ** 2 * lam), -t1 / lam
    slope = linear * shrink * (t1_delta + turn) + rest * t1_delta - 1.0  # ∂G/∂δ
    return Traces(
        m1=ratio * t1,
        m2=ratio * t2,
        dm1=ratio * t1_lam * (linear * shrink * turn - 1.0) / slope,
        dm2=-ratio * t1_lam * shrink * (1.0 + rest * turn) / slope,
    )


def untrained_edge(problem: Problem) -> float:
    """Upper edge of the untrained features' singular values, F0/√n, as n → ∞.

    Given W0 the rows of F0 have covariance c_1² W0W0ᵀ + c_{>1}², whose law is Marchenko and
    Pastur's: the edge is where the inverse of the Stieltjes transform has its minimum.
    """
    population, share = _covariance(problem.width / problem.d, *_powers(problem))
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
