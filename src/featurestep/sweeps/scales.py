"""The numbers of grids: how many, how far, and rounded as a field takes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..checks import whole_number
from ..errors import InvalidProblem
from ..types import FloatArray

MAX_POINTS = 1_000_000  # a few kilobytes of the driver's memory each
SCALES = ("linear", "log")
_SIZES = ("n", "d", "width", "n_step")


def placed(field: str, points: FloatArray) -> tuple[Any, ...]:
    """Points as a field takes them: sizes are whole numbers."""
    if field in _SIZES:
        return tuple(round(p) for p in points.tolist())
    return tuple(short(p) for p in points.tolist())


def short(value: float) -> float:
    """Twelve digits, so that 0.3 reads 0.3 however it was computed."""
    return float(f"{value:.12g}")


def finite(path: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidProblem(path, "must be a number", value)
    if not math.isfinite(value):
        raise InvalidProblem(path, "must be finite", value)
    return float(value)


def positive_ends(path: str, low: float, high: float) -> None:
    """Refuse ends that have no logarithm."""
    if not (low > 0 and high > 0):
        raise InvalidProblem(path, "must have ends > 0 on a log scale", [low, high])


def count_of(path: str, value: Any) -> int:
    """How many points."""
    count = whole_number(path, value)
    if count > MAX_POINTS:
        raise InvalidProblem(path, f"must be at most {MAX_POINTS:.0e}", value)
    return count
