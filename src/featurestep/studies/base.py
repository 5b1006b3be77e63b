"""Claims that studies make: agreement of theory and draws, and differences between draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.types import xarray
from ..figures import Claim
from ..figures.base import over_seeds

MIN_SEPARATION = 3.0  # standard errors


def close(what: str, predicted: Any, draws: xarray.DataArray, *, share: float) -> Claim:
    """Theory within MIN_SEPARATION standard errors of the draws' mean, or within a share of it."""
    (mean, error), predicted = over_seeds(draws), np.asarray(predicted, dtype=float)
    gap = np.abs(mean.values - predicted)
    holds = np.all(gap <= np.maximum(MIN_SEPARATION * error.values, share * np.abs(predicted)))
    worst = float(np.max(gap / np.abs(predicted)))
    text = (
        f"{what}: theory within {MIN_SEPARATION:g} s.e. or {share:.0%} at {predicted.size} points "
        f"(largest gap {worst:.1%})"
    )
    return Claim(text, bool(holds and np.all(np.isfinite(gap))))


def larger(
    what: str, left: xarray.DataArray, right: xarray.DataArray, *, by: float = MIN_SEPARATION
) -> Claim:
    """left − right over the same draws is above 0 by so many standard errors."""
    mean, error = map(float, over_seeds(left - right))
    text = f"{what}: {float(left.mean()):.4g} against {float(right.mean()):.4g}"
    holds = mean > 0.0 and mean >= by * error
    return Claim(f"{text}, apart by {mean:.3g} ± {error:.2g}", holds)
