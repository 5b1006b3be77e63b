"""Roots of continuous functions between two places, for numbers and for arrays.

Chandrupatla's method (Advances in Engineering Software 28, 1997), as in
`scipy.optimize.elementwise.find_root`. That came with SciPy 1.15, we support 1.11, and
`scipy.optimize` takes a quarter of a second to import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from ..core.errors import NotConverged
from ..core.types import FloatArray

Numbers = TypeVar("Numbers", float, FloatArray)
_ROUNDING = 2.0**-50  # the finest relative tolerance: four units in the last place
_TINY = 1e-300
_MAX_ITERATIONS = 1000


def find_root(
    function: Callable[[Numbers], Numbers],
    a: Numbers,
    b: Numbers,
    *,
    values: tuple[Numbers, Numbers] | None = None,
    relative: float = 0.0,
    absolute: float = 0.0,
) -> Numbers:
    """A root of a continuous function between a and b, at which it has different signs.

    a, b
        Two numbers, or two arrays of one shape: the ends of independent searches, in either order.
    function
        Takes a number, or an array of that shape with one place for each search, and returns its
        values. All searches are evaluated together, those that have ended at their roots. The
        function may keep its solution as the starting point of the next evaluation: places come
        closer to each other, and the last one is within the tolerance of the root.
    values
        f(a) and f(b), if they are known.
    relative, absolute
        A search ends when its root is known to within relative·|root| + absolute, or to rounding.

    Inverse quadratic interpolation if the function looks monotone, else bisection: fast for smooth
    functions, safe for jumps. NotConverged if the signs at the ends are the same, or on NaN.

    >>> round(find_root(lambda x: x**2 - 2.0, 0.0, 2.0), 12)
    1.414213562373
    """
    is_number = np.ndim(a) == 0 and np.ndim(b) == 0

    def evaluate(x: FloatArray) -> FloatArray:
        found = np.asarray(function(cast(Any, float(x) if is_number else x)), dtype=np.float64)
        if np.any(np.isnan(found)):
            raise NotConverged(f"no change of sign: not a number at {_first(x, np.isnan(found))}")
        return found

    x_1, x_2 = (np.array(end, dtype=np.float64) for end in (a, b))
    f_1, f_2 = (evaluate(x_1), evaluate(x_2)) if values is None else map(np.asarray, values)
    wrong = np.sign(f_1) * np.sign(f_2) > 0.0
    if np.any(wrong):
        ends = f"{_first(x_1, wrong)} and {_first(x_2, wrong)}"
        raise NotConverged(f"no change of sign between {ends}")
    with np.errstate(all="ignore"):
        fraction = f_1 / (f_1 - f_2)  # of the way from x_1 to x_2, where f is evaluated next
    fraction = np.where(np.isfinite(fraction), fraction, 0.5)
    for _ in range(_MAX_ITERATIONS):
        best = np.where(np.abs(f_1) < np.abs(f_2), x_1, x_2)
        width = np.abs(x_2 - x_1)
        tolerance = np.maximum(relative, _ROUNDING) * np.abs(best) + max(absolute, _TINY)
        ended = (f_1 == 0.0) | (f_2 == 0.0) | (width <= tolerance)
        if np.all(ended):
            return cast(Numbers, float(best) if is_number else best)
        # No place closer to an end than half the tolerance, so that both ends come to the root.
        margin = np.minimum(0.5 * tolerance / np.maximum(width, _TINY), 0.5)
        x = np.where(ended, best, x_1 + np.clip(fraction, margin, 1.0 - margin) * (x_2 - x_1))
        f = evaluate(x)
        same = np.sign(f) == np.sign(f_1)  # then the root is between x and x_2, else x and x_1
        x_3, f_3 = np.where(same, x_1, x_2), np.where(same, f_1, f_2)
        x_2, f_2 = np.where(same, x_2, x_1), np.where(same, f_2, f_1)
        x_1, f_1 = x, f
        fraction = _interpolated(x_1, x_2, x_3, f_1, f_2, f_3)
    raise NotConverged(f"no root within {_MAX_ITERATIONS} iterations", iterations=_MAX_ITERATIONS)


def _interpolated(*points: FloatArray) -> FloatArray:
    """Where the inverse parabola through three points is 0, as a fraction of x_1 … x_2.

    ½ unless Chandrupatla's condition holds, that the parabola is monotone between them.
    """
    x_1, x_2, x_3, f_1, f_2, f_3 = points
    with np.errstate(all="ignore"):
        xi, phi = (x_1 - x_2) / (x_3 - x_2), (f_1 - f_2) / (f_3 - f_2)
        is_monotone = (1.0 - np.sqrt(1.0 - xi) < phi) & (phi < np.sqrt(xi))
        fraction = f_1 / (f_1 - f_2) * f_3 / (f_3 - f_2)
        fraction -= (x_3 - x_1) / (x_2 - x_1) * f_1 / (f_3 - f_1) * f_2 / (f_2 - f_3)
        return np.where(is_monotone & np.isfinite(fraction), fraction, 0.5)


def bracket_root(
    function: Callable[[float], float], start: float, step: float, *, limit: float
) -> tuple[float, float, tuple[float, float]]:
    """Two places a, b between which a function changes its sign, and (f(a), f(b)).

    Goes from `start` in steps that double, up to `limit` or more away from it, and returns the last
    two places; a root at the start is both. NotConverged if the sign does not change.
    """
    here, value = start, function(start)
    if value == 0.0:
        return start, start, (value, value)
    while abs(here - start) < limit:
        further = here + step
        value_further = function(further)
        if value * value_further <= 0.0:
            return here, further, (value, value_further)
        here, value, step = further, value_further, 2.0 * step
    raise NotConverged(f"no change of sign between {start:.6g} and {here:.6g}")


def _first(x: FloatArray, where: np.ndarray) -> str:
    """The first of some places, for a message."""
    return f"{float(np.ravel(x)[np.flatnonzero(where)[0]]):.6g}"
