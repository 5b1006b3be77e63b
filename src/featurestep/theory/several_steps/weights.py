"""Outliers of the weights after several steps: singular values of W that stand beside its bulk.

The shifts of all neurons are a matrix of low rank, Σ_i √(NΛ_i) u_iê_iᵀ with Λ_i of (164), added to
the bulk. The bulk is taken as isotropic, of squared norm ρ² = Σπ_gρ_g² a row, which holds for steps
below √N: a matrix of this rank then shows an outlier for every NΛ_i > ρ²√(N/d).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.problem import Problem
from ...core.types import FloatArray
from ..resolution import Effort
from .prediction import fineness_of, reach, training_of
from .rules import group_rule
from .solve import make_batches

_GROUPS = 2.0  # factor on the groups of a continuous law, each at most one outlier


@dataclass(frozen=True)
class WeightOutliers:
    """Singular values of W beside the bulk, largest first, and the bulk's upper edge."""

    edge: float
    singular_values: FloatArray
    # Squared overlaps of right singular vectors with the target's directions, of as many as have an
    # axis in the frame: three at most.
    target_overlaps: FloatArray

    @property
    def count(self) -> int:
        """How many."""
        return int(self.singular_values.size)


def weight_outliers(problem: Problem) -> WeightOutliers:
    """Outliers of the weights after all steps on fresh batches, at finite sizes.

    A right singular vector has the squared overlap 1 − (N/d + θ²)/(θ²(1 + θ²)) with ê_i, where
    θ² = NΛ_i/ρ², and |Γ_i|² of it is along the target.
    """
    fineness = fineness_of(problem, Effort(groups=_GROUPS))
    groups = group_rule(problem.law, reach(problem), fineness.groups)
    frame = make_batches(training_of(problem), groups, fineness)[-1].after
    ratio = problem.width / problem.d
    square = float(groups[1] @ frame.norm2)  # ρ²
    signal = problem.width * frame.strengths / square  # θ²
    signal = signal[signal**2 > ratio]
    places = np.sqrt(square * (1.0 + signal) * (ratio + signal) / signal)
    seen = 1.0 - (ratio + signal) / (signal * (1.0 + signal))
    along = (frame.gamma**2).sum(axis=0)[: signal.size]
    edge = float(np.sqrt(square) * (1.0 + np.sqrt(ratio)))
    return WeightOutliers(edge, places, seen[: along.size] * along)


def outliers_in_the_limit(first: float, second: float) -> int:
    """Outliers after two steps η_τ ~ N^α_τ as N → ∞, α in (0, ½): 1 + ⌊α2/(½ − α1)⌋.

    One for the direction of both steps' linear parts, and those that the second step adds: its
    part of order k in what the first learned is of size N^(α2 − k(½ − α1)).
    """
    return 1 + int(np.floor(second / (0.5 - first) + 1e-9))
