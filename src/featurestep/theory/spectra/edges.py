"""Where the bulk begins and ends: places at which dz/dY = 0 on the real solution.

Outside the bulk the solution is real, and Y = E[χ/(1+χ)] increases with z. Followed as a function
of Y, z has a smooth turning point at an edge, which is found by root search on dz/dY. For pure
noise the edges lie at Y = ±√(N/n).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...core.errors import NotConverged
from ...functions.roots import find_root
from .equations import Branch, Equations, OnPath

_GROWTH = 1.8  # of |Y| from step to step
_LEAST_FACTOR = 1.02  # of |Y| where a turning point is expected
_MOST_STEPS = 500
_NEGLIGIBLE = 1e-9  # of the mean eigenvalue: a bulk that begins below it begins at 0
_FRACTIONS = np.geomspace(1e-1, _NEGLIGIBLE, 9)  # of it, to look for the pole of an atom at 0
_JUMP = 0.01  # of dz/dY at the ends of a search for its root: if more is left there is none
_MOST_GAP_STEPS = 40  # from a place in a gap to the edge of it
_NO_STEP = 1e-6  # of Y, at which the path ends before an edge
_MOST_HALVES = 12  # of the distance between places in a gap and in the bulk
_MOST_LEFT = 0.4  # of the way in z to an edge, at three quarters of that in Y: 1/16 by a parabola
_NOT_RESOLVED = "an edge of the bulk was not resolved"
_NO_DENSITY = 1e-6  # of |m|: a smaller imaginary part is none


@dataclass(frozen=True)
class Edge:
    """The solution at an edge, and those on the path to it, farthest first."""

    turn: OnPath
    points: tuple[OnPath, ...]

    @property
    def at(self) -> Branch:
        """The solution at the edge."""
        return self.turn.branch

    @property
    def path(self) -> tuple[Branch, ...]:
        """Those on the path to it."""
        return tuple(point.branch for point in self.points)

    @property
    def location(self) -> float:
        """The eigenvalue at which the bulk ends."""
        return self.turn.z


def right_edge(equations: Equations) -> Edge:
    """The upper end of the bulk, coming down from z = ∞."""
    ratios = (1.0 + np.sqrt(equations.width / equations.n)) * (
        1.0 + np.sqrt(equations.width / equations.d)
    )
    z = 1.5 * ratios**2 * max(equations.size, equations.largest_row) * equations.stretch
    for _ in range(12):
        start = _solved_at(equations, z)
        if start is not None and np.all(start.v2.real < 0.0) and np.all(start.chi.real > -1.0):
            edge = _walk(equations, start)
            if edge is not None:
                return edge
        z *= 8.0
    raise NotConverged("the upper edge of the bulk was not found")


def left_edge(equations: Equations, atom: float, high: float) -> float:
    """The lower end of the bulk's positive part: 0 if the bulk reaches down to it."""
    if atom == 0.0:
        start = _solved_at(equations, -4.0 * equations.size)
    else:
        start = _beyond_zero(equations)
    edge = None if start is None else _walk(equations, start)
    return _from_inside(equations, high) if edge is None else edge.location


def _from_inside(equations: Equations, high: float) -> float:
    """The lower end by scanning the bulk itself, where the path to it was not followed."""
    x = np.geomspace(_NEGLIGIBLE * equations.size, high, 60)[:-1]
    found = equations.on_real_axis(x)
    filled = np.flatnonzero(found.converged & is_filled(equations, found))
    if filled.size == 0:
        raise NotConverged("the lower edge of the bulk was not found")
    first = int(filled[0])
    if first == 0:
        return 0.0
    return gap_edge(equations, found.take([first]), found.take([first - 1]))


def is_filled(equations: Equations, branch: Branch) -> npt.NDArray[np.bool_]:
    """Whether places lie inside the bulk."""
    m = equations.trace(branch)
    return np.asarray(m.imag > _NO_DENSITY * np.abs(m))


def gap_edge(equations: Equations, inside: Branch, outside: Branch) -> float:
    """The edge of a gap, from a place in it towards one inside the bulk.

    χ and V2 may have poles and zeros in a gap, which the path in Y does not pass: then from places
    nearer to the edge, by halves.
    """
    for _ in range(_MOST_HALVES):
        edge = _edge_on_path(equations, inside, outside)
        if edge is not None:
            return edge
        middle = np.array([0.5 * (inside.z[0] + outside.z[0]).real])
        found = equations.on_real_axis(middle)
        if not found.converged[0]:
            break
        if is_filled(equations, found)[0]:
            inside = found
        else:
            outside = found
    raise NotConverged(_NOT_RESOLVED)


def _edge_on_path(equations: Equations, inside: Branch, outside: Branch) -> float | None:
    """The first edge on the way in Y towards the bulk, None if it is not reached.

    In steps of Y, the first one such that z would reach the bulk if it did not turn.
    """
    here = equations.on_path(outside.real())
    step = (inside.z - outside.z)[0].real / here.slope
    for _ in range(_MOST_GAP_STEPS):
        there = equations.at_ratio(here.level + step, here)
        is_passed = there.slope > 0.0 and (there.z - here.z) * step <= 0.0
        if not _same_side(here, there) or is_passed:
            step *= 0.5
        elif there.slope > 0.0:
            here = there
        else:
            turn = _first_turning_point(equations, here, there)
            if turn is not None:
                return turn.z
            step *= 0.5
        if abs(step) < _NO_STEP * abs(here.level):
            return None
    return None


def _solved_at(equations: Equations, z: float) -> Branch | None:
    place = np.array([z + 0j])
    found = equations.at(place, equations.far(place))
    return found if found.converged[0] else None


def _beyond_zero(equations: Equations) -> Branch | None:
    """The solution between 0 and the bulk when 0 is an atom, far from 0 as V2's pole there rules.

    Across the pole V2 changes its sign, and χ too if it has the pole.
    """
    for z in equations.size * _FRACTIONS:
        below = _solved_at(equations, -z)
        if below is None:
            continue
        for sign in (-1.0, 1.0):
            guess = replace(below, state=replace(below.state, v2=-below.v2, chi=sign * below.chi))
            found = equations.at(np.array([z + 0j]), guess)
            if found.converged[0] and _is_outside(equations, found, guess):
                return found
    return None


def _is_outside(equations: Equations, branch: Branch, guess: Branch) -> bool:
    """Whether this is the real solution between 0 and the bulk: V2 is still ruled by its pole."""
    real = np.abs(branch.v2.imag).max() < 1e-9 * np.abs(branch.v2).max()
    near = np.all(np.abs(branch.v2 / guess.v2 - 1.0) < 0.2)
    return bool(real and near and equations.on_path(branch).slope > 0.0)


def _walk(equations: Equations, start: Branch) -> Edge | None:
    """Along the real solution in steps of log|Y| until z turns, then to the turning point.

    None if z comes to rest at 0 instead: there the bulk begins.
    """
    here, growth = equations.on_path(start), _GROWTH
    path, factor = [here], growth  # on Y, from `here` to the place that is tried
    for _ in range(_MOST_STEPS):
        if growth - 1.0 < 1e-5:
            return None
        there = equations.at_ratio(here.level * factor, *path[-2:])
        over_two_turns = there.slope > 0.0 and (there.z - here.z) * here.level <= 0.0
        if not _same_side(here, there) or over_two_turns:
            growth = factor = factor**0.5
            continue
        if there.slope <= 0.0:
            turn = _first_turning_point(equations, here, there)
            if turn is not None:
                return Edge(turn, tuple(path))
            growth = factor = factor**0.5  # the path led to another solution
            continue
        if factor > _LEAST_FACTOR and _is_turn_expected(path, there.level):
            factor = factor**0.5  # a narrow part of the bulk may lie between
            continue
        here, factor = there, growth
        path.append(here)
        if here.z < 0.0 and abs(here.z) < _NEGLIGIBLE * equations.size:
            return None
    return None


def _first_turning_point(equations: Equations, a: OnPath, b: OnPath) -> OnPath | None:
    """The turning point next to `a`, where a narrow part of the bulk makes several before `b`.

    None if z does not approach it on the way: then `b` belongs to another solution.
    """
    turn, left = _turning_point(equations, a, b), 1.0  # share of the way in z that is left
    for share in (0.25, 0.5, 0.75):
        if turn is None:
            return None
        there = equations.at_ratio(a.level + share * (turn.level - a.level), a)
        if np.isnan(there.slope):
            continue
        if there.slope <= 0.0:
            turn, left = _turning_point(equations, a, there), 1.0
            continue
        way = turn.z - a.z
        before, left = left, (turn.z - there.z) / way if way else 0.0
        if not 0.0 <= left <= before:
            return None
    return turn if left < _MOST_LEFT else None


def _is_turn_expected(path: list[OnPath], level: float) -> bool:
    """True if Y² dz/dY, extrapolated from two places in log|Y|, is negative at a level."""
    if len(path) < 2:
        return False
    logs = [np.log(abs(point.level)) for point in path[-2:]]
    values = [point.slope * point.level**2 for point in path[-2:]]
    rise = (values[1] - values[0]) / (logs[1] - logs[0])
    return bool(values[1] + rise * (np.log(abs(level)) - logs[1]) < 0.0)


def _same_side(a: OnPath, b: OnPath) -> bool:
    """Whether b is a solution on the same side of every edge."""
    return a.signs.size == b.signs.size and bool(np.all(a.signs == b.signs))


def _turning_point(equations: Equations, a: OnPath, b: OnPath) -> OnPath | None:
    """The root of dz/dY between two solutions.

    None if dz/dY jumps there, or a place between them is not reached: then the two do not belong
    to one another.
    """
    known = {a.level: a, b.level: b}

    def slope_at(level: float) -> float:
        known[level] = _reached(equations, level, list(known.values()))
        return known[level].slope

    tolerance = equations.accuracy.edge
    try:
        root = find_root(slope_at, a.level, b.level, values=(a.slope, b.slope), relative=tolerance)
    except NotConverged:
        return None
    turn = known[root]
    is_narrow = abs(b.level - a.level) < 10.0 * tolerance * abs(b.level)
    return turn if is_narrow or abs(turn.slope) < _JUMP * max(abs(a.slope), abs(b.slope)) else None


def _reached(equations: Equations, level: float, known: Sequence[OnPath], depth: int = 3) -> OnPath:
    """The solution with Y = level: by halves where the step is too long."""
    found = equations.at_ratio(level, *known)
    if not np.isnan(found.slope):
        return found
    if depth == 0:
        raise NotConverged(_NOT_RESOLVED, residual=float(found.branch.residual[0]))
    nearest = min(known, key=lambda each: abs(each.level - level))
    middle = _reached(equations, 0.5 * (nearest.level + level), [nearest], depth - 1)
    return _reached(equations, level, [middle], depth - 1)


def edge_scale(equations: Equations, edge: Edge) -> float:
    """(C N)^(−2/3) for a density (C/π)√(E − x) below the edge E: the scale of Tracy and Widom.

    Near the edge z − E = ½ z″(Y)(Y − Y_E)² and m is linear in Y, which gives C.
    """
    level = edge.turn.level
    sizes = (1e-3, 1e-2, 3e-2, 1e-4, 1e-5)
    steps = [size * level for size in sizes if size >= equations.accuracy.difference]
    tries = itertools.product(steps, (edge.turn, edge.points[-1]))
    for step, start in tries:
        ends = [equations.at_ratio(level + sign * step, start) for sign in (-1.0, 1.0)]
        if any(np.isnan(end.slope) for end in ends):
            continue
        second = sum(end.z - edge.location for end in ends) / step**2  # z″
        m = [float(equations.trace(end.branch)[0].real) for end in ends]
        slope = (m[1] - m[0]) / (2.0 * step)
        root = abs(slope) * np.sqrt(2.0 / abs(second))
        return float((root * equations.width) ** (-2.0 / 3.0))
    raise NotConverged("the density next to the edge of the bulk was not resolved")
