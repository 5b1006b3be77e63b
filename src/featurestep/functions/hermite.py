"""Hermite coefficients: how the theory measures what a function contains of each degree."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..core.types import FloatArray
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
