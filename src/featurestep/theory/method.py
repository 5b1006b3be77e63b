"""Which weights a spectrum has: the exact ones, or isotropic ones where nothing is lost."""

from __future__ import annotations

from ..core.problem import Problem
from ..core.spiked import SpikedWeights
from .isotropic import bulk_left_out as bulk_left_out
from .isotropic import left_out as left_out

NEGLIGIBLE = 5e-5  # of every term that isotropic weights leave out, as a share of the loss


def chosen_method(problem: Problem, weights: SpikedWeights, method: str) -> str:
    """What a spectrum takes for this problem."""
    if problem.directions > 1:
        return "exact"
    return "isotropic" if left_out(problem, weights) < NEGLIGIBLE else "exact"
