"""The kernel baseline against the infinitely wide untrained network, and the omitted stretch."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import InvalidProblem, Problem, predict, simulate
from featurestep.figures.base import SHIFTED_SINE, left_out, stretch
from featurestep.figures.kernel import kernel_error


def wide(problem, factor):
    """The same penalty on √N·a at a larger width."""
    return problem.replace(width=problem.width * factor, ridge=problem.ridge * factor)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("n", [300, 2000])
def test_it_is_the_untrained_network_as_the_width_grows(activation, n):
    problem = Problem(
        activation=activation,
        centre=True,
        target="H1 + H2/sqrt(2)",
        n=n,
        d=500,
        width=500,
        step_size=0.0,
        ridge=0.2,
        noise_std=0.4,
    )
    expected = kernel_error(problem)
    gaps = [abs(predict(wide(problem, k)).test_error - expected) for k in (10**3, 10**5)]
    assert gaps[1] < 1e-4 * expected
    assert gaps[1] < gaps[0] / 50
    assert kernel_error(wide(problem, 10)) == pytest.approx(expected, rel=1e-12)


def test_an_uncentred_activation_is_refused():
    problem = Problem(activation="relu", n=100, d=50, width=50, step_size=0.0, ridge=0.1)
    with pytest.raises(InvalidProblem, match="activation must be centred"):
        kernel_error(problem)


def stretched(law, target):
    return Problem(
        activation=SHIFTED_SINE,
        centre=True,
        target=target,
        n=500,
        d=125,
        width=250,
        n_step=4000,
        ridge=0.1,
        step_size=250**0.5,
        readout=law,
    )


def test_the_stretch_needs_quadratic_parts_on_both_sides():
    assert stretch(stretched("constant", "H1 + H3/sqrt(6)")) == 0.0
    c_2 = np.sin(0.6) * np.exp(-0.5) / 2
    problem = stretched("constant", "H1 + H2/sqrt(2)")
    assert stretch(problem) == pytest.approx(4 * c_2 / 2**0.5, rel=1e-6)


def test_what_is_left_out_is_known():
    steps = {"step_size": [0.1, 250**0.5]}
    assert left_out(stretched("rademacher", "H1 + H2/sqrt(2)").vary(**steps)).tolist() == [0, 1]
    assert left_out(stretched("rademacher", "H1").vary(**steps)).tolist() == [0, 0]
    assert left_out(stretched("constant", "H1").vary(**steps)).tolist() == [1, 1]
    odd = stretched("constant", "H1 + H2/sqrt(2)").replace(activation="tanh")
    assert left_out(odd.vary(**steps)).tolist() == [0, 0]


@pytest.mark.slow
def test_what_the_stretch_leaves_out_is_not_small():
    problem = stretched("constant", "H1 + H2/sqrt(2)")
    found = simulate(problem, seeds=24, variants=("trained", "srf")).dataset["test_error"]
    apart = (found.sel(variant="trained") / found.sel(variant="srf") - 1.0).values
    assert apart.mean() - 4 * apart.std(ddof=1) / apart.size**0.5 > 0.02
