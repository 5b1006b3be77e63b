"""The optimum: found, bounded, and honest about its bounds."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from featurestep import Problem, optimum, predict

BASE = Problem(
    n=800,
    d=400,
    width=600,
    step_exponent=0.3,
    ridge=0.01,
    noise_std=0.5,
    activation="relu",
    centre=True,
    target="H1 + H2/sqrt(2)",
    readout="rademacher",
)
best = cache(optimum)  # of what several tests ask about


def test_best_ridge_beats_a_fine_grid() -> None:
    found = best(BASE)
    errors = predict(BASE.vary(ridge=np.geomspace(1e-6, 1e2, 300)))["test_error"].values
    assert found.value <= errors.min() * (1 + 1e-9)
    assert found.value == pytest.approx(errors.min(), rel=1e-3)
    assert found.at_boundary == ()
    assert found.prediction.test_error == pytest.approx(found.value, rel=1e-9)
    assert found.problem.ridge == found.location["ridge"]


def test_best_ridge_is_stationary() -> None:
    found = best(BASE)
    ridge = found.location["ridge"]
    for factor in (1.01, 1 / 1.01):
        assert predict(BASE.replace(ridge=ridge * factor)).test_error > found.value


def test_best_step_size() -> None:
    found = optimum(BASE, over=("step_size",))
    etas = np.geomspace(1e-2, 4 * np.sqrt(BASE.width), 300)
    errors = predict(BASE.vary(step_size=etas))["test_error"].values
    assert found.value <= errors.min() * (1 + 1e-9)
    assert found.location["step_size"] == pytest.approx(etas[errors.argmin()], rel=0.05)


def test_both_beat_either() -> None:
    both = optimum(BASE, over=("ridge", "step_size"))
    assert both.value <= best(BASE).value * (1 + 1e-9)
    assert both.value <= optimum(BASE, over="step_size").value * (1 + 1e-9)
    for name, value in both.location.items():
        for factor in (1.02, 1 / 1.02):
            moved = both.problem.replace(**{name: value * factor})
            assert predict(moved).test_error >= both.value


def test_boundary_is_reported() -> None:
    found = optimum(BASE, bounds={"ridge": (1e-5, 1e-3)})
    assert found.location["ridge"] == pytest.approx(1e-3, rel=1e-6)
    assert len(found.at_boundary) == 1
    assert "ridge is at its upper bound 0.001" in found.at_boundary[0]


def test_training_loss_wants_no_ridge() -> None:
    found = optimum(BASE, minimise="train_loss")
    assert "lower bound" in found.at_boundary[0]
    assert found.as_dict()["minimise"] == "train_loss"
