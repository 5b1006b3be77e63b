"""Theory and simulation side by side, over twenty problems."""

from __future__ import annotations

import json

import numpy as np
import pytest

from featurestep.compare import Comparison, compare
from featurestep.errors import InvalidProblem
from featurestep.problem import Problem
from featurestep.simulation import Setting
from featurestep.simulation.result import QUANTITIES

BASE = Problem(n=200, d=100, width=150, step_exponent=0.2, ridge=0.05, noise_std=0.3)


@pytest.fixture(scope="module")
def small():
    return compare(BASE.vary(step_exponent=[0.0, 0.2], ridge=[0.05, 0.5]), seeds=4, n_test=500)


def test_rows_are_what_they_say(small):
    assert len(small.rows) == 4 * len(QUANTITIES)
    for row in small.rows:
        assert row.z == pytest.approx((row.simulated - row.predicted) / row.standard_error)
        assert row.relative_gap == pytest.approx(row.simulated / row.predicted - 1)
        values = small.simulation.dataset[row.quantity].sel(variant="trained", **row.point)
        assert row.simulated == pytest.approx(float(values.mean()))
        assert row.standard_error == pytest.approx(float(values.std(ddof=1)) / 2)


def test_dataset_and_json_hold_the_rows(small):
    row = small.rows[5]
    cell = small.dataset.sel(quantity=row.quantity, **row.point)
    assert float(cell.z) == row.z
    assert json.loads(json.dumps(small.as_dict()))["rows"][5]["predicted"] == row.predicted


def test_agreement_has_a_limit(small):
    worst = abs(small.worst.z)
    assert small.agrees(limit=worst * 1.001)
    assert not small.agrees(limit=worst * 0.999)


def test_a_wrong_prediction_is_noticed(small):
    wrong = {name: 3.0 * values for name, values in small.predicted.items()}
    shifted = Comparison(small.problem, wrong, small.status, small.validity, small.simulation)
    assert not shifted.agrees()


def test_a_refused_point_has_no_numbers_and_does_not_agree(small):
    missing = {name: np.full(small.problem.shape, np.nan) for name in QUANTITIES}
    status = ("not converged: why",) * 4
    refused = Comparison(small.problem, missing, status, small.validity, small.simulation)
    assert refused.rows[0].z is None
    assert refused.rows[0].predicted is None
    assert not refused.agrees()
    assert json.loads(json.dumps(refused.as_dict()))["rows"][0]["status"] == status[0]


def test_one_problem_and_departures():
    found = compare(BASE, seeds=2, n_test=100, setting=Setting(inputs="sphere"))
    assert len(found.rows) == len(QUANTITIES)
    assert any("sphere" in note for note in found.rows[0].notes)


def test_one_seed_is_not_enough():
    with pytest.raises(InvalidProblem, match="seeds"):
        _ = compare(BASE, seeds=1, n_test=100).rows


TWENTY = [
    {"step_exponent": exponent, "readout": law, **changes}
    for exponent, law in (
        (0.0, "gaussian"),
        (0.15, "rademacher"),
        (0.3, "gaussian"),
        (0.4, "uniform"),
    )
    for changes in (
        {"activation": "tanh", "target": "tanh"},
        {"activation": "erf", "target": "H1 + H2/sqrt(2)", "ridge": 0.2},
        {"activation": "relu", "centre": True, "target": "H1 + 0.5*H2", "width": 900},
        {"activation": "gelu", "centre": True, "target": "relu", "n_step": 2400},
        {"activation": "tanh", "target": "sin", "residual": "full", "width": 2000, "ridge": 0.1},
    )
]


@pytest.mark.slow
@pytest.mark.parametrize("changes", TWENTY, ids=str)
def test_simulation_agrees_with_theory(changes):
    """|z| < 4 for every quantity, or the prediction's own validity notes say why not."""
    base = {"n": 1200, "d": 600, "width": 900, "ridge": 0.02, "noise_std": 0.2}
    found = compare(Problem(**{**base, **changes}), seeds=10)
    for row in found.rows:
        assert row.agrees() or row.notes, row
