"""Gauss rules: of a measure, and of readout laws for few groups of neurons."""

import numpy as np
import pytest
from scipy import special

from featurestep.functions.quadrature import (
    gauss_from_measure,
    gauss_law,
    normal_density,
    normal_law,
    saturating_gauss_law,
)


@pytest.mark.parametrize("law", ["gaussian", "uniform"])
@pytest.mark.parametrize("count", [4, 5, 6])
def test_without_a_bend_nodes_are_those_of_gauss(law, count):
    expected = gauss_law(law, count)
    for end in (None, float(expected[0][-1])):
        for found, known in zip(saturating_gauss_law(law, count, 1e-9, end), expected, strict=True):
            np.testing.assert_allclose(found, known, atol=1e-9)


@pytest.mark.parametrize("count", [5, 6])
def test_an_end_is_a_node_and_functions_of_low_degree_stay_exact(count):
    g, w = saturating_gauss_law("gaussian", count, 0.4, 3.0)
    assert g[-1] == pytest.approx(3.0, abs=1e-12)
    assert g[0] == -g[-1]
    x, p = gauss_law("gaussian", 150)
    for power in range(2 * count - 3):
        average = p @ (x / np.sqrt(1 + 0.16 * x**2)) ** power
        assert w @ (g / np.sqrt(1 + 0.16 * g**2)) ** power == pytest.approx(average, abs=1e-9)


@pytest.mark.parametrize("level", [lambda g: np.exp(-(g**2)), lambda g: 1 / (1 + 2 * g**2)])
def test_functions_that_level_off_are_integrated_better(level):
    x, p = gauss_law("gaussian", 150)
    gaps = [
        abs(w @ level(g) - p @ level(x))
        for g, w in (gauss_law("gaussian", 6), saturating_gauss_law("gaussian", 6, 0.7))
    ]
    assert gaps[1] < 0.2 * gaps[0]


def test_the_rule_of_a_measure_is_exact_to_its_degree_and_serves_other_measures():
    rng = np.random.default_rng(0)
    x, w, other = (
        np.sort(rng.uniform(-2.0, 3.0, 300)),
        rng.uniform(0.0, 2.0, 300),
        rng.normal(size=300),
    )
    w[:40] = other[:40] = 0.0  # points without weight
    rule = gauss_from_measure(x, w, 7)
    for power in range(14):
        assert rule.weights @ rule.nodes**power == pytest.approx(w @ x**power, rel=1e-11)
    for power in range(7):
        assert rule.weights_for(other) @ rule.nodes**power == pytest.approx(
            other @ x**power, rel=1e-9
        )


def test_given_ends_are_nodes():
    x, w = np.polynomial.legendre.leggauss(40)
    rule = gauss_from_measure(x, w, 5, ends=(-1.0, 1.5))
    np.testing.assert_allclose(rule.nodes[[0, -1]], [-1.0, 1.5], atol=1e-13)
    for power in range(8):
        assert rule.weights @ rule.nodes**power == pytest.approx(w @ x**power, abs=1e-13)
    for power in range(5):
        found = rule.weights_for(w * np.exp(x)) @ rule.nodes**power
        assert found == pytest.approx((w * np.exp(x)) @ x**power, abs=1e-12)


def test_a_measure_on_few_points_is_its_own_rule():
    x, w = np.array([2.0, -1.0, 2.0, 0.5]), np.array([0.1, 0.4, 0.2, 0.3])
    rule = gauss_from_measure(x, w, 6)
    np.testing.assert_allclose(rule.nodes, [-1.0, 0.5, 2.0], atol=1e-13)
    np.testing.assert_allclose(rule.weights, [0.4, 0.3, 0.3], atol=1e-13)


def test_the_normal_law_from_a_table():
    x = np.concatenate([np.linspace(-8.99, 8.99, 20_011), [-300.0, -12.0, 12.0, 300.0]])
    below, density = normal_law(x)
    inside = np.abs(x) < 9.0
    assert below == pytest.approx(special.ndtr(x), abs=1e-15)
    assert below[inside] == pytest.approx(special.ndtr(x[inside]), rel=1e-12)
    assert density[inside] == pytest.approx(normal_density(x[inside]), rel=1e-13)
