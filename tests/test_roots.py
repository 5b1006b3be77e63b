"""Roots between two places: the definition, few evaluations, hard functions, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from featurestep.core.errors import NotConverged
from featurestep.functions.roots import root_between

SMOOTH: list[tuple[Callable[[float], float], float, float, float]] = [
    (lambda x: x * x - 2.0, 0.0, 2.0, math.sqrt(2.0)),
    (lambda x: math.cos(x) - x, 0.0, 1.0, 0.7390851332151607),
    (lambda x: math.exp(-x) - 1e-6, 0.0, 100.0, math.log(1e6)),
    (lambda x: math.atan(x - 3.0), -50.0, 90.0, 3.0),
    (lambda x: 1.0 / x - 1e-5, 1e-9, 1e9, 1e5),
]


@pytest.mark.parametrize(("function", "low", "high", "root"), SMOOTH)
def test_the_root_to_rounding_either_way_around(
    function: Callable[[float], float], low: float, high: float, root: float
) -> None:
    assert root_between(function, low, high) == pytest.approx(root, rel=1e-13)
    assert root_between(function, high, low) == pytest.approx(root, rel=1e-13)
    assert root_between(lambda x: -function(x), low, high) == pytest.approx(root, rel=1e-13)


def test_a_smooth_root_takes_few_evaluations() -> None:
    places: list[float] = []

    def function(x: float) -> float:
        places.append(x)
        return math.cos(x) - x

    root_between(function, 0.0, 1.0, absolute=1e-12)
    assert len(places) <= 10


def test_a_tolerance_is_kept_and_used() -> None:
    places: list[float] = []

    def cube(x: float) -> float:
        places.append(x)
        return (x - 0.3) ** 3

    assert abs(root_between(cube, -1.0, 2.0, absolute=1e-3) - 0.3) <= 2e-3
    coarse = len(places)
    root_between(cube, -1.0, 2.0, absolute=1e-9)
    assert coarse < len(places) - coarse


def test_a_jump_is_found_and_an_end_may_be_the_root() -> None:
    found = root_between(lambda x: 1.0 if x > 0.123 else -1.0, 0.0, 1.0)
    assert found == pytest.approx(0.123, rel=1e-12)
    assert root_between(lambda x: x, 0.0, 1.0) == 0.0
    assert root_between(lambda x: x - 1.0, 0.0, 1.0) == 1.0


@pytest.mark.parametrize("function", [lambda x: x + 2.0, lambda x: math.nan])
def test_no_change_of_sign_is_refused(function: Callable[[float], float]) -> None:
    with pytest.raises(NotConverged, match="no change of sign"):
        root_between(function, 0.0, 1.0)
