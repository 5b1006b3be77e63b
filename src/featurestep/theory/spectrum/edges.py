"""Where the bulk begins and ends: places at which dz/dY = 0 on the real solution.

Outside the bulk the solution is real, and Y = E[χ/(1+χ)] increases with z. Followed as a function
of Y, z has a smooth turning point at an edge, which is found by root search on dz/dY. For pure
noise the edges lie at Y = ±√(N/n).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import NotConverged
from .continued import Branch, ComplexArray, Equations

_GROWTH = 1.4  # of |Y| from step to step
_MOST_STEPS = 500
_NOTHING = 1e-9  # of the mean eigenvalue: a bulk that begins below it begins at 0
_SETTLED = 1e-9  # relative change of Y that ends the search


@dataclass(frozen=True)
class Edge:
    """The solution at an edge, and those met on the way to it, farthest first."""

    at: Branch
    path: tuple[Branch, ...]

    @property
    def location(self) -> float:
        """The eigenvalue at which the bulk ends."""
        return float(self.at.z[0].real)


def right_edge(equations: Equations) -> Edge:
    """The upper end of the bulk, coming down from z = ∞."""
    ratios = (1.0 + np.sqrt(equations.width / equations.n)) * (
        1.0 + np.sqrt(equations.width / equations.d)
    )
    z = 4.0 * ratios**2 * max(equations.size, equations.largest_row)
    for _ in range(12):
        start = _settled(equations, z)
        if start is not None and np.all(start.v2.real < 0.0):
            edge = _walk(equations, start)
            if edge is not None:
                return edge
        z *= 8.0
    raise NotConverged("the upper edge of the bulk was not found")


def left_edge(equations: Equations, atom: float) -> Edge | None:
    """The lower end of the bulk's positive part, or None if that is 0."""
    if atom == 0.0:
        start = _settled(equations, -4.0 * equations.size)
    else:
        start = _beyond_zero(equations)
    return None if start is None else _walk(equations, start)


def edge_near(equations: Equations, inside: Branch) -> Branch | None:
    """The edge of a gap, from a solution in the bulk close to it."""
    level = float(equations.level(inside)[0])
    real = Branch(inside.z, _real(inside.v2), _real(inside.chi), inside.residual)
    here, slope = equations.at_level(level, real)
    if not here.converged[0]:
        return None
    for step in (1e-4, 1e-3, 1e-2, 0.1, 0.4):
        for other in (level * (1.0 + step), level * (1.0 - step)):
            there, far_slope = equations.at_level(other, here)
            if there.converged[0] and far_slope * slope < 0.0:
                return _turning_point(equations, here, slope, there, far_slope)
    return None


def _real(values: ComplexArray) -> ComplexArray:
    return np.asarray(values.real.astype(np.complex128))


def _settled(equations: Equations, z: float) -> Branch | None:
    place = np.array([z + 0j])
    found = equations.at(place, equations.far(place))
    return found if found.converged[0] else None


def _beyond_zero(equations: Equations) -> Branch | None:
    """The solution just above 0 when 0 is an atom: V2 has a pole there and changes sign."""
    for fraction in (1e-3, 1e-5, 1e-7, _NOTHING):
        z = fraction * equations.size
        below = _settled(equations, -z)
        if below is None:
            continue
        for sign in (-1.0, 1.0):
            start = Branch(below.z, -below.v2, sign * below.chi, below.residual)
            found = equations.at(np.array([z + 0j]), start)
            if found.converged[0] and _is_outside(equations, found, below):
                return found
    return None


def _is_outside(equations: Equations, branch: Branch, below: Branch) -> bool:
    """Whether this is the real solution between 0 and the bulk: V2 is still ruled by its pole."""
    real = np.abs(branch.v2.imag).max() < 1e-9 * np.abs(branch.v2).max()
    near = np.all(np.abs(branch.v2 / below.v2 + 1.0) < 0.2)
    return bool(real and near and equations.level_slope(branch) > 0.0)


def _walk(equations: Equations, start: Branch) -> Edge | None:
    """Along the real solution in steps of log|Y| until z turns, then to the turning point.

    None if z comes to rest at 0 instead: there the bulk begins.
    """
    here, slope = start, equations.level_slope(start)
    path = [start]
    level, growth = float(equations.level(start)[0]), _GROWTH
    for _ in range(_MOST_STEPS):
        there, far_slope = equations.at_level(level * growth, here)
        if not there.converged[0]:
            growth = growth**0.5
            if growth - 1.0 < 1e-5:
                return None
            continue
        if far_slope <= 0.0:
            return Edge(_turning_point(equations, here, slope, there, far_slope), tuple(path))
        here, slope, level = there, far_slope, level * growth
        path.append(here)
        if here.z[0].real < 0.0 and abs(here.z[0]) < _NOTHING * equations.size:
            return None
    return None


def _turning_point(
    equations: Equations, a: Branch, slope_a: float, b: Branch, slope_b: float
) -> Branch:
    """The root of dz/dY between two solutions, by regula falsi in the Illinois form."""
    level_a, level_b = (float(equations.level(branch)[0]) for branch in (a, b))
    middle = a
    for _ in range(80):
        level = (level_a * slope_b - level_b * slope_a) / (slope_b - slope_a)
        near = a if abs(level - level_a) < abs(level - level_b) else b
        middle, slope = equations.at_level(level, near)
        if not middle.converged[0]:
            raise NotConverged(
                "an edge of the bulk was not resolved", residual=float(middle.residual[0])
            )
        moved = min(abs(level - level_a), abs(level - level_b))
        if slope == 0.0 or moved < _SETTLED * abs(level):
            break
        if slope * slope_b < 0.0:
            a, level_a, slope_a = b, level_b, slope_b
        else:
            slope_a *= 0.5
        b, level_b, slope_b = middle, level, slope
    return middle
