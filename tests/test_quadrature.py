"""Nodes of readout laws for few groups of neurons."""

import numpy as np
import pytest

from featurestep.functions.quadrature import bent_law, gauss_law


@pytest.mark.parametrize("law", ["gaussian", "uniform"])
@pytest.mark.parametrize("count", [4, 5, 6])
def test_without_a_bend_nodes_are_those_of_gauss(law, count):
    expected = gauss_law(law, count)
    for end in (None, float(expected[0][-1])):
        for found, known in zip(bent_law(law, count, 1e-9, end), expected, strict=True):
            np.testing.assert_allclose(found, known, atol=1e-9)


@pytest.mark.parametrize("count", [5, 6])
def test_an_end_is_a_node_and_functions_of_low_degree_stay_exact(count):
    g, w = bent_law("gaussian", count, 0.4, 3.0)
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
        for g, w in (gauss_law("gaussian", 6), bent_law("gaussian", 6, 0.7))
    ]
    assert gaps[1] < 0.2 * gaps[0]
