"""How much of each degree of the target a network learns, and from which step on half of it."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from ...errors import FeaturestepError
from ...functions.nonlinearity import normalised_hermite
from ...functions.quadrature import stretched_normal
from ...problem import Problem
from ...roots import root_between
from ...types import FloatArray
from ..engine import solve
from ..predict import Prediction, predict, prediction

LOWEST = 1e-3  # smallest step searched
_CURVE = 65
_PRESENT = 1e-9  # coefficients below it count as none


class Halves:
    """How much of each degree of the target is learned, as a function of the step."""

    def __init__(self, problem: Problem, largest: float, degrees: int) -> None:
        self.problem, self.degrees = problem, degrees
        self.places = np.linspace(math.log(LOWEST), math.log(largest), _CURVE)
        moved = [problem.replace(step_size=math.exp(t)) for t in self.places]
        outcomes = solve(moved)
        self.shares: list[FloatArray | None] = []
        for each, outcome in zip(moved, outcomes, strict=True):
            try:
                self.shares.append(self._share(prediction(each, outcome)))
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
            found = predict(self.problem.replace(step_size=math.exp(t)))
            return float(self._share(found)[k]) - 0.5

        return math.exp(root_between(gap, low, high, absolute=1e-6))


def _rule(found: Prediction) -> tuple[FloatArray, FloatArray]:
    """Nodes in κ that resolve the learned function."""
    scale = 0.5 / max(0.5, float(np.abs(found.groups.shift).max()))
    return stretched_normal(((0.0, scale),), 1.0, 0.2, 9.0)
