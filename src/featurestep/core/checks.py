"""Rules for numbers, each broken with one line: the parameter, the rule, the value got."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .errors import InvalidProblem

MAX_SIZE = 10**15


def _is_number(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    return isinstance(value, (int, float, np.integer, np.floating))


@contextmanager
def readable(name: str, rule: str, value: Any) -> Iterator[None]:
    """What Python cannot read as numbers breaks the rule."""
    try:
        yield
    except (TypeError, ValueError):
        raise InvalidProblem(name, rule, value) from None


def positive(name: str, value: Any) -> float:
    """A number above 0."""
    return number(name, value, "must be > 0", lambda v: v > 0)


def non_negative(name: str, value: Any) -> float:
    """A number that is 0 or above."""
    return number(name, value, "must be >= 0", lambda v: v >= 0)


def whole_number(name: str, value: Any) -> int:
    """A size: a whole number, also when it comes as 1e6."""
    rule = f"must be a whole number from 1 to {MAX_SIZE:.0e}"
    if not _is_number(value):
        raise InvalidProblem(name, rule, value)
    if not 1 <= value <= MAX_SIZE or value != int(value):
        raise InvalidProblem(name, rule, value)
    return int(value)


def number(name: str, value: Any, rule: str, test: Callable[[float], bool]) -> float:
    """A finite real number that passes the test behind its rule."""
    if not _is_number(value):
        raise InvalidProblem(name, f"{rule} (a number)", value)
    if not math.isfinite(value) or not test(float(value)):
        raise InvalidProblem(name, rule, value)
    return float(value)


def one_of(name: str, value: Any, known: Collection[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in known:
        raise InvalidProblem(name, f"must be one of {', '.join(known)}", value)
    return value


def rounded(name: str, what: str, value: float) -> int:
    """A size computed from ratios, rounded to a whole number."""
    if not 0.5 <= value <= MAX_SIZE:
        raise InvalidProblem(name, f"must give {what} between 1 and {MAX_SIZE:.0e}", value)
    return max(1, round(value))
