"""The real solution outside the bulk, and through its edges, by a number that grows along it.

z itself turns back at an edge; with Y = E[χ/(1+χ)] prescribed, and z among the unknowns, Newton's
method does not notice.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..response import Point, evaluate
from .branch import Branch, ComplexArray
from .continued import TOLERANCE, Equations, answer, damping, newton_step


def share(equations: Equations, branch: Branch) -> float:
    """Y = E[χ/(1+χ)] at one place: the share of a sample's weight that fitting it removes."""
    return float(((branch.chi / (1.0 + branch.chi)).real @ equations.batch.weight)[0])


def at_share(equations: Equations, level: float, start: Branch) -> tuple[Branch, float]:
    """The real solution with Y = level, for one place, and dz/dY there.

    In Y the solution goes smoothly through an edge of the bulk, where dz/dY = 0.
    """
    branch, residual, fineness = start, np.inf, equations.fineness
    for _ in range(fineness.newton):
        with np.errstate(all="ignore"):
            point = equations.point(branch)
        gap = level - share(equations, branch)
        before, residual = residual, max(float(point.residual[0]), abs(gap / level))
        settled = residual < 1e3 * TOLERANCE and residual > 0.3 * before
        if residual < fineness.residual or settled or not np.isfinite(residual):
            break
        x, p, dz = _bordered(equations, point, gap)
        factor = float(damping(p)[0, 0])
        branch = Branch(
            branch.z + factor * dz,
            branch.v2 * (1.0 + factor * p),
            branch.chi + factor * x,
            branch.residual,
        ).real()
    else:
        point = equations.point(branch)
    branch = replace(branch, residual=np.array([residual]), accepted=fineness.accepted)
    return branch, _slope(equations, point) if branch.converged[0] else np.nan


def share_slope(equations: Equations, branch: Branch) -> float:
    """dz/dY on the real axis, for one place."""
    return _slope(equations, equations.point(branch))


def _slope(equations: Equations, point: Point) -> float:
    x, _ = answer(point, equations.n * point.v2, newton=False)
    rise = float(_change(point, x)[0].real)
    return 1.0 / rise if np.isfinite(rise) else 0.0  # exactly at an edge


def _change(point: Point, x: ComplexArray) -> ComplexArray:
    """Of Y, with χ, (B,)."""
    return np.asarray((x * point.shrink**2) @ point.batch.weight)


def _bordered(
    equations: Equations, point: Point, gap: float
) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
    """Newton's step for (7)–(10) and Y, with z among the unknowns."""
    x, p = newton_step(point)
    if not np.all(np.isfinite(x)):  # exactly at an edge the matrix is singular: step aside
        point = evaluate(point.batch, point.v2 * (1.0 + 1e-9), point.chi)
        x, p = newton_step(point)
    xz, pz = answer(point, equations.n * point.v2, newton=True)
    dz = (gap - _change(point, x)) / _change(point, xz)
    return np.asarray(x + dz * xz), np.asarray(p + dz * pz), dz
