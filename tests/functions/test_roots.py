"""Roots between two places: the definition, few evaluations, hard functions, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from featurestep import NotConverged
from featurestep.core.types import FloatArray
from featurestep.functions.roots import bracket_root, find_root

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
    assert find_root(function, low, high) == pytest.approx(root, rel=1e-13)
    assert find_root(function, high, low) == pytest.approx(root, rel=1e-13)
    assert find_root(lambda x: -function(x), low, high) == pytest.approx(root, rel=1e-13)


def test_a_smooth_root_takes_few_evaluations() -> None:
    places: list[float] = []

    def function(x: float) -> float:
        places.append(x)
        return math.cos(x) - x

    find_root(function, 0.0, 1.0, absolute=1e-12)
    assert len(places) <= 10


def test_a_tolerance_is_kept_and_used() -> None:
    places: list[float] = []

    def cube(x: float) -> float:
        places.append(x)
        return (x - 0.3) ** 3

    assert abs(find_root(cube, -1.0, 2.0, absolute=1e-3) - 0.3) <= 2e-3
    coarse = len(places)
    find_root(cube, -1.0, 2.0, absolute=1e-9)
    assert coarse < len(places) - coarse


def test_a_jump_is_found_and_an_end_may_be_the_root() -> None:
    found = find_root(lambda x: 1.0 if x > 0.123 else -1.0, 0.0, 1.0)
    assert found == pytest.approx(0.123, rel=1e-12)
    assert find_root(lambda x: x, 0.0, 1.0) == 0.0
    assert find_root(lambda x: x - 1.0, 0.0, 1.0) == 1.0


@pytest.mark.parametrize("function", [lambda x: x + 2.0, lambda x: math.nan])
def test_no_change_of_sign_is_refused(function: Callable[[float], float]) -> None:
    with pytest.raises(NotConverged, match="no change of sign"):
        find_root(function, 0.0, 1.0)


def test_an_array_of_searches_is_as_many_searches_of_numbers() -> None:
    power = np.array([2.0, 3.0, 5.0, 40.0])

    def of_numbers(k: float) -> float:
        return find_root(lambda x: x**k - 0.7, 0.0, 3.0, relative=1e-9)

    def of_arrays(x: FloatArray) -> FloatArray:
        assert x.shape == power.shape
        return np.asarray(x**power - 0.7)

    found = find_root(of_arrays, np.zeros(4), np.full(4, 3.0), relative=1e-9)
    assert found.tolist() == list(map(of_numbers, power))
    np.testing.assert_allclose(found, 0.7 ** (1.0 / power), rtol=1e-9)


def test_one_search_without_a_change_of_sign_is_refused_with_its_ends() -> None:
    with pytest.raises(NotConverged, match="no change of sign between 3 and 4"):
        find_root(lambda x: x - 1.5, np.array([1.0, 3.0]), np.array([2.0, 4.0]))


def test_known_values_at_the_ends_are_not_asked_again() -> None:
    places: list[float] = []

    def function(x: float) -> float:
        places.append(x)
        return x**3 - 2.0

    found = find_root(function, 0.0, 2.0, values=(-2.0, 6.0))
    assert found == pytest.approx(2.0 ** (1 / 3), rel=1e-14)
    assert not {0.0, 2.0} & set(places)


@pytest.mark.parametrize("step", [1.0, -1.0])
def test_a_bracket_is_found_in_steps_that_double(step: float) -> None:
    places: list[float] = []

    def function(x: float) -> float:
        places.append(x)
        return x * step - 20.0

    low, high, values = bracket_root(function, 0.0, step, limit=100.0)
    assert places == [k * step for k in (0, 1, 3, 7, 15, 31)]
    assert (low, high, values) == (15 * step, 31 * step, (-5.0, 11.0))
    assert find_root(function, low, high, values=values) == 20.0 * step


def test_a_bracket_ends_at_its_limit_and_may_be_one_place() -> None:
    assert bracket_root(lambda x: x - 1.0, 1.0, 0.5, limit=3.0) == (1.0, 1.0, (0.0, 0.0))
    with pytest.raises(NotConverged, match="no change of sign between 0 and 7"):
        bracket_root(lambda x: x + 1.0, 0.0, 1.0, limit=4.0)
