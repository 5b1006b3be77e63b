"""The kernel baseline against the infinitely wide network, and what predictions leave out."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import InvalidProblem, Problem, predict, simulate
from featurestep.figures.base import SHIFTED_SINE, left_out, tilt
from featurestep.figures.kernel import kernel_error


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


def test_the_tilt_is_the_gradient_to_first_order():
    # E[y σ′(w·x) x] of the target H1 + 2H2 for β⋆·w = t, against its value and slope at t = 0
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    weight = weight / weight.sum()
    t = 1e-3
    along, across = z[:, None], z[None, :]  # β⋆·x, and x along w less β⋆
    y = along + 2.0 * (along**2 - 1.0)
    mass = (
        weight[:, None] * weight[None, :] * y * np.cos(t * along + (1 - t**2) ** 0.5 * across + 0.6)
    )
    found = np.array([(mass * along).sum(), (mass * across).sum()])
    c = np.exp(-0.5) * np.array([np.sin(0.6), np.cos(0.6), -np.sin(0.6) / 2, -np.cos(0.6) / 6])
    expected = np.array([c[1] + 8.0 * t * c[2], 6.0 * t * c[3]])
    assert found == pytest.approx(expected, abs=20 * t**2)
    problem = stepped("constant", "H1 + 2*H2")
    assert tilt(problem) == pytest.approx(abs(8.0 * c[2]), rel=1e-6)
    assert tilt(stepped("constant", "H1")) == pytest.approx(abs(6.0 * c[3]), rel=1e-6)


def test_what_is_left_out_is_known():
    steps = {"step_size": [0.1, 250**0.5]}
    assert left_out(stepped("rademacher", "H1").vary(**steps)).tolist() == [0, 1]
    assert left_out(stepped("constant", "H1").vary(**steps)).tolist() == [1, 1]
    odd = stepped("constant", "H1 + H2/sqrt(2)").replace(activation="tanh")
    assert left_out(odd.vary(**steps)).tolist() == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize(("law", "sign"), [("constant", 1), ("rademacher", -1)])
def test_what_is_left_out_is_not_small(law, sign):
    problem = stepped(law, "H1 + H2/sqrt(2)")
    found = simulate(problem, seeds=24, variants=("trained", "srf")).dataset["test_error"]
    apart = sign * (found.sel(variant="trained") / found.sel(variant="srf") - 1.0).values
    assert apart.mean() - 4 * apart.std(ddof=1) / apart.size**0.5 > 0.02
