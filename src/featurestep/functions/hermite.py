"""Hermite coefficients: how the theory measures what a function contains of each degree."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..types import FloatArray
from .nonlinearity import Nonlinearity
from .special import factorials

ZERO = 1e-12  # a coefficient smaller than this, relative to √Eσ², counts as absent


@lru_cache(maxsize=512)
def coefficients(f: Nonlinearity, order: int) -> FloatArray:
    """c_k = E[f(z)H_k(z)]/k! for k = 0 … order (theory, section 1)."""
    normalised = normalised_coefficients(f, order)
    values = normalised / np.sqrt(factorials(order + 1))
    values.setflags(write=False)
    return values


@lru_cache(maxsize=512)
def normalised_coefficients(f: Nonlinearity, order: int) -> FloatArray:
    """√k!·c_k, with Σ k!c_k² = E f²; values at rounding level are exactly 0."""
    values = f.normalised_coefficients(order)
    values[np.abs(values) < ZERO * np.sqrt(f.second_moment)] = 0.0
    values.setflags(write=False)
    return values


@lru_cache(maxsize=64)
def monomial_coefficients(degree: int) -> FloatArray:
    """ξ_{p,i} with x^p = Σ_i ξ_{p,i} H_i(x), for p, i = 0 … degree."""
    xi = np.zeros((degree + 1, degree + 1))
    for p in range(degree + 1):
        for i in range(p % 2, p + 1, 2):
            half = (p - i) // 2
            count = math.factorial(half) * math.factorial(i)
            xi[p, i] = math.factorial(p) / (2.0**half * count)
    xi.setflags(write=False)
    return xi
