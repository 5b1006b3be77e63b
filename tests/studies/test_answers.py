"""Answers hold on data that bear them out, and fail on each way to contradict them."""

from __future__ import annotations

import io

import numpy as np
import pytest
import xarray

from featurestep.figures import encoded
from featurestep.figures.base import close, larger
from featurestep.plots import render
from featurestep.studies import STUDIES, StudyClaimFailed, given_rows
from featurestep.studies.corruption import flipped, predicted_cosine
from featurestep.studies.given_rows import best_readout, left_vectors, network_of, overlap, stepped

from .answers import FALSE, TRUE, changed


@pytest.mark.parametrize("name", TRUE)
def test_true_data_pass_and_are_drawn_the_same_after_a_round_trip(name):
    study, data = STUDIES[name], TRUE[name]()
    assert all(claim.holds for claim in study.check(data))
    read = xarray.load_dataset(io.BytesIO(encoded(data)), engine="scipy")
    assert study.check(read) == study.check(data)
    pictures = [render(study.draw(each), "svg") for each in (data, read)]
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize("name", TRUE)
def test_every_claim_has_data_that_contradict_it(name):
    """So no claim is one that cannot fail."""
    claims = STUDIES[name].check(TRUE[name]())
    words = [text for study, _, _, _, text in FALSE if study == name]
    for claim in claims:
        assert any(each in claim.text for each in words), claim.text


@pytest.mark.parametrize(("name", "variable", "where", "value", "words"), FALSE)
def test_false_data_fail_with_the_claim_they_contradict(name, variable, where, value, words):
    data = changed(TRUE[name](), variable, where, value)
    with pytest.raises(StudyClaimFailed, match=f"study {name} contradicts") as caught:
        STUDIES[name].check(data)
    failed = [claim.text for claim in caught.value.claims if not claim.holds]
    assert any(words in text for text in failed), failed


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUE)
def test_quick_studies_bear_out_their_answers(name):
    study, told = STUDIES[name], []
    data = study.compute(True, told.append)
    study.draw(data)
    assert told == sorted(told)
    try:
        assert study.check(data)
    except StudyClaimFailed as failure:
        pytest.fail(str(failure))


def test_claims_are_judged_in_standard_errors_and_nan_fails():
    def two(first, second):
        """Two draws a mean ± an error have that mean and that error."""
        return xarray.DataArray([[first, second]], dims=("point", "seed"))

    assert close("e", [1.0], two(1.1, 1.3), share=0.01).holds
    assert close("e", [1.0], two(1.02 - 1e-9, 1.02 + 1e-9), share=0.03).holds
    assert not close("e", [1.0], two(1.19, 1.21), share=0.01).holds
    assert not close("e", [1.0], two(np.nan, 1.0), share=0.01).holds
    draws = xarray.DataArray([0.9, 1.0, 1.1], dims="seed")
    assert larger("e", draws + 0.5 + 0.01 * draws, draws).holds
    assert not larger("e", draws, draws + 0.5 + 0.01 * draws).holds


def test_flips_are_as_many_as_asked_and_adversarial_ones_take_the_most():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(1000)
    for kind in ("by chance", "adversarial"):
        assert np.sum(flipped(z, z, 0.1, kind, rng) != z) == 100
    left = [np.mean(flipped(z, z, 0.1, kind, rng) * z) for kind in ("by chance", "adversarial")]
    assert left[1] < left[0] - 0.3
    assert predicted_cosine(0.0, "by chance", 0.0) == pytest.approx(1.0)
    assert predicted_cosine(0.5, "by chance", 0.1) == pytest.approx(0.0, abs=0.01)


def test_the_readout_is_ridge_regression_with_an_intercept(monkeypatch):
    monkeypatch.setattr(given_rows, "RIDGES", (1e-9,))
    rng = np.random.default_rng(1)
    F, y = rng.standard_normal((50, 8)) + 2.0, rng.standard_normal(50) + 5.0
    found = best_readout((F, y), (F, y))
    design = np.column_stack([np.ones(50), F])
    expected = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose(found.guess, expected, atol=1e-6)
    np.testing.assert_allclose(F @ found.a_hat + found.offset, found.guess, atol=1e-9)


def test_spikes_of_a_planted_direction_carry_it():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((2000, 20))
    network = network_of(20, width=100, activation="relu", seed=0)
    layer = stepped(network, X, X[:, 0], size=2.0)
    values, left = left_vectors(layer.features(X), 3)
    assert values[0] > 2 * values[1]
    assert overlap(left[0], X[:, 0]) > 0.9
    assert overlap(left[0], X[:, 1]) < 0.1
    nothing = stepped(network, X, X[:, 0], size=0.0)
    np.testing.assert_array_equal(nothing.W, network.W0)
