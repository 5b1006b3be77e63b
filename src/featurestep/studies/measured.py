"""What studies share: means over draws with their errors, and the claims made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..figures.claims import Claim
from ..problem import Problem
from ..types import FloatArray


def sizes_of(problem: Problem) -> dict[str, int]:
    """The sizes that a study's data are recorded with."""
    return {name: getattr(problem, name) for name in ("n", "d", "width", "n_step")}


def over_draws(values: Any, axis: int = -1) -> tuple[FloatArray, FloatArray]:
    """Means and standard errors over an axis of draws."""
    array = np.asarray(values, dtype=np.float64)
    error = array.std(axis=axis, ddof=1) / array.shape[axis] ** 0.5
    return np.asarray(array.mean(axis=axis)), np.asarray(error)


def paired(left: Any, right: Any) -> tuple[float, float]:
    """Mean difference left − right of the same draws, and its standard error."""
    mean, error = over_draws(np.asarray(left) - np.asarray(right))
    return float(mean), float(error)


def close(
    what: str, predicted: Any, simulated: Any, error: Any, *, share: float, errors: float = 3.0
) -> Claim:
    """Theory within so many standard errors of the simulation, or within a share of it."""
    predicted, simulated, error = (
        np.asarray(a, dtype=float) for a in (predicted, simulated, error)
    )
    gap = np.abs(simulated - predicted)
    holds = np.all(gap <= np.maximum(errors * error, share * np.abs(predicted)))
    worst = float(np.max(gap / np.abs(predicted)))
    text = (
        f"{what}: theory within {errors:g} s.e. or {share:.0%} at {predicted.size} points "
        f"(largest gap {worst:.1%})"
    )
    return Claim(text, bool(holds and np.all(np.isfinite(gap))))


def larger(what: str, left: Any, right: Any, *, by: float = 3.0, least: float = 0.0) -> Claim:
    """left − right over the same draws is above `least` by so many standard errors."""
    mean, error = paired(left, right)
    text = f"{what}: {np.mean(left):.4g} against {np.mean(right):.4g}"
    return Claim(
        f"{text}, apart by {mean:.3g} ± {error:.2g}",
        bool(mean > least and mean - least >= by * error),
    )
