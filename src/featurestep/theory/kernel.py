"""Kernel ridge regression with the kernel of the untrained network, in high dimension.

With infinitely many neurons the untrained network is kernel ridge regression with
K(x, x′) = E_w σ(w·x)σ(w·x′), the arc-cosine kernel for a ReLU. With samples in proportion to
the dimension K is, up to terms that do not matter, c_1² x·x′/d off the diagonal and that plus
c_{>1}² = Eσ² − c_0² − c_1² on it (σ centred). Such a kernel is linear: features c_1 x/√d, and
c_{>1}² acts as further ridge.
"""

from __future__ import annotations

from ..errors import InvalidProblem
from ..functions.hermite import coefficients
from ..problem import Problem
from .baselines import linear_ridge_error


def kernel_error(problem: Problem) -> float:
    """Test error of kernel ridge regression on the problem's n samples.

    The ridge is that of the infinitely wide network: features σ(w_j·x)/√N and a readout √N·a, so
    that λ‖a‖² is (λ/N)‖√N a‖², with λ/N kept as N grows. In f(x) = θ·x this is ridge regression
    with λ_lin = φ(λn/N + c_{>1}²)/c_1².
    """
    sigma, star = problem.sigma, problem.sigma_star
    c0, c1 = (float(c) for c in coefficients(sigma, 1))
    if abs(c0) > 1e-9 or c1 == 0.0:
        raise InvalidProblem("activation", "must be centred, with c_1 ≠ 0", problem.activation)
    rest = max(sigma.second_moment - c1**2, 0.0)  # c_{>1}²
    penalty = problem.ridge * problem.n / problem.width
    signal = float(coefficients(star, 1)[1]) ** 2
    noise = max(star.second_moment - signal, 0.0) + problem.noise_std**2
    return linear_ridge_error(signal, noise, problem.phi, problem.phi * (penalty + rest) / c1**2)
