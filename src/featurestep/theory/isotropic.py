"""Isotropic weights (sections 2, 3): the published picture of the step, as a `Step`.

What a neuron keeps beside its shift u_g is taken for an isotropic vector of norm ρ_g (4): it keeps
(1 + k_gm_1) of its initial weights, and the rest of its square is noise without structure. Then
(22) has no r in it (φ0 → 0: T = N, Ξ = diag(0, ρ² − (1 + k m_1)²)), C of the fields is
blockdiag(V2, X, X), and own overlaps, norms and terms of order 1/d are left out. `predict` has it
for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..core.problem import Problem
from ..core.spiked import SpikedWeights, spiked_weights
from ..core.types import FloatArray
from ..functions.nonlinearity import coefficients
from ..functions.quadrature import Rule
from .exact.step import ProblemRow, Step, slope_moments
from .labels import across_alignment

_RADIAL = 2.0  # variance of ‖x‖²/d, times d: what the norm of a sample is worth
_DIRECTIONS = 2  # special ones: β itself, and what β⋆ has beside it


def isotropic_step(rows: Sequence[ProblemRow], groups: Rule) -> Step:
    """The constants of rows that share all but numbers, for isotropic weights, from (1)–(4)."""
    g, share = groups
    problems = [row.problem for row in rows]
    weights = [spiked_weights(problem) for problem in problems]

    def of_problems(name: str) -> FloatArray:
        return np.array([float(getattr(problem, name)) for problem in problems])

    def of_groups(function: Callable[[SpikedWeights, FloatArray], FloatArray]) -> FloatArray:
        return np.stack([function(w, g) for w in weights])

    width, alignment = of_problems("width"), np.array([w.alignment for w in weights])
    norm, kept = of_groups(SpikedWeights.norm), of_groups(SpikedWeights.kept)
    c1 = float(coefficients(problems[0].sigma, 1)[1])
    count, size = norm.shape
    none, plain = np.zeros_like(norm), np.zeros(count)
    return Step(
        n=of_problems("n"),
        d=of_problems("d"),
        ridge=of_problems("ridge"),
        noise=of_problems("noise_std") ** 2,
        phi=plain,
        beta=np.array([w.beta_norm for w in weights]),
        alignment=alignment,
        across=across_alignment(alignment),
        output_slope=np.array([c1 if problem.residual == "full" else 0.0 for problem in problems]),
        neurons=width[:, None] * share,
        a=g / np.sqrt(width)[:, None],
        e=none,
        k=none,
        delta=np.maximum(norm**2 - kept**2, 0.0),
        initial_factor=kept,
        norm=norm,
        shift=of_groups(SpikedWeights.shift),
        norm_on_weights=np.zeros((count, size, 3)),
        norm_on_noise=np.zeros((count, size, 3)),
        norm_variance=none,
        sample_norm=np.zeros((count, size, size)),
        norm_slope=none,
        shift_slope=none,
        r=np.ones((count, 1)),
        r_weight=np.ones((count, 1)),
        r_first=np.zeros((count, _DIRECTIONS, 1)),
        r_second=np.tile(np.eye(_DIRECTIONS)[None, :, :, None], (count, 1, 1, 1)),
        r_moments=np.zeros((count, 7)),
        r_overlaps=np.zeros((count, _DIRECTIONS, 4)),
        target=np.zeros((count, 4)),
        is_full=False,
        is_gaussian=False,
        is_isotropic=True,
    )


def left_out(problem: Problem, weights: SpikedWeights) -> float:
    """The largest term that isotropic weights leave out, in units of the loss (section 16)."""
    sigma = problem.sigma
    if sigma.slope_variance == 0.0:  # affine: weights beside β act through W·x alone
        return _order_one_over_d(problem)
    s = slope_moments(sigma)
    law = problem.law
    size = math.sqrt(sigma.second_moment)
    extreme = max(map(abs, law.values)) if law.is_finite else 3.0
    e = problem.step_size / math.sqrt(problem.width) * extreme
    spread = problem.phi_step * weights.residual_square
    c_star = coefficients(problem.sigma_star, 2)
    terms = [
        extreme**2 * bulk_left_out(problem, weights),
        4.0 * e * abs(s.c2 * float(c_star[2])),
        2.0 * e * abs(s.z2_psi) * weights.beta_norm,
        e**2 * spread * s.nonlinear_products[0],
        _order_one_over_d(problem),
    ]
    if problem.initial == "gaussian":
        terms.append((abs(s.c2) + abs(s.z2_psi) * e) / size)
    if problem.residual == "full" and problem.step_size:
        terms.append(extreme / math.sqrt(problem.width))
    return max(terms)


def bulk_left_out(problem: Problem, weights: SpikedWeights) -> float:
    """What isotropic weights leave out of a typical neuron's bulk, as a share of its square."""
    s = slope_moments(problem.sigma)
    e = problem.step_size / math.sqrt(problem.width)
    spread = problem.phi_step * weights.residual_square
    return (4.0 * s.c2**2 + problem.phi_step * s.noise_variance) * e**2 * spread


def _order_one_over_d(problem: Problem) -> float:
    """Size of the terms of order 1/d: (37), the sample norms, blocks of degree 2 and 3.

    The first two enter through E σ″ times what the readout makes of the features' means. That is of
    order 1/u for a small shift u, so that with c_2 ≠ 0 they are not small however large d is.
    """
    s = slope_moments(problem.sigma)
    if s.c2 != 0.0 and problem.step_size > 0.0:
        return 1.0
    means = (s.c2 / s.c0) ** 2 / problem.d if s.c0 else 0.0
    quadratic = s.c2**2 * min(problem.n, problem.width) / problem.d**2
    return float(means + quadratic + (_RADIAL + s.z2_psi**2) / problem.d)
