"""Roots between two places, by Brent's method of SciPy, which is loaded with the first root."""

from __future__ import annotations

from collections.abc import Callable

from ..core.errors import NotConverged

_MOST = 1000
_ROUNDING = 2.0**-50  # the finest relative tolerance that SciPy takes
_TINY = 1e-300


def root_between(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    relative: float = 0.0,
    absolute: float = 0.0,
) -> float:
    """Where a continuous function with values of two signs at the ends vanishes.

    Stops when the root is known to either tolerance, or to rounding.
    """
    from scipy.optimize import brentq

    ends = {low: function(low), high: function(high)}
    if not ends[low] * ends[high] <= 0.0:  # NaN has no sign either
        raise NotConverged(f"no change of sign between {low:.6g} and {high:.6g}")
    root, report = brentq(
        lambda x: ends[x] if x in ends else function(x),
        low,
        high,
        xtol=max(absolute, _TINY),
        rtol=max(relative, _ROUNDING),
        maxiter=_MOST,
        full_output=True,
        disp=False,
    )
    if not report.converged:
        raise NotConverged(f"no root found between {low:.6g} and {high:.6g}", iterations=_MOST)
    return float(root)
