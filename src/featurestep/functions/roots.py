"""Roots of continuous functions between two places, for numbers and for arrays.

One method serves all searches of the package: that of Chandrupatla (Advances in Engineering
Software 28, 1997), as in `scipy.optimize.elementwise.find_root`. Ours because that came with SciPy
1.15, we support 1.11, and `scipy.optimize` takes a quarter of a second to import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

import numpy as np

from ..core.errors import NotConverged
from ..core.types import FloatArray

_ROUNDING = 2.0**-50  # the finest relative tolerance: four units in the last place
_TINY = 1e-300
_MAX_ITERATIONS = 1000


@overload
def find_root(
    function: Callable[[float], float],
    a: float,
    b: float,
    *,
    values: tuple[float, float] | None = None,
    relative: float = 0.0,
    absolute: float = 0.0,
) -> float: ...
@overload
def find_root(
    function: Callable[[FloatArray], FloatArray],
    a: FloatArray,
    b: FloatArray,
    *,
    values: tuple[FloatArray, FloatArray] | None = None,
    relative: float = 0.0,
    absolute: float = 0.0,
) -> FloatArray: ...
def find_root(
    function: Callable[..., object],
    a: float | FloatArray,
    b: float | FloatArray,
    *,
    values: tuple[float, float] | tuple[FloatArray, FloatArray] | None = None,
    relative: float = 0.0,
    absolute: float = 0.0,
) -> float | FloatArray:
    """A root of a continuous function between a and b, where its signs differ.

    a, b
        Numbers, or arrays of one shape: the ends of as many independent searches, in either order.
    function
        Takes a number, or an array of that shape with one place for each search, and returns the
        same. All searches are evaluated together; one that has ended is evaluated at its root. The
        function may keep what it computed, to start the next evaluation from: places come nearer
        to each other.
    values
        f(a) and f(b), where they are known.
    relative, absolute
        A search ends when its root is known to within relative·|root| + absolute, or to rounding.

    Inverse quadratic interpolation where three places allow it, bisection elsewhere: superlinear
    for smooth functions and safe for jumps. NotConverged without a change of sign, and on NaN.

    >>> round(find_root(lambda x: x**2 - 2.0, 0.0, 2.0), 12)
    1.414213562373
    """
    is_number = np.ndim(a) == 0 and np.ndim(b) == 0

    def evaluated(x: FloatArray) -> FloatArray:
        found = np.asarray(function(float(x) if is_number else x), dtype=np.float64)
        if np.any(np.isnan(found)):
            raise NotConverged(f"no change of sign: not a number at {_first(x, np.isnan(found))}")
        return found

    x_1, x_2 = (np.array(end, dtype=np.float64) for end in np.broadcast_arrays(a, b))
    if values is None:
        f_1, f_2 = evaluated(x_1), evaluated(x_2)
    else:
        f_1, f_2 = (
            np.broadcast_to(np.asarray(value, dtype=np.float64), x_1.shape) for value in values
        )
    wrong = np.sign(f_1) * np.sign(f_2) > 0.0
    if np.any(wrong):
        ends = f"{_first(x_1, wrong)} and {_first(x_2, wrong)}"
        raise NotConverged(f"no change of sign between {ends}")
    with np.errstate(all="ignore"):
        fraction = f_1 / (
            f_1 - f_2
        )  # where to look next, from x_1 to x_2; by the straight line first
    fraction = np.where(np.isfinite(fraction), fraction, 0.5)
    for _ in range(_MAX_ITERATIONS):
        best = np.where(np.abs(f_1) < np.abs(f_2), x_1, x_2)
        width = np.abs(x_2 - x_1)
        tolerance = np.maximum(relative, _ROUNDING) * np.abs(best) + max(absolute, _TINY)
        ended = (f_1 == 0.0) | (f_2 == 0.0) | (width <= tolerance)
        if np.all(ended):
            return float(best) if is_number else np.asarray(best)
        # No place nearer to an end than the tolerance, so that the bracket shrinks from both.
        margin = np.minimum(0.5 * tolerance / np.maximum(width, _TINY), 0.5)
        x = x_1 + np.clip(fraction, margin, 1.0 - margin) * (x_2 - x_1)
        x = np.where(ended, best, x)
        f = evaluated(x)
        same = np.sign(f) == np.sign(f_1)  # as x_1: the root lies between x and x_2
        x_3, f_3 = np.where(same, x_1, x_2), np.where(same, f_1, f_2)
        x_2, f_2 = np.where(same, x_2, x_1), np.where(same, f_2, f_1)
        x_1, f_1 = x, f
        fraction = _interpolated(x_1, x_2, x_3, f_1, f_2, f_3)
    raise NotConverged(f"no root within {_MAX_ITERATIONS} iterations", iterations=_MAX_ITERATIONS)


def _interpolated(
    x_1: FloatArray,
    x_2: FloatArray,
    x_3: FloatArray,
    f_1: FloatArray,
    f_2: FloatArray,
    f_3: FloatArray,
) -> FloatArray:
    """Where the inverse parabola vanishes, from x_1 to x_2, or ½ where f may not be monotone."""
    with np.errstate(all="ignore"):
        xi, phi = (x_1 - x_2) / (x_3 - x_2), (f_1 - f_2) / (f_3 - f_2)
        usable = (1.0 - np.sqrt(1.0 - xi) < phi) & (phi < np.sqrt(xi))
        alpha = (x_3 - x_1) / (x_2 - x_1)
        fraction = f_1 / (f_1 - f_2) * f_3 / (f_3 - f_2) - alpha * f_1 / (f_3 - f_1) * f_2 / (
            f_2 - f_3
        )
        return np.where(usable & np.isfinite(fraction), fraction, 0.5)


def bracket_root(
    function: Callable[[float], float], start: float, step: float, *, limit: float
) -> tuple[float, float, tuple[float, float]]:
    """Two neighbouring places with a change of sign between them, and f there, for `find_root`.

    Goes from `start` in steps that double, as far as `limit` from it; NotConverged beyond. A root
    at the start is both places.
    """
    here, value = start, function(start)
    if value == 0.0:
        return start, start, (value, value)
    while abs(here - start) < limit:
        there = here + step
        beyond = function(there)
        if value * beyond <= 0.0:
            return here, there, (value, beyond)
        here, value, step = there, beyond, 2.0 * step
    raise NotConverged(f"no change of sign between {start:.6g} and {here:.6g}")


def _first(x: FloatArray, where: np.ndarray) -> str:
    return f"{float(np.ravel(x)[np.flatnonzero(where)[0]]):.6g}"
