"""Variance of a neuron's pre-activation along and beside the learned direction, for (37), (51)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...types import FloatArray
from .covariance import alone
from .step import Step


class Anisotropy(NamedTuple):
    """K_ββ, K_βi and K_ik of every group."""

    along: FloatArray  # (B, K)
    mixed: FloatArray  # (B, r, K)
    across: FloatArray  # (B, r, r, K)


def anisotropy(step: Step, *, finite: bool = True) -> Anisotropy:
    """The diagonal of (24) at Ṽ = 0, where groups do not see each other and T is explicit.

    Nothing without `finite`: (37) is a term of order 1/d.
    """
    rows, size = step.k.shape
    r = step.directions
    if not finite:
        shapes = ((rows, size), (rows, r, size), (rows, r, r, size))
        return Anisotropy(*(np.zeros(shape) for shape in shapes))
    found = alone(step).matrix
    bulk = (1 + r) * size
    shape = (rows, 1 + r, size, 1 + r, size)
    own = np.einsum("bigkg->bikg", found[:, :bulk, :bulk].reshape(shape))
    return Anisotropy(own[:, 0, 0], own[:, 0, 1:], own[:, 1:, 1:])
