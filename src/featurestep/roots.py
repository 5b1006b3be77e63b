"""Roots between two places, by Chandrupatla's method: SciPy's optimisers take long to load."""

from __future__ import annotations

from collections.abc import Callable

from .errors import NotConverged

_MOST = 1000
_ROUNDING = 2.0**-52


def root_between(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    relative: float = 0.0,
    absolute: float = 0.0,
) -> float:
    """Where a continuous function with values of two signs at the ends vanishes.

    Inverse quadratic interpolation where three values allow it, and halving otherwise; stops when
    the root is known to either tolerance, or to rounding.
    """
    a, b = high, low
    at_a, at_b = function(a), function(b)
    if not at_a * at_b <= 0.0:
        raise NotConverged(f"no change of sign between {low:.6g} and {high:.6g}")
    t = 0.5
    for _ in range(_MOST):
        best, value = (a, at_a) if abs(at_a) < abs(at_b) else (b, at_b)
        least = max(relative, _ROUNDING) * abs(best) + absolute
        if value == 0.0 or abs(b - a) <= 2.0 * least:
            return best
        t = min(max(t, least / abs(b - a)), 1.0 - least / abs(b - a))
        new = a + t * (b - a)
        at_new = function(new)
        if (at_new > 0.0) == (at_a > 0.0):
            c, at_c = a, at_a
        else:
            c, at_c, b, at_b = b, at_b, a, at_a
        a, at_a = new, at_new
        t = _inverse_quadratic((a, at_a), (b, at_b), (c, at_c))
    raise NotConverged(f"no root found between {low:.6g} and {high:.6g}", iterations=_MOST)


def _inverse_quadratic(
    first: tuple[float, float], second: tuple[float, float], third: tuple[float, float]
) -> float:
    """The share of the way from the first place to the second at which to look next."""
    (a, at_a), (b, at_b), (c, at_c) = first, second, third
    if at_a == at_b or at_c in (at_a, at_b):
        return 0.5
    place, share = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
    if share**2 >= place or (1.0 - share) ** 2 >= 1.0 - place:
        return 0.5
    return at_a / (at_b - at_a) * at_c / (at_b - at_c) + (c - a) / (b - a) * at_a / (
        at_c - at_a
    ) * at_b / (at_c - at_b)
