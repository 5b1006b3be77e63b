"""Variance of a neuron's pre-activation along and beside the learned direction, for (37)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...types import FloatArray
from .covariance import covariance
from .dyson import averaged, scattering, solve_blocks
from .step import Step


class Anisotropy(NamedTuple):
    """K_ββ, K_βs and K_ss of every group, (B, K) each."""

    along: FloatArray
    mixed: FloatArray
    across: FloatArray


def anisotropy(step: Step, *, finite: bool = True) -> Anisotropy:
    """The diagonal of (24) at Ṽ = 0, where groups do not see each other and T is explicit.

    Nothing without `finite`: (37) is a term of order 1/d.
    """
    rows, size = step.k.shape
    if not finite:
        return Anisotropy(*np.zeros((3, rows, size)))
    nothing = np.zeros((rows, size, size))
    free = solve_blocks(step.kept, np.zeros((rows, 2 * size, 2 * size)), nothing)
    scattered = scattering(step, free.coupled)
    blocks = solve_blocks(step.kept, averaged(step.r_weight, scattered), nothing)
    found = covariance(step, nothing, blocks, scattered).matrix
    g = np.arange(size)
    return Anisotropy(found[:, g, g], found[:, g, size + g], found[:, size + g, size + g])
