"""The kernel baseline against the infinitely wide network, and what predictions leave out."""

from __future__ import annotations

import pytest

from featurestep import InvalidProblem, Problem, predict, simulate
from featurestep.figures.base import SHIFTED_SINE
from featurestep.theory.baselines import kernel_error


def wide(problem, factor):
    """The same penalty on √N·a at a larger width."""
    return problem.replace(width=problem.width * factor, ridge=problem.ridge * factor)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("n", [300, 2000])
def test_it_is_the_untrained_network_as_the_width_grows(activation, n):
    """To leading order in d, as isotropic weights are: neither has the samples' norms."""
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
    gaps = [
        abs(predict(wide(problem, k), method="isotropic").test_error - expected)
        for k in (10**3, 10**5)
    ]
    assert gaps[1] < 1e-4 * expected
    assert gaps[1] < gaps[0] / 50
    assert kernel_error(wide(problem, 10)) == pytest.approx(expected, rel=1e-12)


def test_an_uncentred_activation_is_refused():
    problem = Problem(activation="relu", n=100, d=50, width=50, step_size=0.0, ridge=0.1)
    with pytest.raises(InvalidProblem, match="activation must be centred"):
        kernel_error(problem)


def stepped(law, target):
    """A step of size √N on many samples: ηa_j = ±1."""
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


@pytest.mark.slow
@pytest.mark.parametrize(("law", "sign"), [("constant", 1), ("rademacher", -1)])
def test_what_isotropic_weights_leave_out_is_not_small(law, sign):
    problem = stepped(law, "H1 + H2/sqrt(2)")
    found = simulate(problem, seeds=24, variants=("trained", "srf")).dataset["test_error"]
    apart = sign * (found.sel(variant="trained") / found.sel(variant="srf") - 1.0).values
    assert apart.mean() - 4 * apart.std(ddof=1) / apart.size**0.5 > 0.02
