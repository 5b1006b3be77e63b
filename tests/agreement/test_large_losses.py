"""Predictions with every loss against networks of n ≥ 1500, recorded and drawn anew.

The record is written by `benchmarks.large_losses`: 40 random problems over five losses, with and
without intercept and flips, both residuals, both first layers, four laws, steps up to 2√N.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.large_losses import QUANTITIES, cases
from benchmarks.large_networks import observed
from featurestep import Problem, simulate
from featurestep.theory import prediction
from featurestep.theory.exact import convex, convex_solver, losses
from featurestep.theory.predict import solve
from featurestep.theory.prediction import LossPrediction

RECORD = json.loads((Path(__file__).parent / "large_losses.json").read_text())
MEASURES = ("test_loss", "test_error")
LARGEST = 0.02  # relative gap
BOUND = 1.4  # of the rms z
MANY = 100  # seeds that the record does not have begin here


def predictions() -> list[LossPrediction]:
    found = [solve([Problem(**row["problem"])], any_loss=True)[0] for row in RECORD]
    assert all(isinstance(each, LossPrediction) for each in found)
    return found


def scores(found: list[LossPrediction], quantity: str) -> tuple[np.ndarray, np.ndarray]:
    """z of every problem, and its relative gap beyond what a note on the offset gives."""
    mean, error = np.array([row[quantity] for row in RECORD]).T
    value = np.array([getattr(each, quantity) for each in found])
    noted = np.array([_noted(each) if quantity == "test_error" else 0.0 for each in found])
    return (mean - value) / error, mean / value - 1.0 - noted


def _noted(found: LossPrediction) -> float:
    """The relative effect of the random offset on the test error, where a note tells of it."""
    told = any(note.kind == "small outputs with an offset" for note in found.notes)
    return found.offset_effects[0] if told else 0.0


def rms(z: np.ndarray) -> float:
    return float(np.sqrt(np.mean(z**2)))


def test_the_record_is_of_these_problems():
    assert [row["problem"] for row in RECORD] == json.loads(json.dumps(cases()))
    assert len(RECORD) >= 40


@pytest.fixture(scope="module")
def right() -> list[LossPrediction]:
    return predictions()


def test_predictions_agree_with_the_record(right):
    for quantity in MEASURES:
        z, gaps = scores(right, quantity)
        assert rms(z) <= BOUND, quantity
        assert np.abs(gaps).max() <= LARGEST, quantity


def test_errors_of_small_outputs_have_a_random_offset(right):
    """The two problems of the record whose outputs are as small as the offset's spread."""
    noted = 0
    for found, row in zip(right, RECORD, strict=True):
        if not _noted(found):
            continue
        noted += 1
        for quantity, share in zip(
            ("test_error", "train_error"), found.offset_effects, strict=True
        ):
            mean, error = row[quantity]
            assert abs(mean - getattr(found, quantity) * (1.0 + share)) < 2.5 * error, quantity
    assert noted >= 2


@pytest.mark.parametrize("intercept", [True, False])
def test_networks_have_a_random_offset(intercept):
    """Small networks with an intercept, and without one."""
    problem = Problem(
        n=300, d=150, width=200, n_step=600, step_size=10.0, ridge=1.0, activation="sigmoid",
        target="H1", noise_std=0.3, readout="constant", loss="logistic",
        intercept=intercept, centre=True,
    )  # fmt: skip
    (found,) = solve([problem])
    (seen,) = simulate(problem, seeds=range(40), n_test=1000).values["test_error"]
    mean, error = seen.mean(), seen.std(ddof=1) / seen.size**0.5
    effect, _ = found.offset_effects
    assert abs(mean - found.test_error * (1.0 + effect)) < 3.0 * error
    if intercept:
        assert mean - found.test_error > 6.0 * error
        assert round(effect, 2) == 0.59
        assert round(mean / found.test_error - 1.0, 2) == 0.59
    else:
        assert effect < 1e-6


@pytest.mark.slow
def test_the_record_can_be_drawn_anew():
    """Other seeds of two of its problems: the same means within their error bars."""
    for row in (RECORD[13], RECORD[20]):
        again = observed(row["problem"], range(MANY, MANY + 12), "cpu", QUANTITIES)
        for quantity in MEASURES:
            (mean, error), (new, new_error) = row[quantity], again[quantity]
            assert abs(new - mean) < 4.0 * np.hypot(error, new_error)


def wrong_output(monkeypatch, field, factor):
    """The variance v or the influence χ of every output, times a factor."""
    right = convex.sides

    def wrong(fitting, unknowns):
        at = right(fitting, unknowns)
        return replace(at, output=at.output._replace(**{field: factor * getattr(at.output, field)}))

    monkeypatch.setattr(convex, "sides", wrong)
    monkeypatch.setattr(convex_solver, "sides", wrong)


def wrong_proximal_map(monkeypatch, factor):
    """g of every loss, times a factor."""
    for kind in {type(loss) for loss in losses.LOSSES.values()}:
        right = kind.proximal

        def wrong(self, at, right=right):
            found = right(self, at)
            return found._replace(g=factor * found.g, g_square=factor**2 * found.g_square)

        monkeypatch.setattr(kind, "proximal", wrong)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.03, 1 / 1.03])
@pytest.mark.parametrize("what", ["variance", "influence", "proximal map"])
def test_the_record_tells_what_is_wrong(what, factor, monkeypatch):
    """3 % on v, χ or the proximal map; the checks of a solution, which see it too, are left out."""
    monkeypatch.setattr(prediction, "SELF_CHECK", np.inf)
    if what == "proximal map":
        wrong_proximal_map(monkeypatch, factor)
    else:
        wrong_output(monkeypatch, what, factor)
    found = predictions()
    assert max(rms(scores(found, quantity)[0]) for quantity in MEASURES) > BOUND
