"""Normal laws as n samples show them: cut off where hardly a sample is, low moments kept."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..core.types import FloatArray
from ..functions.quadrature import Rule, normal_density, stretched_interval
from ..functions.special import normal_quantile

_EXTRA = 11
_MATCHED = 3  # moments up to κ⁶ are those of the full law where positive weights allow it
_OUTER = 5  # lowest power of κ² in what is added, in steps of 2
_BEYOND = 0.5  # samples expected beyond the end of a rule


def extreme(count: float) -> float:
    """The size that half a sample of `count` normal variables is expected to exceed."""
    return -normal_quantile(0.5 * _BEYOND / max(count, 2.0))


@lru_cache(maxsize=256)
def typical_normal(end: float, scale: float, widest: float, spacing: float) -> Rule:
    """E f(κ) over |κ| ≤ end, with structure at `scale` near 0 and moments of the full law."""
    points, length = stretched_interval(end, count_of(end, scale, widest, spacing), scale, widest)
    # The density is raised smoothly far out to make up for the moments that are cut off.
    raised = length * _raised_density(points, end, _raise(end))
    return points, raised / raised.sum()


def count_of(end: float, scale: float, widest: float, spacing: float) -> int:
    """Nodes of such a rule."""
    top = end / widest + math.asinh(end / scale)
    return 2 * math.ceil(0.5 * (top / spacing + _EXTRA))


def _raised_density(points: FloatArray, end: float, added: FloatArray) -> FloatArray:
    powers = _OUTER + 2 * np.arange(added.size)
    return np.asarray(normal_density(points) + ((points[:, None] / end) ** 2) ** powers @ added)


@lru_cache(maxsize=256)
def _raise(end: float) -> FloatArray:
    """Coefficients of what is added to the density, as many as leave it positive everywhere."""
    points, length = stretched_interval(end, 120, 1.0, 1.0)
    t = (points / end) ** 2
    normal = _raised_density(points, end, np.zeros(0))
    for highest in range(_MATCHED, -1, -1):
        powers = np.arange(highest + 1)
        target = np.cumprod(np.concatenate([[1.0], 2.0 * powers[1:] - 1.0])) / end ** (2 * powers)
        moments = length * t ** powers[:, None]
        shapes = t[:, None] ** (_OUTER + 2 * powers)
        added = np.linalg.solve(moments @ shapes, target - moments @ normal)
        if np.all(_raised_density(points, end, added) > 0.0):
            return np.asarray(added)
    return np.zeros(0)
