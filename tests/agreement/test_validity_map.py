"""The validity map: its record is of the declared problems, and its table says what is so."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.large_networks import QUANTITIES
from benchmarks.validity import cases, read_record, same, seeds_for
from benchmarks.validity_map import PAGE, Point, points, shares, surely_off, table
from featurestep import Problem, simulate

from .device import DEVICE

RECORD = read_record()


def test_the_record_is_of_these_problems() -> None:
    drawn = {same(json.loads(same(fields))) for fields in cases()}
    kept = [same(row["problem"]) for row in RECORD]
    assert len(kept) >= 200
    assert len(set(kept)) == len(kept)
    assert set(kept) <= drawn


def test_every_problem_has_error_bars() -> None:
    for row in RECORD:
        assert row["seeds"] == seeds_for(Problem(**row["problem"]))
        assert all(row[name][1] > 0 for name in QUANTITIES)
    assert np.median([row["test_error"][1] / row["test_error"][0] for row in RECORD]) < 0.01


def test_cells_count_what_they_say() -> None:
    problem = Problem(n=100, d=50, width=80, step_exponent=0.1, ridge=0.1)
    gaps = (0.005, -0.02, 0.06, -0.5)
    made = [Point(problem, gap, 0.01, gap, False, "ok") for gap in gaps]
    assert shares(made, gaps) == ["25", "50", "75", "4.0"]
    assert surely_off(made, 0.03) == 2


@pytest.mark.slow
def test_the_table_is_that_of_todays_predictions() -> None:
    """After a change of numbers: python -m benchmarks.validity --seconds 0."""
    found = points()
    assert PAGE.read_text() == table(found)
    ordinary = [p for p in found if p.family != "polynomial" and p.quadratic < 0.03]
    assert np.mean([abs(p.gap) < 0.03 for p in ordinary]) > 0.95


@pytest.mark.slow
def test_problems_of_the_record_can_be_drawn_anew() -> None:
    cheap = sorted(RECORD, key=lambda row: row["problem"]["n_step"] * row["problem"]["d"])[:60]
    rng = np.random.default_rng(3)
    for i in rng.choice(len(cheap), 3, replace=False):
        row = cheap[i]
        values = simulate(Problem(**row["problem"]), seeds=range(1000, 1024), **DEVICE).values[
            "test_error"
        ]
        mean, error = row["test_error"]
        new_error = values.std(ddof=1) / values.size**0.5
        assert abs(values.mean() - mean) < 4.0 * np.hypot(error, new_error)
