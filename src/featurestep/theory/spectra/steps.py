"""Searches over the step: where spikes leave the bulk, where half of a degree is learned.

Both look at steps with equal ratios, and go to the first between which a number passes a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ...core.errors import FeaturestepError
from ...core.problem import Problem
from ...core.types import FloatArray
from ...functions.nonlinearity import normalised_hermite
from ...functions.quadrature import stretched_normal
from ...functions.roots import find_root
from ..predict import predict, solve
from ..prediction import Prediction, answered
from .branch import Trail
from .fineness import FIRST, Rung
from .model import model_of
from .outliers import HIGHEST
from .outlook import Outlook, outlook, strengths
from .solve import solve_whole

_LOWEST = 1e-3  # smallest step searched
_SCAN, _CURVE = 13, 65  # steps that are looked at, for spikes and for halves
_PRESENT = 1e-9  # coefficients below it count as none
_BORN = 1.02  # factor on the critical step at which the new spike is looked at
_MOST = HIGHEST + 1  # spikes that are followed


def _places(largest: float, count: int) -> FloatArray:
    """Logarithms of steps."""
    return np.linspace(math.log(_LOWEST), math.log(largest), count)


def _at(problem: Problem, place: float) -> Problem:
    return problem.replace(step_size=math.exp(place))


def _crossing(gap: Callable[[float], float], low: float, high: float) -> float:
    """The step at which a gap vanishes between two places."""
    return math.exp(find_root(gap, low, high, absolute=1e-6))


def births(problem: Problem, largest: float) -> dict[int, float]:
    """The smallest step at which a spike of each degree leaves the bulk."""
    found: dict[int, float] = {}
    places = _places(largest, _SCAN)
    scan = [_tried(_at(problem, place)) for place in places]
    for (low, before), (high, after) in pairwise(zip(places, scan, strict=True)):
        if before is None or after is None:
            continue
        for i in np.flatnonzero((before < 1.0) & (after > 1.0)):
            birth = _birth(problem, int(i), float(low), float(high))
            if birth is not None:
                found.setdefault(*birth)
    return found


def _tried(problem: Problem) -> FloatArray | None:
    """Strengths on the first rung."""
    try:
        return strengths(model_of(problem), _MOST)[0]
    except FeaturestepError:
        return None


def _birth(problem: Problem, rank: int, low: float, high: float) -> tuple[int, float] | None:
    """The degree, and the step at which the strength of a rank passes 1.

    The rung is that of the spectrum just beyond.
    """
    rung, tried = FIRST, set[Rung]()
    try:
        while rung not in tried:
            tried.add(rung)
            step = _strong(problem, rung, rank, low, high)
            view = _seen(problem.replace(step_size=_BORN * step), rung)
            rung = view.model.rung
    except FeaturestepError:
        return None
    return (view.spikes[rank].degree, step) if rank < len(view.spikes) else None


def _seen(problem: Problem, rung: Rung) -> Outlook:
    """What `spectrum` sees; where it is refused, its upper end alone."""
    try:
        return solve_whole(problem)[0]
    except FeaturestepError:
        return outlook(model_of(problem, rung))


def _strong(problem: Problem, rung: Rung, rank: int, low: float, high: float) -> float:
    """The step at which a strength passes 1: it grows like a power of the step."""
    trail: Trail | None = None

    def gap(t: float) -> float:
        nonlocal trail
        found, trail = strengths(model_of(_at(problem, t), rung), _MOST, near=trail)
        return math.log(max(float(found[rank]), 1e-300))

    return _crossing(gap, low, high)


class Halves:
    """How much of each degree of the target is learned, as a function of the step."""

    def __init__(self, problem: Problem, largest: float, degrees: int) -> None:
        self.problem, self.degrees = problem, degrees
        self.places = _places(largest, _CURVE)
        outcomes = solve([_at(problem, t) for t in self.places])
        self.shares: list[FloatArray | None] = []
        for outcome in outcomes:
            try:
                self.shares.append(self._share(answered(outcome)))
            except FeaturestepError:
                self.shares.append(None)

    def _share(self, found: Prediction) -> FloatArray:
        """E[M H_k]/E[y H_k | κ] for k = 1, 2, …; NaN where the target has no such part."""
        kappa, weight = _rule(found)
        hermite = normalised_hermite(self.degrees, kappa)[1:]
        target = hermite @ (weight * found.target_along(kappa))
        learned = hermite @ (weight * found.learned(kappa))
        present = np.abs(target) > _PRESENT
        return np.asarray(np.where(present, learned / np.where(present, target, 1.0), np.nan))

    def find(self, degree: int) -> tuple[float | None, str]:
        """The first step at which half of a degree is learned, or why there is none."""
        k = degree - 1
        known = [(t, float(s[k])) for t, s in zip(self.places, self.shares, strict=True)
                 if s is not None]  # fmt: skip
        if not known or all(math.isnan(share) for _, share in known):
            return None, f"the target has no part of degree {degree} along the learned direction"
        if known[0][1] >= 0.5:
            return None, f"half of degree {degree} is learned without a step"
        for (low, before), (high, after) in pairwise(known):
            if before < 0.5 <= after:
                return self._root(k, low, high), ""
        best = max(share for _, share in known)
        return None, f"at most {best:.0%} of degree {degree} is learned"

    def _root(self, k: int, low: float, high: float) -> float:
        def gap(t: float) -> float:
            return float(self._share(predict(_at(self.problem, t)))[k]) - 0.5

        return _crossing(gap, low, high)


def _rule(found: Prediction) -> tuple[FloatArray, FloatArray]:
    """Nodes in κ that resolve the learned function."""
    scale = 0.5 / max(0.5, float(np.abs(found.groups.shift).max()))
    return stretched_normal(((0.0, scale),), 1.0, 0.2, 9.0)
