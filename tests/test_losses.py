"""Fields of other losses: what they mean and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from featurestep import InvalidProblem, Problem
from featurestep.core.results import LOSS_QUANTITIES

from .command import run, run_json

BASE: dict[str, Any] = {"n": 200, "d": 100, "width": 150, "step_exponent": 0.3, "ridge": 0.1}
LOGISTIC = Problem(**BASE, loss="logistic", target="H1", noise_std=0.5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"loss": "cubic"}, "loss must be one of square, logistic, squared_hinge, hinge, huber"),
        ({"intercept": 1}, "intercept must be True or False; got 1"),
        ({"flip": 0.1}, "flip must be 0 unless labels are signs"),
        ({"loss": "huber", "flip": 0.1}, "flip must be 0 unless labels are signs"),
        ({"loss": "hinge", "flip": 0.5}, "flip must be in [0, 0.5); got 0.5"),
        ({"loss": "hinge", "flip": -0.1}, "flip must be in [0, 0.5); got -0.1"),
        ({"loss": "hinge", "flip": "a"}, "flip must be in [0, 0.5)"),
        ({"loss": "hinge", "residual": "full"}, "residual must be labels with loss hinge"),
        ({"intercept": True, "residual": "full"}, "residual must be labels with an intercept"),
        ({"loss": "huber", "target": "z1 + z2"}, "target must have one direction with loss huber"),
        ({"loss": "logistic", "target": "z1 + z2"}, "target must have one direction"),
        ({"loss": "logistic", "target": "relu"}, "target must give labels of both signs"),
        ({"loss": "hinge", "target": "9*H0 + H1", "noise_std": 0.1}, "labels of both signs"),
        ({"loss": "hinge", "target": "9*H0 + H1", "flip": 0.1}, "labels of both signs"),
    ],
)
def test_bad_combinations_are_refused_in_one_line(fields, message):
    with pytest.raises(InvalidProblem) as caught:
        Problem(**{**BASE, **fields})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_fields_vary_print_and_travel():
    grid = LOGISTIC.vary(loss=["logistic", "hinge"], flip=[0.0, 0.2], intercept=[False, True])
    assert len(list(grid)) == 8
    assert "loss" not in repr(Problem(**BASE))
    assert repr(LOGISTIC).endswith("loss='logistic')")
    assert LOGISTIC.replace(flip=0.1) != LOGISTIC


def test_the_command_line_has_the_fields():
    shown = run("predict", "--help").output
    assert all(option in shown for option in ("--loss NAME", "--intercept", "--flip SHARE"))


def test_the_command_line_simulates_other_losses():
    sizes = ["--n", "60", "--d", "30", "--width", "40", "--n-test", "100", "--seeds", "2"]
    shown = run("simulate", *sizes, "--loss", "logistic", "--intercept", "--flip", "0.1").stdout
    assert "loss logistic, with intercept, flip 0.1" in shown
    for title in ("test loss", "train objective", "test error", "train error", "intercept"):
        assert title in shown
    assert "wrong signs" in shown
    shown = run("simulate", *sizes, "--loss", "huber").stdout
    assert "(y − f)²" in shown
    assert "intercept" not in shown
    found = run_json("simulate", *sizes, "--loss", "hinge")["points"][0]
    assert set(LOSS_QUANTITIES) <= set(found)


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("target", ["H0/2 + H1", "H1 + H2/2", "sin", "relu"])
def test_moments_of_flipped_signs(target, noise):
    """Flips shrink the mean label by 1 − 2·flip and leave its square 1."""
    if target == "relu" and not noise:
        return
    fields = {**BASE, "loss": "hinge", "target": target, "noise_std": noise}
    plain, flipped = Problem(**fields), Problem(**fields, flip=0.2)
    t = np.linspace(-8.0, 8.0, 400_001)
    w = np.exp(-0.5 * t**2) / np.sqrt(2.0 * np.pi) * (t[1] - t[0])
    value = plain.sigma_star(t)
    mean = 2.0 * (special.ndtr(value / noise) if noise else (value >= 0.0)) - 1.0
    assert plain.star.by_label.sum(axis=1) == pytest.approx([1.0, 0.0, 1.0], abs=1e-12)
    found = plain.star.by_label @ [-1.0, 1.0]
    assert found == pytest.approx([w @ (mean * t**k) for k in range(3)], abs=3e-5)
    assert flipped.star.by_label @ [-1.0, 1.0] == pytest.approx(0.6 * found, abs=1e-13)
    assert plain.star.second_moment == pytest.approx(w @ mean**2, abs=3e-5)
    assert flipped.label_variance == pytest.approx(1.0 - 0.36 * plain.star.second_moment)
