"""Averages of sampled functions at equispaced places, by panels that they share."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import function
from featurestep.functions.activations import NAMED
from featurestep.functions.lattices import IN_NORM, ranges

FUNCTIONS = {
    "tanh": NAMED["tanh"],
    "gelu": NAMED["gelu"].centred(),
    "smooth": function(lambda s: np.sin(s + 0.6)),
    "kinks": function(lambda s: np.maximum(s - 0.3, 0.0) + np.abs(s + 1.0), kinks=(-1.0, 0.3)),
    "jump": function(lambda s: np.sign(s - 0.2) + np.tanh(s), kinks=(0.2,)),
}


@pytest.mark.parametrize("norm", [0.05, 1.0, 9.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_averages_are_those_of_every_place(name, norm):
    """In units of f's size there; panels of the widest hold many breaks."""
    f, rng = FUNCTIONS[name], np.random.default_rng(3)
    rho = norm * rng.uniform(0.8, 1.6, 5)
    first, counts = rho * rng.uniform(-12.0, 3.0, 5), np.array([1, 11, 12, 13, 90])
    size = np.repeat(rho, counts)
    t = np.repeat(first, counts) + ranges(counts) * size / IN_NORM
    found, expected = f.averages_on_lattices(rho, first, counts, 4), f.averages(size, t, 4)
    whole = np.sqrt(expected[0] ** 2 + (size * expected[1]) ** 2 + expected[-1])
    assert found.shape == (6, counts.sum())
    for k in range(5):
        assert np.all(np.abs(found[k] - expected[k]) * size**k <= 3e-11 * (whole + 1e-3)), k
    assert np.all(np.abs(found[-1] - expected[-1]) <= 3e-11 * (whole**2 + 1e-6))


def test_a_closed_form_is_used_where_there_is_one():
    f, rho, first, counts = NAMED["erf"], np.array([1.5]), np.array([-2.0]), np.array([40])
    t = -2.0 + np.arange(40) * 1.5 / IN_NORM
    assert np.all(f.averages_on_lattices(rho, first, counts, 2) == f.averages(1.5, t, 2))
