"""Which functions of κ the spikes carry in regime ℓ, as published and as n → ∞ leaves them.

Published (section 4): the powers κ, …, κ^ℓ. They leave out that the step also changes the norm of
what is left of a neuron, ρ² = 1 + 2Dg + Eg² with D and √E of the order of the shift u. The mean
feature E σ(ρz + ugκ) = Σ_k c_k He_k(ugκ; 1 − ρ²) then has, at order g^p, a polynomial that is κ^p
plus lower powers. Where those are not learned anyway (the constant, for a centred activation) the
limit differs from the published one; E vanishes for n_step ≫ d, D when E r = 0 or c_2 = 0.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.problem import Problem
from ..core.spiked import spiked_weights
from ..core.types import FloatArray
from ..functions.hermite import coefficients
from ..functions.quadrature import gauss_hermite, gauss_law
from .resolution import finite_groups

Spikes = dict[int, FloatArray]  # power of g → coefficients of 1, κ, κ², …


def learned_powers(problem: Problem, degree: int) -> tuple[int, ...]:
    """Powers κ^k that a spike carries in regime ℓ: c_k ≠ 0 and g^k new (section 4).

    k = 0 is among them for an uncentred activation: its mean is a spike from the start.
    """
    c = coefficients(problem.sigma, degree)
    candidates = [k for k in range(degree + 1) if c[k] != 0.0]
    return tuple(problem.law.distinct_powers(candidates))


def published_spikes(problem: Problem, degree: int) -> Spikes:
    """κ^k for every learned power."""
    return {k: np.eye(k + 1)[k] for k in learned_powers(problem, degree)}


def exact_spikes(problem: Problem, degree: int) -> Spikes:
    """The leading polynomial of κ at each order of g, norm changes included."""
    weights = spiked_weights(problem)
    if weights.unit_shift == 0.0:
        return published_spikes(problem, 0)
    drift = weights.unit_drift / weights.unit_shift
    growth = drift**2 + weights.unit_growth / weights.unit_shift**2
    c = coefficients(problem.sigma, 2 * degree)
    found = {p: _order(p, c, drift, growth) for p in range(degree + 1)}
    present = [p for p, polynomial in found.items() if np.any(polynomial)]
    return {p: found[p] for p in problem.law.distinct_powers(present)}


def _order(p: int, c: FloatArray, drift: float, growth: float) -> FloatArray:
    """Coefficient of g^p in Σ_k c_k He_k(gκ; −s), s = 2·drift·g + growth·g², in units of u.

    He_k(t; −s) = Σ_j k!/(j!(k−2j)!2^j) t^{k−2j} s^j, and g^p comes from k − j + i = p with i
    factors growth·g² among the j.
    """
    out = np.zeros(p + 1)
    for k in range(min(2 * p, c.size - 1) + 1):
        for j in range(k // 2 + 1):
            i = p - k + j
            if 0 <= i <= j:
                count = math.factorial(k) / (math.factorial(j) * math.factorial(k - 2 * j) * 2.0**j)
                turns = math.comb(j, i) * (2.0 * drift) ** (j - i) * growth**i
                out[k - 2 * j] += c[k] * count * turns
    return out


def largest_mean(problem: Problem) -> float:
    """Largest singular value of the features' mean given κ, E[F|κ]/√n: about the first spike's."""
    weights = spiked_weights(problem)
    g, share = finite_groups(problem) or gauss_law(problem.law.name, 15)
    kappa, weight = gauss_hermite(60)
    mean = problem.sigma.moments(weights.norm(g), weights.shift(g) * kappa[:, None])[0]  # (Q, K)
    scaled = np.sqrt(weight)[:, None] * mean * np.sqrt(share * problem.width)
    return float(np.linalg.norm(scaled, 2))
