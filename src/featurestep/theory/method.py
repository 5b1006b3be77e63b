"""Which weights answer: the exact ones, or isotropic ones where nothing is lost (section 16)."""

from __future__ import annotations

import math

from ..core.errors import InvalidProblem
from ..core.problem import Problem
from ..core.spiked import SpikedWeights
from ..functions.nonlinearity import coefficients
from .exact.slopes import slopes

METHODS = ("auto", "isotropic", "exact")
NEGLIGIBLE = 5e-5  # of every term that isotropic weights leave out, as a share of the loss


def chosen_method(problem: Problem, weights: SpikedWeights, method: str) -> str:
    """The method itself, or what `auto` takes for this problem."""
    if problem.directions > 1:
        if method == "isotropic":
            rule = "must be exact or auto for a target of several directions"
            raise InvalidProblem("method", rule, method)
        return "exact"
    if method != "auto":
        return method
    return "isotropic" if left_out(problem, weights) < NEGLIGIBLE else "exact"


def left_out(problem: Problem, weights: SpikedWeights) -> float:
    """The largest term that isotropic weights leave out, in units of the loss (section 16)."""
    sigma = problem.sigma
    if sigma.slope_variance == 0.0:  # affine: weights beside β act through W·x alone
        return 0.0
    s = slopes(sigma)
    law = problem.law
    size = math.sqrt(sigma.second_moment)
    extreme = max(map(abs, law.values)) if law.is_finite else 3.0
    e = problem.step_size / math.sqrt(problem.width) * extreme
    spread = problem.phi_step * weights.residual_square
    c_star = coefficients(problem.sigma_star, 2)
    terms = [
        extreme**2 * bulk_left_out(problem, weights),
        4.0 * e * abs(s.c2 * float(c_star[2])),
        2.0 * e * abs(s.zz) * weights.beta_norm,
        e**2 * spread * s.norm_noise[0],
        _bending(problem),
    ]
    if problem.initial == "gaussian":
        terms.append((abs(s.c2) + abs(s.zz) * e) / size)
    if problem.residual == "full" and problem.step_size:
        terms.append(extreme / math.sqrt(problem.width))
    return max(terms)


def bulk_left_out(problem: Problem, weights: SpikedWeights) -> float:
    """What isotropic weights leave out of a typical neuron's bulk, as a share of its square."""
    s = slopes(problem.sigma)
    e = problem.step_size / math.sqrt(problem.width)
    spread = problem.phi_step * weights.residual_square
    return (4.0 * s.c2**2 + problem.phi_step * s.rest) * e**2 * spread


def _bending(problem: Problem) -> float:
    """Size of the terms of order 1/d, (37) and the sample norms.

    They enter through E σ″ times what the readout makes of the features' means. That is of order
    1/u for a small shift u, so that with c_2 ≠ 0 they are not small however large d is.
    """
    s = slopes(problem.sigma)
    if s.c2 == 0.0:
        return s.zz**2 / problem.d
    if problem.step_size > 0.0:
        return 1.0
    means = (s.c2 / s.c0) ** 2 / problem.d if s.c0 else 0.0
    return float(means + s.c2**2 * problem.width / problem.d**2)
