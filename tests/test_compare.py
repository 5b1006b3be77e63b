"""`compare`: the numbers of `predict` and `simulate`, and what their distance means."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from featurestep import (
    Comparison,
    InvalidProblem,
    Note,
    Problem,
    Setting,
    compare,
    predict,
    simulate,
)
from featurestep.core.results import LOSS_QUANTITIES, QUANTITIES, allowance

BASE = Problem(n=200, d=100, width=150, step_exponent=0.2, ridge=0.05, noise_std=0.3)
GRID = BASE.vary(step_exponent=[0.0, 0.2], ridge=[0.05, 0.5, 1.0])
RUN = {"seeds": 4, "n_test": 500}


@pytest.fixture(scope="module")
def found():
    return compare(GRID, **RUN)


def moved(found: Comparison, **factors: float) -> Comparison:
    """The same comparison with some predictions multiplied."""
    wrong = {name: values * factors.get(name, 1.0) for name, values in found.predicted.items()}
    return replace(found, predicted=wrong)


def test_a_grid_has_the_numbers_of_its_parts(found):
    predicted, simulated = predict(GRID), simulate(GRID, **RUN)
    for name in QUANTITIES:
        cell = found.dataset.sel(quantity=name)
        assert np.array_equal(cell.predicted, predicted[name])
        assert np.array_equal(cell.simulated, simulated.mean[name].sel(variant="trained"))
        error = simulated.standard_error[name].sel(variant="trained")
        assert np.array_equal(cell.standard_error, error)
    assert found.dataset.status.dims == GRID.dims
    assert set(found.dataset.status.values.flat) == {"ok"}


def test_one_problem_has_the_numbers_of_its_parts():
    found = compare(BASE, **RUN)
    assert len(found.rows) == len(QUANTITIES)
    simulated = simulate(BASE, **RUN)
    for row in found.rows:
        assert row.point == {}
        assert row.predicted == getattr(predict(BASE), row.quantity)
        assert row.simulated == simulated.mean[row.quantity].item()
    assert found.dataset.z.dims == ("quantity",)


def test_z_scores_by_hand(found):
    for index, point in enumerate(GRID):
        for q, name in enumerate(QUANTITIES):
            row = found.rows[index * len(QUANTITIES) + q]
            values = found.simulation.values[name][0].reshape(len(GRID), 4)[index]
            mean = sum(values) / 4
            error = (sum((values - mean) ** 2) / 3 / 4) ** 0.5
            expected = getattr(predict(point), name)
            assert row.quantity == name
            assert row.point == {"step_exponent": point.step_exponent, "ridge": point.ridge}
            assert row.z == pytest.approx((mean - expected) / error, rel=1e-6)
            assert row.relative_gap == pytest.approx(mean / expected - 1, rel=1e-6, abs=1e-9)


def test_a_prediction_of_zero_has_no_relative_gap():
    """Not even where rounding leaves something of it: an intercept that symmetry forbids."""
    problem = BASE.replace(loss="logistic", intercept=True, target="H1", step_exponent=0.3)
    found = compare(problem, seeds=2, n_test=200)
    (row,) = (row for row in found.rows if row.quantity == "intercept")
    assert abs(row.predicted) < 1e-13
    assert row.relative_gap is None


def test_the_worst_row_sets_the_limit(found):
    worst = found.worst
    assert abs(worst.z) == max(abs(row.z) for row in found.rows)
    assert found.agrees(limit=abs(worst.z) * 1.001)
    assert not found.agrees(limit=abs(worst.z) * 0.999)
    assert found.disagreements(limit=abs(worst.z) * 0.999) == (worst,)


def test_a_wrong_prediction_disagrees_unless_its_own_note_admits_it(found):
    wrong = moved(found, test_error=3.0)
    assert {row.quantity for row in wrong.disagreements()} == {"test_error"}
    assert not wrong.agrees()
    large = Note("large step: far too large", "large step", 1.0)
    noted = replace(wrong, noted=((large,),) * len(GRID))
    assert noted.agrees()
    assert not noted.rows[0].agrees()
    assert noted.dataset.notes.values[0, 0] == large
    partly = replace(wrong, noted=(*[(large,)] * (len(GRID) - 1), ()))
    assert [row.point for row in partly.disagreements()] == [{"step_exponent": 0.2, "ridge": 1.0}]
    small = Note("small", "small", 0.1)
    assert not replace(wrong, noted=((small,),) * len(GRID)).agrees()


def test_few_networks_are_told_where_they_disagree(found):
    """By Student's t with 3 degrees of freedom 2.8 % lie beyond 4 standard errors."""
    told = "With 4 networks 2.8% of rows have |z| > 4 by chance: repeat with more seeds."
    assert told in moved(found, test_error=3.0).closing()
    assert told not in found.closing()


def test_notes_of_a_grid_belong_to_their_points():
    """Over α = 0 … 0.9 four points of ten lie beyond 1/2, and no other is excused by them."""
    found = compare(BASE.vary(step_exponent=[i / 10 for i in range(10)]), seeds=2, n_test=100)
    beyond = [bool(any(n.kind == "step beyond 1/2" for n in notes)) for notes in found.noted]
    assert beyond == [False] * 6 + [True] * 4
    told = [note for note in found.notes if "beyond 1/2" in note]
    assert len(told) == 1
    assert told[0].startswith("4 of 10 points, the last at step_exponent = 0.9: ")
    admitted = [allowance(notes) for notes in found.noted]
    assert admitted[:6] == [0.0] * 6
    wrong = moved(found, test_error=3.0)
    judged = {row.point["step_exponent"]: row.passes() for row in wrong.rows[::4]}
    assert not any(judged[i / 10] for i in range(6))


def test_no_note_is_told_of_more_points_than_there_are():
    """Two notes that began alike, at one point, once counted as two points: 16 of 10."""
    bold = Problem(
        activation="relu", centre=True, target="H1 + H2", readout="constant", residual="full",
        n=200, d=100, width=150, n_step=60, step_exponent=0.3, ridge=0.05,
    )  # fmt: skip
    found = compare(bold.vary(step_exponent=[0.3, 0.9]), seeds=2, n_test=100)
    told = [re.match(r"(\d+) of (\d+) points", note) for note in found.notes]
    assert {match[2] for match in told} == {"2"}
    assert all(int(match[1]) <= 2 for match in told)
    assert len(told) == len({note.kind for notes in found.noted for note in notes})


def test_departures_of_the_simulation_are_notes():
    found = compare(BASE, seeds=2, n_test=100, setting=Setting(inputs="sphere"))
    assert any("sphere" in note for note in found.rows[0].notes)
    assert moved(found, train_mse=9.0).agrees()


def test_validity_notes_of_predictions_are_kept():
    bold = BASE.replace(step_exponent=0.5, activation="H1 + H3/6", target="H1 + H2")
    found, told = compare(bold.vary(ridge=[0.1, 1.0]), **RUN), predict(bold).notes
    assert all(row.notes == told != () for row in found.rows)


def test_a_refused_prediction_has_no_distance_and_never_agrees(found):
    missing = {name: np.full(GRID.shape, np.nan) for name in QUANTITIES}
    status = ("not converged: why",) * len(GRID)
    notes = (("large step",),) * len(GRID)
    refused = replace(found, predicted=missing, statuses=status, noted=notes)
    row = refused.rows[0]
    assert (row.predicted, row.z, row.relative_gap, row.status) == (None, None, None, status[0])
    assert refused.worst.z is None
    assert not refused.agrees()


def test_json_holds_every_row(found):
    back = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert len(back["rows"]) == len(GRID) * len(QUANTITIES)
    assert back["rows"][5]["predicted"] == found.rows[5].predicted
    assert back["agrees"] is found.agrees()
    assert back["seeds"] == [0, 1, 2, 3]


def test_progress_counts_flops():
    seen = []
    compare(BASE, **RUN, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] > 0


@pytest.mark.parametrize("seeds", [1, 0, -3, [5], [], [1, 1], 2.5, "8", None, True])
def test_too_few_seeds_are_refused_before_the_run(seeds, monkeypatch):
    monkeypatch.setattr(sys.modules["featurestep.meeting.comparison"], "simulate", pytest.fail)
    with pytest.raises(InvalidProblem, match=r"^seeds must be"):
        compare(BASE, seeds=seeds)


def test_draws_that_do_not_differ_are_refused(found):
    values = {n: np.broadcast_to(v[..., :1], v.shape) for n, v in found.simulation.values.items()}
    with pytest.raises(InvalidProblem, match="standard error of test_error is 0"):
        replace(found, simulation=replace(found.simulation, values=values))


LOSSES = {
    "logistic": {"loss": "logistic", "flip": 0.05, "intercept": True},
    "hinge": {"loss": "hinge"},
    "huber": {"loss": "huber", "noise_std": 0.5},
    "an intercept": {"intercept": True},
}


@pytest.mark.parametrize("fields", LOSSES.values(), ids=LOSSES)
def test_other_losses_agree(fields):
    base = {"n": 400, "d": 200, "width": 300, "step_exponent": 0.45, "ridge": 0.05}
    base |= {"target": "H0/2 + H1", "noise_std": 0.3, "readout": "rademacher"}
    p = Problem(**{**base, **fields})
    found = compare(p, seeds=8, n_test=2000)
    assert found.agrees()
    names = [name for name in LOSS_QUANTITIES if name != "intercept" or p.intercept]
    assert [row.quantity for row in found.rows] == names
    assert found.rows[3].predicted == pytest.approx(predict(p).test_error)


def test_a_grid_of_losses_is_compared_and_drawn():
    grid = Problem(n=100, d=50, width=300, step_size=1.0, ridge=0.01, loss="hinge", target="H1")
    found = compare(grid.vary(ridge=[1e-4, 0.1]), seeds=4, n_test=500)
    (row,) = (r for r in found.rows if r.point["ridge"] == 1e-4 and r.quantity == "train_error")
    assert row.simulated == 0.0  # no draw has a wrong sign: known to one in all of them
    assert row.standard_error == 1 / 400
    assert row.agrees()
    assert "wrong signs" in found.plot().figure.axes[1].get_ylabel()


@pytest.mark.parametrize("wrong", [None, "problem", 3, [BASE]])
def test_only_problems_and_grids_are_compared(wrong):
    with pytest.raises(InvalidProblem, match=r"^problem must be"):
        compare(wrong)
