"""The few special functions, with SciPy's loaded when first needed: the import stays fast."""

from __future__ import annotations

import numpy as np

from ..core.threads import let_idle_threads_sleep
from ..core.types import FloatArray

let_idle_threads_sleep()


def erf(x: FloatArray) -> FloatArray:
    """2/√π ∫₀ˣ e^{−t²} dt."""
    from scipy.special import erf as function

    return np.asarray(function(x))


def erfc(x: FloatArray) -> FloatArray:
    """1 − erf(x), accurate in the upper tail."""
    from scipy.special import erfc as function

    return np.asarray(function(x))


def ndtr(x: FloatArray) -> FloatArray:
    """Φ(x), the standard normal distribution function."""
    from scipy.special import ndtr as function

    return np.asarray(function(x))


def normal_quantile(probability: float) -> float:
    """The x with Φ(x) = probability."""
    from scipy.special import ndtri as function

    return float(function(probability))


def owens_t(h: FloatArray, a: FloatArray) -> FloatArray:
    """Owen's T(h, a) = (1/2π)∫₀ᵃ e^{−h²(1+x²)/2}/(1+x²) dx."""
    from scipy.special import owens_t as function

    return np.asarray(function(h, a))


def factorials(count: int) -> FloatArray:
    """0!, 1!, …, (count − 1)! as floats."""
    steps = np.maximum(np.arange(count), 1).astype(np.float64)
    return np.asarray(np.cumprod(steps), dtype=np.float64)
