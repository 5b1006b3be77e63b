"""Other losses: what their fields mean and refuse, and the verbs that know them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

import featurestep as fs
from featurestep import InvalidProblem, Problem
from featurestep.core.results import LOSS_QUANTITIES
from featurestep.theory.baselines import on_inputs, tuned_error
from featurestep.theory.predict import solve

from .command import run, run_json

BASE: dict[str, Any] = {"n": 200, "d": 100, "width": 150, "step_exponent": 0.3, "ridge": 0.1}
LOGISTIC = Problem(**BASE, loss="logistic", target="H1", noise_std=0.5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"loss": "cubic"},
            "loss must be one of square, logistic, squared_hinge, hinge, square_signs, huber",
        ),
        ({"intercept": 1}, "intercept must be True or False; got 1"),
        ({"flip": 0.1}, "flip must be 0 unless labels are signs"),
        ({"loss": "huber", "flip": 0.1}, "flip must be 0 unless labels are signs"),
        ({"loss": "hinge", "flip": 0.5}, "flip must be in [0, 0.5); got 0.5"),
        ({"loss": "hinge", "flip": -0.1}, "flip must be in [0, 0.5); got -0.1"),
        ({"loss": "hinge", "flip": "a"}, "flip must be in [0, 0.5)"),
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


# Verbs that know every loss.

LARGE: dict[str, Any] = {"n": 2000, "d": 1000, "width": 1500, "step_size": 30.0, "ridge": 0.02,
                         "readout": "constant"}  # fmt: skip


def test_refusals_say_why():
    with pytest.raises(InvalidProblem, match="no closed form as n → ∞; use predict"):
        fs.limit(LOGISTIC)
    with pytest.raises(InvalidProblem, match="features do not depend on the readout's loss"):
        fs.spectrum(LOGISTIC)


def test_baselines_of_the_square_loss_are_ridge_regression():
    """The same inputs by the network of section 31 that stands for them, and in closed form."""
    problem = Problem(**LARGE, target="H1 + H2/2", noise_std=0.3)
    known = fs.baselines(problem)
    for n, error, tuned in (
        (problem.n, known.ridge_n, known.ridge_n_tuned),
        (problem.n + problem.n_step, known.ridge_all, known.ridge_all_tuned),
    ):
        (found,) = solve([on_inputs(problem, n)], any_loss=True)
        assert found.test_error == pytest.approx(error, rel=1e-6)
        assert tuned_error(on_inputs(problem, n)) == pytest.approx(tuned, rel=1e-3)


def test_baselines_of_logistic_regression_are_those_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    problem = Problem(
        **{**LARGE, "n": 600, "d": 300}, target="H0/2 + H1", noise_std=0.3, loss="logistic"
    )
    predicted, seen = fs.baselines(problem.replace(intercept=True)), []
    rng = np.random.default_rng(5)
    for _ in range(12):
        x, x_test = rng.standard_normal((600, 300)), rng.standard_normal((4000, 300))
        y, y_test = (
            np.sign(0.5 + each[:, 0] + 0.3 * rng.standard_normal(len(each))) for each in (x, x_test)
        )
        model = linear_model.LogisticRegression(C=1.0 / (0.02 * 600), tol=1e-8, max_iter=1000)
        margin = y_test * model.fit(x, y).decision_function(x_test)
        seen.append([np.mean(margin < 0.0), np.logaddexp(0.0, -margin).mean()])
    mean, error = np.mean(seen, axis=0), np.std(seen, axis=0, ddof=1) / 12**0.5
    z = (mean - [predicted.linear_n, predicted.linear_n_loss]) / error
    assert np.abs(z).max() < 3.0
    assert np.all(error / mean < 0.02)


def test_the_best_signs():
    """Bayes error, best half-space and best function of κ, by counting."""
    problem = Problem(**LARGE, target="H2 + H1/2", noise_std=0.2, flip=0.1, loss="hinge")
    found = fs.baselines(problem)
    rng = np.random.default_rng(2)
    kappa, s = rng.standard_normal((2, 400_000))
    gamma = fs.predict(problem).alignment
    t = gamma * kappa + np.sqrt(1.0 - gamma**2) * s
    positive = problem.star.probability(t)
    error = 4.0 * 0.5 / kappa.size**0.5
    assert found.bayes_error == pytest.approx(np.minimum(positive, 1 - positive).mean(), abs=error)
    borders = np.linspace(-3.0, 3.0, 61)
    least = [np.where(t > b, 1.0 - positive, positive).mean() for b in borders]
    least += [1.0 - each for each in least]
    assert min(least) - 0.002 < found.best_affine < min(least) + error
    bins = np.digitize(kappa, np.linspace(-4.0, 4.0, 161))
    count = np.bincount(bins)
    share = np.bincount(bins, positive) / np.maximum(count, 1)
    best = count @ np.minimum(share, 1.0 - share) / kappa.size
    assert found.best_given_direction == pytest.approx(best, abs=0.003)
    assert found.bayes_error < found.best_given_direction < found.best_linear
    assert found.best_affine < found.linear_all_tuned < found.linear_n_tuned < found.linear_n


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_optima(loss):
    problem = Problem(**LARGE, target="H1", noise_std=0.5, loss=loss, intercept=True)
    found = fs.optimum(problem, bounds={"ridge": (1e-3, 10.0)}, minimise="test_loss")
    around = fs.predict(found.problem.vary(ridge=[found.ridge * f for f in (0.9, 1.0, 1.1)]))
    assert np.argmin(around.columns["test_loss"]) == 1
    assert found.value == pytest.approx(around.columns["test_loss"][1], rel=1e-9)
    assert found.prediction.test_error == found.test_error
    with pytest.raises(InvalidProblem, match="minimise must be one of test_error, test_loss"):
        fs.optimum(problem, minimise="train_mse")


def test_sweeps():
    grid = LOGISTIC.replace(intercept=True, readout="constant").vary(ridge=[0.1, 1.0])
    tasks = {"predict": {}, "simulate": {"seeds": 2, "n_test": 50}}
    found = fs.sweep(grid, tasks=tasks, engine="serial")
    assert found["predict_test_loss"].attrs["long_name"] == LOSS_QUANTITIES["test_loss"]
    assert found["predict_intercept"].shape == (2,)
    alone = fs.predict(grid).columns["test_loss"]
    assert found["predict_test_loss"].values == pytest.approx(alone, rel=1e-9)
    assert found["simulate_train_objective"].shape == (1, 2, 2)
    with pytest.raises(InvalidProblem, match="at all points of a grid or at none"):
        fs.sweep(Problem(**BASE).vary(loss=["square", "huber"]), tasks=["predict"], engine="serial")


LOGIT = ["--loss", "logistic", "--intercept", "--noise-std", "0.3", "--target", "H1"]
SMALL = [
    "--readout",
    "constant",
    "--n",
    "200",
    "--d",
    "100",
    "--width",
    "150",
    "--step-exponent",
    "0.3",
]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["predict"], "test loss"),
        (["baselines"], "bayes error"),
        (["optimum", "--best", "ridge=0.01:1"], "smallest test error"),
        (["simulate", "--seeds", "2", "--n-test", "50"], "train objective"),
        (["compare", "--seeds", "2", "--n-test", "50"], "train objective"),
    ],
)
def test_commands_know_every_loss(command, shown):
    assert shown in run(*command, *SMALL, *LOGIT).stdout


@pytest.mark.parametrize("command", ["limit", "learnable", "spectrum", "critical", "phase"])
def test_commands_that_know_the_square_only_say_so_in_one_line(command):
    found = run(command, *SMALL[:-2], *LOGIT, code=2)
    assert "loss must be square for " in found.output
    assert found.output.strip().count("\n") == 0


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ("logistic", ("log loss", "wrong signs")),
        ("hinge", ("hinge loss", "wrong signs")),
        ("huber", ("Huber loss", "squared")),
    ],
)
def test_plots_say_what_they_show(loss, words):
    problem = Problem(**BASE, loss=loss, target="H1", noise_std=0.5, readout="constant")
    grid = problem.vary(ridge=[0.1, 1.0])
    many = fs.predict(grid).plot().figure.axes
    labels = " ".join(ax.get_ylabel() for ax in many)
    assert all(word in labels for word in words)
    assert words[1] in fs.baselines(problem).plot().get_xlabel()
    best = fs.optimum(problem, minimise="test_loss", bounds={"ridge": (0.2, 0.5)})
    assert words[0] in best.plot().get_ylabel()
    drawn = fs.simulate(grid, seeds=2, n_test=50).plot().figure.axes
    assert words[0] in drawn[0].get_ylabel()
