"""Claims hold on data that bear them out, and fail on each way to contradict them."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
import xarray

from featurestep import FeaturestepError, predict
from featurestep.figures import (
    FIGURES,
    Claim,
    FigureClaimFailed,
    PaperFigure,
    chosen,
    encoded,
    readout_law,
)
from featurestep.figures.base import agreement, below
from featurestep.plots import render

from .falsified import FALSE, TRUE, changed


@pytest.mark.parametrize("name", FIGURES)
def test_true_data_pass_and_are_drawn_the_same_after_a_round_trip(name):
    figure, data = FIGURES[name], TRUE[name]()
    assert all(claim.holds for claim in figure.check(data))
    read = xarray.load_dataset(io.BytesIO(encoded(data)), engine="scipy")
    assert figure.check(read) == figure.check(data)
    pictures = [render(figure.draw(each), "svg") for each in (data, read)]
    assert pictures[0] == pictures[1]


def test_every_figure_has_data_that_contradict_it():
    assert {name for name, *_ in FALSE} == set(FIGURES) == set(TRUE)


@pytest.mark.parametrize(("name", "variable", "where", "value", "words"), FALSE)
def test_false_data_fail_with_the_claim_they_contradict(name, variable, where, value, words):
    data = changed(TRUE[name](), variable, where, value)
    with pytest.raises(FigureClaimFailed, match=f"figure {name} contradicts") as caught:
        FIGURES[name].check(data)
    failed = [claim.text for claim in caught.value.claims if not claim.holds]
    assert any(words in text for text in failed), failed


def test_a_failure_is_one_of_ours_and_survives_pickling():
    claims = (Claim("2 < 1", False), Claim("1 < 2", True))
    with pytest.raises(FeaturestepError) as caught:
        PaperFigure("x", "", None, None, lambda data: claims).check(None)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.figure, again.claims, str(again)) == ("x", claims, str(caught.value))


def test_agreement_is_excused_by_what_the_notes_admit_and_no_more():
    admitted = [0.0, 0.0, 0.7]
    claim = agreement("e", [1.0, 1.0, 1.0], [1.3, 0.9, 2.0], [0.1, 0.1, 0.1], admitted)
    assert claim.holds
    assert "2 points" in claim.text
    assert "3.0 s.e." in claim.text
    assert "admit up to 70.0%" in claim.text
    assert "100.0% apart" in claim.text
    assert not agreement("e", [1.0, 1.0], [1.3, 2.0], [0.1, 0.1], [0.0, 0.5]).holds
    assert not agreement("e", [1.0], [1.5], [0.1]).holds
    assert not agreement("e", [1.0], [np.nan], [0.1]).holds
    assert not agreement("e", [1.0], [1.0], [0.1], 0.1).holds


def test_a_figure_excuses_what_its_predictions_admit_and_nothing_else(monkeypatch):
    """A readout law of non-zero mean with c_2 ≠ 0 was once excused where no note said why."""
    steps = (0.1, 0.45)
    monkeypatch.setattr(readout_law, "EXPONENTS", steps)
    problem = readout_law._problem(240, readout_law.TARGETS[2], "constant")
    data = readout_law._column(240, 2, None, 2, "constant")
    told = predict(problem.vary(step_exponent=steps))
    assert data["admitted"].values.tolist() == told.allowance.values.tolist()
    assert [bool(size) for size in data["admitted"]] == [
        bool(note) for note in told["notes"].values
    ]
    assert not data["admitted"].values[0]


def test_below_is_judged_in_standard_errors():
    assert below("e", 1.0, 0.1, 1.5).holds
    assert not below("e", 1.0, 0.1, 1.3).holds
    assert below("e", 1.0, 0.1, 1.3, by=2.0).holds


def test_find_knows_all():
    assert chosen(FIGURES, "all") == tuple(FIGURES.values())
    assert chosen(FIGURES, "weights") == (FIGURES["weights"],)
