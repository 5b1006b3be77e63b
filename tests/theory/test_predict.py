"""The public face of the engine: results, grids, statuses, refusals."""

from __future__ import annotations

import dataclasses
import pickle
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from featurestep import (
    InconsistentSolution,
    InvalidProblem,
    NotConverged,
    Prediction,
    Problem,
    predict,
)
from featurestep.theory.exact import fixed_point
from featurestep.theory.exact import solve as exact_solve

BASE = Problem(
    n=1000,
    d=500,
    width=750,
    step_exponent=0.3,
    ridge=0.05,
    noise_std=0.2,
    activation="relu",
    centre=True,
    target="H1 + H2/sqrt(2)",
)


def test_numbers_fit_together() -> None:
    result = predict(BASE)
    assert result.problem is BASE
    total = result.train_mse + BASE.ridge * result.readout_norm**2
    assert result.train_loss == pytest.approx(total, rel=1e-12)
    assert BASE.noise_std**2 < result.train_mse < result.train_loss < result.test_error
    assert 0 < result.alignment < 1
    assert result.solver_residual <= 1e-10
    assert result.self_check <= 1e-9
    groups = result.groups
    assert groups.neurons.sum() == pytest.approx(BASE.width)
    assert np.average(groups.g**2, weights=groups.neurons) == pytest.approx(1.0, abs=1e-6)


def test_learned_function_is_the_regression_on_kappa() -> None:
    """M(κ) lies between 0 and E[y|κ] in the mean, and its error is what E0 says it is."""
    result = predict(BASE.replace(ridge=1e-3, n=4000, n_step=4000))
    kappa = np.linspace(-2.5, 2.5, 41)
    learned, best = result.learned(kappa), result.target_along(kappa)
    weight = np.exp(-0.5 * kappa**2)
    overlap = np.sum(weight * learned * best) / np.sum(weight * best**2)
    assert 0.5 < overlap < 1.05
    assert np.corrcoef(learned, best)[0, 1] > 0.9
    assert result.learned(0.7).shape == ()
    assert result.learned([[0.1, 0.2]]).shape == (1, 2)


def test_odd_activation_learns_no_even_part() -> None:
    result = predict(BASE.replace(activation="tanh", step_exponent=0.4))
    kappa = np.linspace(0.1, 3, 20)
    assert result.learned(-kappa) == pytest.approx(-result.learned(kappa), abs=1e-9)


def test_grid_has_coordinates_status_and_the_numbers_of_single_solves() -> None:
    grid = BASE.vary(step_exponent=[0.0, 0.2, 0.4], ridge=[0.01, 1.0])
    table = predict(grid)
    assert table["test_error"].dims == ("step_exponent", "ridge")
    assert list(table["ridge"].values) == [0.01, 1.0]
    assert np.all(table["status"].values == "ok")
    for exponent in (0.0, 0.4):
        single = predict(BASE.replace(step_exponent=exponent, ridge=1.0))
        point = table.sel(step_exponent=exponent, ridge=1.0)
        assert float(point["test_error"]) == pytest.approx(single.test_error, rel=1e-12)
        assert float(point["readout_norm"]) == pytest.approx(single.readout_norm, rel=1e-12)


def test_grid_over_names_and_progress() -> None:
    seen: list[tuple[int, int]] = []
    grid = BASE.vary(activation=["tanh", "relu"], readout=["constant", "uniform"])
    table = predict(grid, progress=lambda done, total: seen.append((done, total)))
    assert table.sizes == {"activation": 2, "readout": 2}
    assert seen[-1] == (4, 4)


def test_one_bad_point_spoils_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = import_module("featurestep.theory.predict")
    choose = engine.choose

    def refuse_large_ridge(problem: Problem, *rest: object) -> object:
        if problem.ridge > 1:
            raise NotConverged("too much ridge", residual=0.5, iterations=3)
        return choose(problem, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "choose", refuse_large_ridge)
    table = predict(BASE.vary(ridge=[0.1, 2.0, 0.2]))
    assert list(table["status"].values) == ["ok", "not converged: too much ridge", "ok"]
    assert np.isnan(table["test_error"].values).tolist() == [False, True, False]
    with pytest.raises(NotConverged, match="too much ridge"):
        predict(BASE.replace(ridge=2.0))


def spoil_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of 1e-7 in what only one of the two training losses is made of."""
    errors = exact_solve.solve_errors

    def spoilt(*arguments: object) -> object:
        found = errors(*arguments)  # type: ignore[arg-type]
        return dataclasses.replace(found, train_by_kappa=found.train_by_kappa * (1 + 1e-7))

    monkeypatch.setattr(exact_solve, "solve_errors", spoilt)


@pytest.mark.parametrize("method", ["isotropic", "exact"])
def test_a_violated_self_check_raises(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    spoil_errors(monkeypatch)
    with pytest.raises(InconsistentSolution) as caught:
        predict(BASE, method=method)
    assert isinstance(caught.value.solution, Prediction)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)


@pytest.mark.parametrize("method", ["isotropic", "exact"])
def test_an_unconverged_resolvent_raises_with_its_solution(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    patient = fixed_point.fixed_point

    def hasty(*args: Any, **options: Any) -> fixed_point.Fixed:
        return patient(*args, **{**options, "most": 3})

    monkeypatch.setattr(fixed_point, "fixed_point", hasty)
    with pytest.raises(NotConverged, match="residual") as caught:
        predict(BASE, method=method)
    assert caught.value.residual > 1e-10
    assert isinstance(caught.value.solution, Prediction)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"step_exponent": 0.6}, "beyond 1/2"),
        (
            {"step_exponent": 0.6, "readout": [[-2.0, 0.1], [0.5, 0.8], [2.0, 0.1]]},
            "√N for the outermost neurons",
        ),
        ({"n": 40}, "the smallest of n, d, N and n_step is 40"),
        ({"activation": "H1 + H2 + H3/6", "step_exponent": 0.5}, "degree 3"),
        (
            {"activation": "H1 + H2/10", "target": "H1", "noise_std": 0.0, "d": 60, "n": 9000},
            "less than 1/d² of the labels' variance",
        ),
        ({"n": 900, "n_step": 400, "step_exponent": 0.5}, "n_step < d"),
        (
            {"initial": "gaussian", "readout": "rademacher", "step_exponent": 0.5},
            "first layer starts with Gaussian rows",
        ),
        (
            {"activation": "relu", "target": "z1 + z2^2 - 1 + z1*z2", "step_exponent": 0.6},
            "grows quadratically in several directions",
        ),
    ],
)
def test_out_of_range_predictions_say_so(changes: dict[str, object], words: str) -> None:
    assert any(words in note for note in predict(BASE.replace(**changes)).notes)


@pytest.mark.parametrize(
    "changes",
    [
        {"step_exponent": 0.2},
        {"step_exponent": 0.5},
        {"step_exponent": 0.5, "n_step": 20000, "initial": "gaussian"},
        {"residual": "full", "centre": False},
        {"residual": "full", "readout": "constant"},
    ],
    ids=str,
)
def test_predictions_inside_the_range_carry_no_note(changes: dict[str, object]) -> None:
    assert predict(BASE.replace(**changes)).notes == ()


def test_isotropic_weights_say_what_they_leave_out() -> None:
    bold = BASE.replace(step_exponent=0.5)
    (note,) = predict(bold, method="isotropic").notes
    assert "isotropic weights keep only" in note
    assert predict(BASE.replace(step_size=0.0, n=10**6), method="isotropic").notes == ()


def test_the_method_is_asked_for_and_told() -> None:
    assert predict(BASE).method == "exact"
    assert predict(BASE, method="isotropic").method == "isotropic"
    plain = BASE.replace(activation="tanh", d=20000)
    for method in ("exact", "isotropic"):
        table = predict(plain.vary(step_size=[0.0, 5.0]), method=method)
        assert list(table["method"].values) == [method] * 2


@pytest.mark.parametrize("method", ["best", None, 1, ["exact"]])
@pytest.mark.parametrize("question", [BASE, BASE.vary(ridge=[0.1, 1.0])])
def test_an_unknown_method_is_refused(question: Problem, method: object) -> None:
    with pytest.raises(InvalidProblem, match="method must be one of exact, isotropic") as caught:
        predict(question, method=method)  # type: ignore[arg-type]
    assert caught.value.parameter == "method"


def test_as_dict_is_plain() -> None:
    values = predict(BASE).as_dict()
    assert values["test_error"] == predict(BASE).test_error
    assert values["method"] == "exact"
    assert all(isinstance(v, (float, int, str, list)) for v in values.values())


def test_results_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        predict(BASE).test_error = 0.0  # type: ignore[misc]


def test_many_samples_for_the_dimension_are_told_where_the_activation_has_a_quadratic_part() -> (
    None
):
    """Blocks of degree 2 are for one direction: for several there is a note from 0.1 d²/2 on."""
    one = BASE.replace(activation="relu", centre=True, n=1210, d=64, width=575, n_step=1118)
    assert not [note for note in predict(one).notes if "quadratic functions" in note]
    few = one.replace(target="z1 + z2^2")
    told = [note for note in predict(few).notes if "quadratic functions" in note]
    assert "0.28" in told[0]
    for changes in ({"activation": "tanh"}, {"d": 640}, {"width": 150}):
        notes = predict(few.replace(**changes)).notes
        assert not [note for note in notes if "quadratic functions" in note]


def test_large_overlaps_at_small_d_are_told() -> None:
    """The expansion of sections 51–53 is one in a neuron's overlap with the learned direction."""
    small = BASE.replace(
        activation="relu", target="H1 + H2/sqrt(2)", n=1500, d=40, width=1000, n_step=80,
        readout="constant", step_size=2.0 * 1000**0.5,
    )  # fmt: skip
    assert [note for note in predict(small).notes if "large overlaps" in note]
    for changes in ({"step_size": 1.0}, {"d": 400, "n_step": 800}):
        assert not [n for n in predict(small.replace(**changes)).notes if "large overlaps" in n]
