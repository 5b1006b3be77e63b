"""Critical steps: what they say must hold on both sides of them."""

import math

import numpy as np
import pytest

from featurestep import InvalidProblem, Problem, critical_steps, predict, spectrum
from featurestep.functions.nonlinearity import normalised_hermite
from featurestep.functions.quadrature import stretched_normal
from featurestep.theory.spectra.critical import Halves


def problem(**changes):
    base = {
        "activation": "relu", "centre": True, "target": "H1 + H2/sqrt(2)", "ridge": 0.1,
        "n": 2000, "d": 1000, "width": 1500, "step_exponent": 0.3, "readout": "rademacher",
    }  # fmt: skip
    return Problem(**{**base, **changes})


def share_learned(p, degree):
    kappa, weight = stretched_normal(((0.0, 0.3),), 1.0, 0.1, 9.0)
    found = predict(p)
    h = normalised_hermite(degree, kappa)[degree]
    return (weight * h) @ found.learned(kappa) / ((weight * h) @ found.target_along(kappa))


@pytest.fixture(scope="module")
def relu():
    return critical_steps(problem(), degrees=3)


def test_spikes_appear_at_their_steps(relu):
    for degree, before in ((1, 0), (2, 1)):
        step = relu[degree].spike_step
        below, above = (
            len(spectrum(problem().replace(step_size=factor * step)).spikes)
            for factor in (0.99, 1.01)
        )
        assert (below, above) == (before, before + 1)
        assert relu[degree].spike_exponent == pytest.approx(math.log(step) / math.log(2000))
    assert relu[1].spike_step < relu[2].spike_step


def test_half_is_learned_at_half_steps(relu):
    gaussian = problem(readout="gaussian")  # of degree 2 two values never learn half
    assert "at most" in relu[2].notes[0]
    second, note = Halves(gaussian, relu.largest_step, 2).find(2)
    assert note == ""
    for p, degree, step in ((problem(), 1, relu[1].half_step), (gaussian, 2, second)):
        at = p.replace(step_size=step)
        assert share_learned(at, degree) == pytest.approx(0.5, abs=1e-4)


def test_published_exponents_are_the_ends_of_the_intervals(relu):
    assert relu[1].published_exponent == 0.0
    assert relu[2].published_exponent == 0.25
    assert relu[3].published_exponent is None  # c_3 = 0 for a ReLU


def test_what_cannot_be_is_said(relu):
    assert relu[3].spike_step is None
    assert "no spike of degree 3" in relu[3].notes[0]
    assert relu[3].half_step is None
    assert "no part of degree 3" in relu[3].notes[1]
    linear = problem(activation="identity", readout="constant", ridge=1e-3, n=20000)
    easy = critical_steps(linear, degrees=1)
    assert any("without a step" in note for note in easy[1].notes)


def test_a_law_with_one_value_has_one_spike():
    found = critical_steps(problem(readout="constant"), degrees=2)
    assert found[1].spike_step is not None
    assert found[2].spike_step is None


@pytest.mark.slow
def test_finite_size_steps_approach_the_published_exponents():
    exponents = [
        critical_steps(problem(n=n, d=n // 2, width=3 * n // 4, readout="gaussian"), degrees=2)[
            2
        ].spike_exponent
        for n in (10**3, 10**9)
    ]
    assert exponents[0] > exponents[1] > 0.25
    assert exponents[1] == pytest.approx(0.25, abs=0.03)


def test_the_result_is_plain(relu):
    told = relu.as_dict()
    assert [row["degree"] for row in told["degrees"]] == [1, 2, 3]
    assert told["largest_step"] == pytest.approx(4 * math.sqrt(1500))
    assert [step.degree for step in relu] == [1, 2, 3]
    assert np.isfinite(told["degrees"][0]["spike_step"])


def test_bad_input_is_refused(relu):
    with pytest.raises(InvalidProblem, match="problem must be a Problem"):
        critical_steps("relu")
    with pytest.raises(InvalidProblem, match="degrees must be from 1 to 6"):
        critical_steps(problem(), degrees=7)
    with pytest.raises(InvalidProblem, match="degree must be from 1 to 3"):
        relu[4]
