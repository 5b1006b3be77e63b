"""Blocks of degree 2 and 3 in a spectrum: a part of the bulk of their own where n, N ~ d² (131).

A spectrum has fewer terms of sections 50–53 than a prediction: tables t_k at nodes of κ and ‖x‖,
without what a neuron's overlap with κ adds, the coordinates κx_i among the others of degree 2, and
no fields of degree 2 and 3. The norm of a sample is that of the nodes.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ...core.problem import Problem
from ...core.types import FloatArray
from ...functions.nonlinearity import coefficients
from ..exact.columns import Columns
from ..exact.degrees import DEGREES, dimension, pair_blocks, traceless_share
from ..exact.sectors import Sector
from ..exact.step import Step
from ..exact.weight_covariance import bulk_covariance

_VISIBLE = 0.02  # min(n, N) over the coordinates of a degree, from which it has a block
_FEWEST_INPUTS = 4  # directions of an input that (134) takes for granted
_NO_PART = 1e-9  # |c_k| of an activation without degree k


def visible_degrees(problem: Problem) -> tuple[int, ...]:
    """Degrees of which n and N show more than noise."""
    if problem.covariance is not None or problem.steps > 1 or problem.d < _FEWEST_INPUTS:
        return ()
    found = []
    for k in DEGREES:
        count = float(dimension(np.array([float(problem.d)]), k)[0])
        part = problem.step_size > 0.0 or abs(float(coefficients(problem.sigma, k)[k])) > _NO_PART
        if part and min(problem.n, problem.width) > _VISIBLE * count:
            found.append(k)
    return tuple(found)


def with_blocks(
    problem: Problem,
    step: Step,
    columns: Columns,
    kappa: FloatArray,
    radius: FloatArray | None,
) -> Columns:
    """The columns with a sector of (134) for every visible degree, which ν² loses.

    kappa, radius: κ and ‖x‖/√d at the nodes, (Q,). Without a step, or for degree 3, a sector is one
    block, else one for each pair of nodes of the bulk of the weights (147).
    """
    degrees = visible_degrees(problem)
    if not degrees:
        return columns
    scale = np.ones((1, 1)) if radius is None else radius[:, None]
    norm, place = step.norm[:, None, :] * scale, step.shift[:, None, :] * kappa[:, None]
    means = problem.sigma.averages(norm, place, max(degrees))
    spread, sectors, d = columns.spread, [], step.d
    one = np.ones((len(step), 1)), np.ones((len(step), 1, step.norm.shape[1]))
    for k in degrees:
        whole = norm**k * means[k] / math.sqrt(math.factorial(k))
        blocks = one
        if k == 2 and np.any(step.e):
            blocks = pair_blocks(step, *bulk_covariance(step))
        share = traceless_share(d, k)[:, None, None]
        sectors.append(Sector(dimension(d, k), np.sqrt(share) * whole, *blocks))
        spread = spread - whole**2
    spread = np.maximum(spread, 0.0)
    return replace(columns, spread=spread, spread_in_v2=spread, sectors=tuple(sectors))
