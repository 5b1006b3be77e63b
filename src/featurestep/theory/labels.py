"""What a label shows given κ (eqs. 6, 50), for targets of one direction and of several.

Beside κ the target depends on s_1 … s_r, independent normal variables: s_1 is what the learned
direction misses of E[y z], the others are the directions that E[y z] does not see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..core.problem import Problem
from ..core.types import FloatArray
from ..functions.activations import function
from ..functions.nonlinearity import Nonlinearity
from ..functions.targets import FINEST, AlignedTarget, directions_rule
from .moments import across_alignment, target_moments

_CHUNK = 400_000  # values of the target at a time
_TRIED = np.array([-3.7, -1.9, -0.4, 0.8, 2.6, 4.8])  # κ at which rules are compared
_TRIED_ALIGNMENT = 0.9
_RESOLVED = 1e-10  # of E y², with the weight that a κ has


@dataclass(frozen=True)
class Labels:
    """Moments of y given κ: parts along 1, s_i and s_is_k − δ_ik, and the rest of E y²."""

    mean: FloatArray  # (B, Q) y_0
    linear: FloatArray  # (B, r, Q) y_1i
    square: FloatArray  # (B, P, Q) y_ik = E[(s_is_k − δ_ik)y], in the order of `pairs`
    rest: FloatArray  # (B, Q) E y² − y_0² − Σy_1i²


def pairs(count: int) -> list[tuple[int, int]]:
    """Pairs i ≤ k of directions."""
    return [(i, k) for i in range(count) for k in range(i, count)]


def label_moments(
    star: Nonlinearity | AlignedTarget, alignment: FloatArray, kappa: FloatArray
) -> Labels:
    """Equations (6) and (50) without noise, at alignments (B,) and places κ (Q,)."""
    if isinstance(star, AlignedTarget):
        place = np.ascontiguousarray(kappa).tobytes()
        found = [_of_aligned(star, float(gamma), place) for gamma in alignment]
        return Labels(*(np.stack(part) for part in zip(*found, strict=True)))
    y0, y1, rest = target_moments(star, alignment, kappa)
    across = across_alignment(alignment)[:, None]
    curved = star.derivative_means(across, alignment[:, None] * kappa, 2)[2]
    return Labels(y0, y1[:, None], (across**2 * curved)[:, None], rest)


Moments = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@lru_cache(maxsize=256)
def _of_aligned(star: AlignedTarget, gamma: float, place: bytes) -> Moments:
    """The moments at one alignment, by quadrature in s."""
    return _moments(star, gamma, np.frombuffer(place), fineness(star))


@lru_cache(maxsize=128)
def fineness(star: AlignedTarget) -> int:
    """The coarsest rule in s that the finest does not contradict."""
    weight = np.exp(-0.5 * _TRIED**2)

    def tried(level: int) -> FloatArray:
        found = _moments(star, _TRIED_ALIGNMENT, _TRIED, level)
        return np.concatenate([np.atleast_2d(part) for part in found]) * weight

    finest = tried(FINEST)
    for level in range(FINEST):
        apart = np.abs(tried(level) - finest).max()
        if apart <= _RESOLVED * star.second_moment:
            return level
    return FINEST


def _moments(star: AlignedTarget, gamma: float, kappa: FloatArray, level: int) -> Moments:
    s, weight = directions_rule(star.directions, level)
    both = pairs(star.directions)
    products = np.stack([s[:, i] * s[:, k] - float(i == k) for i, k in both], axis=1)
    functions = np.concatenate([np.ones((len(s), 1)), s, products], axis=1) * weight[:, None]
    count = star.directions
    moments, rest = [], []
    for y in target_values(star, gamma, kappa, s):
        found = y @ functions  # (q, 1 + r + P)
        left = y - found[:, :1] - found[:, 1 : 1 + count] @ s.T
        moments.append(found)
        rest.append((left * left) @ weight)
    table = np.concatenate(moments).T
    return table[0], table[1 : 1 + count], table[1 + count :], np.concatenate(rest)


def along_first(problem: Problem) -> Problem:
    """The problem with a target of one direction that features of constant slope cannot tell.

    They see functions of κ and a linear part of everything else. Of several directions these are
    E[g|z_1] and, because E[y z] has no other part, nothing: the rest acts as noise.
    """
    star = problem.star
    if not isinstance(star, AlignedTarget):
        return problem
    target = _given_first(star)
    rest = max(star.second_moment - target.second_moment, 0.0)
    return problem.replace(target=target, noise_std=float(np.sqrt(problem.noise_std**2 + rest)))


@lru_cache(maxsize=64)
def _given_first(star: AlignedTarget) -> Nonlinearity:
    """E[g|z_1]."""
    s, weight = directions_rule(star.directions - 1, fineness(star))
    beside = np.concatenate([np.zeros((len(s), 1)), s], axis=1)

    def mean(t: FloatArray) -> FloatArray:
        found = [y @ weight for y in target_values(star, 1.0, t.ravel(), beside)]
        return np.concatenate(found).reshape(t.shape)

    return function(mean, name="E[y|z1]")


def target_values(
    star: AlignedTarget, gamma: float, kappa: FloatArray, s: FloatArray
) -> Iterator[FloatArray]:
    """g at z_1 = γκ + qs_1, z_i = s_i (45), some κ at a time: (q, points)."""
    across = float(across_alignment(np.array(gamma)))
    size = max(1, _CHUNK // len(s))
    for start in range(0, kappa.size, size):
        part = kappa[start : start + size]
        z = np.broadcast_to(s, (part.size, *s.shape)).copy()
        z[:, :, 0] = gamma * part[:, None] + across * s[:, 0]
        yield star(z)
