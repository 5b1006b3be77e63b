"""Predictions against networks with n and N of the order of d², recorded and drawn anew.

The record is written by `benchmarks.small_d`: random problems with d from 30 to 200 and n from 600
to 4000, both first layers, four laws, smooth and kinked activations, steps up to 2√N.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.large_networks import observed
from benchmarks.small_d import cases
from featurestep import Problem, predict
from tests.theory.roads import without_higher_degrees

RECORD = json.loads((Path(__file__).parent / "small_d.json").read_text())
FEW = RECORD[::8]  # a dozen for the fast tests


def agrees(gap: float, z: float) -> bool:
    """Within 1 % or 2 standard errors."""
    return abs(gap) < 0.01 or abs(z) < 2.0


def gap(row: dict[str, Any], predicted: float, name: str = "test_error") -> tuple[float, float]:
    """Relative, and in standard errors."""
    mean, error = row[name]
    return mean / predicted - 1.0, (mean - predicted) / error


def test_the_record_is_of_these_problems() -> None:
    assert len(RECORD) >= 80
    known = json.loads(json.dumps(cases()))
    assert [row["problem"] for row in RECORD] == known[: len(RECORD)]
    assert np.median([row["test_error"][1] / row["test_error"][0] for row in RECORD]) < 0.005


def test_a_dozen_agree() -> None:
    """Median gap below 1 %, and far smaller gaps than without blocks of degree 2 and 3."""
    problems = [Problem(**row["problem"]) for row in FEW]
    found = [gap(row, predict(p).test_error) for row, p in zip(FEW, problems, strict=True)]
    without = [
        gap(row, without_higher_degrees(p).test_error) for row, p in zip(FEW, problems, strict=True)
    ]
    assert sum(agrees(*each) for each in found) >= 0.75 * len(FEW)
    assert np.median(np.abs(found)[:, 0]) < 0.01
    assert np.abs(found)[:, 0].max() < 0.06
    assert np.abs(without)[:, 0].mean() > 4.0 * np.abs(found)[:, 0].mean()


@pytest.mark.slow
def test_all_agree() -> None:
    """What was reached: 90 % within 1 % or 2 standard errors, 99 % within 3 %, the rest noted."""
    predictions = [predict(Problem(**row["problem"])) for row in RECORD]
    found = [gap(row, p.test_error) for row, p in zip(RECORD, predictions, strict=True)]
    assert np.mean([agrees(*each) for each in found]) >= 0.89
    far = [(abs(g), p) for (g, _), p in zip(found, predictions, strict=True) if abs(g) > 0.03]
    assert len(far) <= 0.03 * len(RECORD)
    for size, prediction in far:
        assert max((note.size for note in prediction.notes), default=0.0) > size


@pytest.mark.slow
def test_training_losses_agree() -> None:
    found = [
        gap(row, predict(Problem(**row["problem"])).train_loss, "train_loss") for row in RECORD
    ]
    assert np.mean([agrees(*each) for each in found]) >= 0.9


@pytest.mark.slow
def test_the_record_can_be_drawn_anew() -> None:
    """Other seeds of three of its problems: the same means within their error bars."""
    rng = np.random.default_rng(6)
    small = [row for row in RECORD if row["problem"]["n"] < 1200]
    for row in rng.choice(np.array(small, dtype=object), 3, replace=False):
        again = observed(row["problem"], 24, "cpu")
        (mean, error), (new, new_error) = row["test_error"], again["test_error"]
        assert abs(new - mean) < 4.0 * np.hypot(error, new_error)
