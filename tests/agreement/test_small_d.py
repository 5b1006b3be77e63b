"""Predictions against networks with n and N of the order of d², recorded and drawn anew.

The records are written by `benchmarks.small_d`: random problems with d from 30 to 200 and n from
600 to 4000, both first layers, four laws, smooth and kinked activations, steps up to 2√N. The
theory was first compared with the later one when nothing was left to change in it.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.large_networks import observed
from benchmarks.small_d import cases, later_cases
from featurestep import Prediction, Problem, predict, simulate
from tests.theory.roads import without_higher_degrees

RECORD, LATER = (
    json.loads((Path(__file__).parent / name).read_text())
    for name in ("small_d.json", "small_d_later.json")
)
FEW = RECORD[::8]  # a dozen for the fast tests


def agrees(gap: float, z: float) -> bool:
    """Within 1 % or 2 standard errors."""
    return abs(gap) < 0.01 or abs(z) < 2.0


def gap(row: dict[str, Any], predicted: float, name: str = "test_error") -> tuple[float, float]:
    """Relative, and in standard errors."""
    mean, error = row[name]
    return mean / predicted - 1.0, (mean - predicted) / error


@pytest.mark.parametrize(("record", "problems"), [(RECORD, cases), (LATER, later_cases)])
def test_the_records_are_of_these_problems(record: list[Any], problems: Any) -> None:
    assert len(record) >= 80
    known = json.loads(json.dumps(problems()))
    assert [row["problem"] for row in record] == known[: len(record)]
    assert np.median([row["test_error"][1] / row["test_error"][0] for row in record]) < 0.0035


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


@cache
def predictions(later: bool) -> list[Prediction]:
    return [predict(Problem(**row["problem"])) for row in (LATER if later else RECORD)]


@pytest.mark.slow
@pytest.mark.parametrize(("later", "least"), [(False, 0.9), (True, 0.92)])
def test_all_agree(later: bool, least: float) -> None:
    """Within 1 % or 2 standard errors, and within 3 %; the others have a note of that size.

    Found: 91 % and 99 %, later 95 % and 100 %. The bounds of the first record were set after it
    had been seen.
    """
    found = [
        (*gap(row, p.test_error), p)
        for row, p in zip(LATER if later else RECORD, predictions(later), strict=True)
    ]
    assert np.mean([agrees(g, z) for g, z, _ in found]) >= least
    far = [(abs(g), p) for g, _, p in found if abs(g) > 0.03]
    assert len(far) <= 0.03 * len(found)
    for size, prediction in far:
        assert max((note.size for note in prediction.notes), default=0.0) > size


@pytest.mark.slow
@pytest.mark.parametrize("later", [False, True])
def test_training_losses_agree(later: bool) -> None:
    """Found: 88 % within 1 % or 2 standard errors and 98 % within 3 %, later 88 % and 100 %."""
    found = [
        gap(row, p.train_loss, "train_loss")
        for row, p in zip(LATER if later else RECORD, predictions(later), strict=True)
    ]
    assert np.mean([agrees(*each) for each in found]) >= 0.85
    assert np.mean([abs(g) < 0.03 for g, _ in found]) >= 0.97


@pytest.mark.slow
def test_the_record_can_be_drawn_anew() -> None:
    """Other seeds of three of its problems: the same means within their error bars."""
    rng = np.random.default_rng(6)
    small = [row for row in RECORD if row["problem"]["n"] < 1200]
    for row in rng.choice(np.array(small, dtype=object), 3, replace=False):
        again = observed(row["problem"], 24, "cpu")
        (mean, error), (new, new_error) = row["test_error"], again["test_error"]
        assert abs(new - mean) < 4.0 * np.hypot(error, new_error)


@pytest.mark.slow
def test_networks_of_few_inputs() -> None:
    """At d from 2 to 12 terms of relative order 1/d still help: errors are right to some per cent.

    Without them they are off by tens of per cent.
    """
    rng, gaps = np.random.default_rng(8), []
    for d in 4 * (2, 3, 4, 5, 6, 8, 10, 12):
        width = int(rng.integers(60, 400))
        problem = Problem(
            n=int(rng.integers(100, 400)), d=d, width=width, n_step=int(d * rng.uniform(1.0, 50.0)),
            activation=str(rng.choice(["relu", "tanh", "gelu", "softplus", "erf", "sin"])),
            target=str(rng.choice(["H1", "sin", "H1 + H2/sqrt(2)", "relu", "H0/2 + H1"])),
            ridge=float(10.0 ** rng.uniform(-3.0, 0.0)), noise_std=0.3,
            centre=bool(rng.integers(2)),
            readout=str(rng.choice(["constant", "rademacher"])),
            initial=str(rng.choice(["sphere", "gaussian"])),
            step_size=float(rng.choice([0.0, 0.3, 1.0]) * width**0.5),
        )  # fmt: skip
        seen = simulate(problem, seeds=40, n_test=1000).test_error
        both = predict(problem), without_higher_degrees(problem)
        gaps.append([abs(np.log(found.test_error / seen)) for found in both])
    own, without = np.median(gaps, axis=0)
    assert own < 0.06
    assert without > 4.0 * own
