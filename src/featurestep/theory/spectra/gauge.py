"""The real solution outside the bulk, and through its edges, by numbers that grow along it.

z itself turns back at an edge; with one of these prescribed, and z among the unknowns, Newton's
method does not notice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...types import FloatArray
from ..response import Point, evaluate
from .branch import Branch, ComplexArray
from .continued import TOLERANCE, Equations, answer, damping, newton_step


def share(equations: Equations, branch: Branch) -> float:
    """Y = E[χ/(1+χ)] at one place: the share of a sample's weight that fitting it removes."""
    return _share(branch, equations.batch.weight)


def _share(branch: Branch, weight: FloatArray) -> float:
    return float(((branch.chi / (1.0 + branch.chi)).real @ weight)[0])


@dataclass(frozen=True)
class Share:
    """Y of a solution."""

    weight: FloatArray  # (Q,) probabilities of κ
    level: float

    def gap(self, branch: Branch) -> float:
        """Of Y to the level."""
        return self.level - _share(branch, self.weight)

    def relative(self, gap: float) -> float:
        """To the level."""
        return gap / self.level

    def change(self, point: Point, x: ComplexArray, p: ComplexArray) -> Any:
        """Of Y, with χ and log V2."""
        return (x * point.shrink**2)[0] @ self.weight


@dataclass(frozen=True)
class Arc:
    """How far log|V2| has gone in a direction, 1 in the group that goes furthest."""

    way: FloatArray  # (K,)
    origin: FloatArray  # (K,)
    length: float

    def gap(self, branch: Branch) -> float:
        """To the length."""
        return self.length - float((np.log(np.abs(branch.v2[0])) - self.origin) @ self.way)

    def relative(self, gap: float) -> float:
        """As it is."""
        return gap

    def change(self, point: Point, x: ComplexArray, p: ComplexArray) -> Any:
        """Of the length, with χ and log V2."""
        return p[0] @ self.way


Gauge = Share | Arc


def at_share(equations: Equations, level: float, start: Branch) -> tuple[Branch, float]:
    """The real solution with Y = level, for one place, and dz/dY there.

    In Y the solution goes smoothly through an edge of the bulk, where dz/dY = 0.
    """
    return _at(equations, Share(equations.batch.weight, level), start)


def share_slope(equations: Equations, branch: Branch) -> float:
    """dz/dY on the real axis, for one place."""
    gauge = Share(equations.batch.weight, 0.0)
    return _slope(equations, gauge, equations.point(branch))


def arc_through(equations: Equations, branch: Branch) -> Arc:
    """The direction in which a solution near an edge goes, through the edge if it is one."""
    p, _ = equations.slope(branch)
    way = p[0].real
    way = -way / np.abs(way).max()
    return Arc(way / (way @ way), np.log(np.abs(branch.v2[0])), 0.0)


def on_arc(equations: Equations, arc: Arc, length: float, start: Branch) -> tuple[Branch, float]:
    """The real solution so far along an arc, for one place, and the slope of z there."""
    return _at(equations, replace(arc, length=length), start)


def _at(equations: Equations, gauge: Gauge, start: Branch) -> tuple[Branch, float]:
    branch, residual, fineness = start, np.inf, equations.fineness
    for _ in range(fineness.newton):
        with np.errstate(all="ignore"):
            point = equations.point(branch)
        gap = gauge.gap(branch)
        before, residual = residual, max(float(point.residual[0]), abs(gauge.relative(gap)))
        settled = residual < 1e3 * TOLERANCE and residual > 0.3 * before
        if residual < fineness.residual or settled or not np.isfinite(residual):
            break
        x, p, dz = _bordered(equations, point, gauge, gap)
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
    return branch, _slope(equations, gauge, point) if branch.converged[0] else np.nan


def _slope(equations: Equations, gauge: Gauge, point: Point) -> float:
    x, p = answer(point, equations.n * point.v2, newton=False)
    rise = float(gauge.change(point, x, p).real)
    return 1.0 / rise if np.isfinite(rise) else 0.0  # exactly at an edge


def _bordered(
    equations: Equations, point: Point, gauge: Gauge, gap: float
) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
    """Newton's step for (7)–(10) and the gauge, with z among the unknowns."""
    x, p = newton_step(point)
    if not np.all(np.isfinite(x)):  # exactly at an edge the matrix is singular: step aside
        point = evaluate(point.batch, point.v2 * (1.0 + 1e-9), point.chi)
        x, p = newton_step(point)
    xz, pz = answer(point, equations.n * point.v2, newton=True)
    dz = (gap - gauge.change(point, x, p)) / gauge.change(point, xz, pz)
    return np.asarray(x + dz * xz), np.asarray(p + dz * pz), np.asarray([dz])
