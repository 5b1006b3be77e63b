"""Readouts on rows of the step: values of another program, and what the equations imply."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from featurestep import InvalidProblem, LossPrediction, Prediction, Problem, predict
from featurestep.theory.exact import columns
from featurestep.theory.exact.solve import SolvedNetwork
from featurestep.theory.predict import solve
from featurestep.theory.resolution import Effort
from featurestep.theory.reuse import features, readout
from featurestep.theory.reuse.rules import choose_rules
from featurestep.theory.reuse.solve import Shares, build_pencil, predict_rows, solve_rows
from tests.theory.roads import without_higher_degrees

Patch = Callable[[pytest.MonkeyPatch], None]
VALUES = json.loads((Path(__file__).parent / "reuse_values.json").read_text())["problems"]
ERRORS = ("test_error", "train_loss", "train_mse")
ACTIVATIONS = ("tanh", "erf", "relu", "gelu", "softplus", "sin", "hard_tanh", "leaky_relu")
FINITE = ("constant", "rademacher")
TARGETS = ("tanh", "H1", "H1 + 0.7*H2", "relu", "sin", "0.5*H0 + H1")


@pytest.fixture
def without_curvature(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without (37), on either kind of row."""
    find, own = columns.anisotropy, features._anisotropy

    def none(step: Any) -> columns.Anisotropy:
        return columns.Anisotropy(*(0.0 * part for part in find(step)))

    monkeypatch.setattr(columns, "anisotropy", none)
    monkeypatch.setattr(features, "_anisotropy", lambda step: 0.0 * own(step))


def _problem(value: dict[str, Any], **changes: Any) -> Problem:
    names = ("readout", "centre", "noise_std", "ridge", "n", "d", "width", "step_size")
    given = {name: value[name] for name in names}
    activation = value["activation"].replace("+.6", "+0.6")
    target = value["target"].replace("sqrt(2)", f"{2**0.5!r}")
    return Problem(activation=activation, target=target, **{**given, "rows": "same", **changes})


@pytest.mark.parametrize("value", VALUES, ids=[f"{v['activation']}-{v['s']}" for v in VALUES])
def test_values_of_another_program(value: dict[str, Any], without_curvature: None) -> None:
    problem = _problem(value)
    # Without a step rows are as good as fresh, and their theory has terms of higher degrees.
    found = predict(problem) if value["s"] else without_higher_degrees(problem)
    for name in ERRORS:
        assert getattr(found, name) == pytest.approx(value[name], rel=1e-5)
    assert found.self_check < 1e-11


@pytest.mark.parametrize(
    "fields",
    [
        {"n_step": 3000, "d": 1000, "readout": "constant"},
        {"activation": "gelu", "target": "H1 + 0.5*H2", "n_step": 1500, "d": 800},
        {"activation": "relu", "target": "relu", "n_step": 1000, "d": 800},
    ],
    ids=["tanh", "gelu", "relu"],
)
def test_separate_rows_give_the_fresh_engine(
    fields: dict[str, Any], without_curvature: None
) -> None:
    """Two classes of rows, one of the step and one of the readout: (62) replaces (24) and (29)."""
    plain = {"n": 2000, "width": 1500, "step_size": 38.0, "ridge": 0.05, "noise_std": 0.3}
    problem = Problem(**{**plain, "readout": "rademacher", **fields})
    fresh = without_higher_degrees(problem, Effort(nodes=2.0, residuals=2.0))
    shares = Shares(step=problem.n_step, both=0.0, readout=problem.n)
    found = predict_rows(problem, choose_rules(problem, 1.6), shares)
    for name in (*ERRORS, "readout_norm"):
        assert getattr(found, name) == pytest.approx(getattr(fresh, name), rel=1e-8)


def test_separate_rows_with_an_intercept_give_the_fresh_engine(without_curvature: None) -> None:
    """That of any loss, which solves for the output's law and for the fields in turn."""
    problem = Problem(
        **{"activation": "relu", "target": "0.5*H0 + H1", "centre": True, "readout": "rademacher"},
        **{"n": 2000, "n_step": 1500, "d": 1000, "width": 1500, "step_size": 38.0, "ridge": 0.05},
        **{"noise_std": 0.3, "intercept": True},
    )
    fresh = predict(problem)
    shares = Shares(step=problem.n_step, both=0.0, readout=problem.n)
    found = solve_rows(problem, choose_rules(problem, 1.6), shares).loss_prediction()
    names = ("test_error", "train_objective", "train_error", "readout_norm", "intercept")
    for name in names:
        assert getattr(found, name) == pytest.approx(getattr(fresh, name), rel=1e-9)
    without = predict(problem.replace(intercept=False))
    assert fresh.test_error < 0.98 * without.test_error


def test_of_any_loss_the_answers_are_the_same() -> None:
    problem = _problem(VALUES[5])
    plain = predict(problem)
    (found,) = solve([problem], any_loss=True)
    assert isinstance(found, LossPrediction)
    assert found.test_error == pytest.approx(plain.test_error, rel=1e-8)
    assert 2.0 * found.train_objective == pytest.approx(plain.train_loss, rel=1e-12)
    assert found.train_error == pytest.approx(plain.train_mse, rel=1e-12)
    kappa = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(found.learned(kappa), plain.learned(kappa), rtol=1e-10)
    np.testing.assert_allclose(found.network.error(kappa), plain.error_given(kappa), rtol=1e-7)


def test_an_odd_function_needs_no_intercept() -> None:
    problem = _problem(VALUES[1])
    plain, found = predict(problem), predict(problem.replace(intercept=True))
    assert found.intercept == pytest.approx(0.0, abs=1e-10)
    assert found.test_error == pytest.approx(plain.test_error, rel=1e-8)


def test_curvature_of_the_step_changes_fresh_rows_as_in_the_fresh_engine() -> None:
    """With (37), whose square the two engines treat differently, by 1/d²."""
    problem = Problem(n=2000, d=1000, width=1500, step_size=38.0, ridge=0.05, readout="constant")
    found = predict_rows(problem, choose_rules(problem), Shares(problem.n, 0.0, problem.n))
    fresh = without_higher_degrees(problem)
    for name in ERRORS:
        assert getattr(found, name) == pytest.approx(getattr(fresh, name), rel=2e-5)


def _without(*names: str) -> Patch:
    """Features of rows of the step without some of their parts."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        build = features.step_features

        def changed(*args: Any) -> features.Features:
            found = build(*args)
            return replace(found, **{name: 0.0 * getattr(found, name) for name in names})

        monkeypatch.setattr("featurestep.theory.reuse.solve.step_features", changed)

    return patch


def _without_slope(part: int) -> Patch:
    """Without a1 (part 0) or o (part 2) in ℓ of (57)."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        build = features.step_features

        def changed(*args: Any) -> features.Features:
            found = build(*args)
            slopes = found.slopes.copy()
            size = slopes.shape[-1] // 3
            slopes[..., part * size : (part + 1) * size] = 0.0
            return replace(found, slopes=slopes)

        monkeypatch.setattr("featurestep.theory.reuse.solve.step_features", changed)

    return patch


def _without_constraint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the field ϑ: it gets a penalty that leaves nothing of it, and v_b that of v_⋆."""
    build = readout.quadratic_terms

    def changed(*args: Any) -> Any:
        matrix = build(*args)
        where = readout.Fields(args[0].pencil).constraint
        beside = readout.Fields(args[0].pencil).beside
        matrix[beside, beside] = args[0].pencil.base
        matrix[where] = matrix[:, where] = 0.0
        index = np.arange(len(matrix))[where]
        matrix[index, index] = 1e14
        return matrix

    monkeypatch.setattr(readout, "quadratic_terms", changed)


REMOVED: dict[str, Patch] = {
    "pairs Υ": _without("pair"),
    "norms Δ": _without("norms", "noise", "on_weights", "on_noise"),
    "correlation o": _without_slope(2),
    "correlation a1": _without_slope(0),
    "constraint ϑ": _without_constraint,
}


def unchecked(problem: Problem) -> Prediction:
    """The prediction, whatever its self-check says."""
    return predict_rows(problem, choose_rules(problem), Shares.of(problem))


@pytest.mark.parametrize("term", REMOVED)
def test_values_show_every_term(
    term: str, monkeypatch: pytest.MonkeyPatch, without_curvature: None
) -> None:
    REMOVED[term](monkeypatch)
    value = VALUES[2]
    assert abs(unchecked(_problem(value)).train_loss / value["train_loss"] - 1.0) > 1e-3


def _drawn(seed: int, laws: tuple[str, ...], sizes: tuple[float, float] = (0.1, 3.0)) -> Problem:
    rng = np.random.default_rng([27, seed])
    n = int(rng.choice([800, 1500, 4000]))
    d, width = (round(n * np.exp(rng.uniform(*np.log(sizes)))) for _ in range(2))
    return Problem(
        activation=str(rng.choice(ACTIVATIONS)),
        target=str(rng.choice(TARGETS)),
        n=n,
        d=d,
        width=width,
        step_size=float(rng.choice([0.1, 0.25, 0.5, 1.0, 2.0])) * width**0.5,
        ridge=float(10 ** rng.uniform(-4.0, 1.0)),
        noise_std=float(rng.choice([0.0, 0.1, 0.5])),
        readout=str(rng.choice(laws)),
        centre=bool(rng.random() < 0.4),
        rows="same",
    )


def _varied(seed: int) -> Problem:
    """One of these problems, with half of the rows, a Gaussian first layer, or an intercept."""
    rng = np.random.default_rng([28, seed])
    problem = _drawn(seed, FINITE)
    changes: dict[str, Any] = {"intercept": bool(rng.random() < 0.3)}
    if rng.random() < 0.5:
        changes |= {"rows": "half", "n_step": round(problem.n * rng.uniform(0.1, 2.0))}
    if rng.random() < 0.5:
        changes["initial"] = "gaussian"
    return problem.replace(**changes)


def _refused(problems: Iterable[Problem]) -> list[Problem]:
    """Problems that are refused; every other one has its self-check."""
    refused = []
    for problem in problems:
        (found,) = solve([problem])
        if not isinstance(found, (Prediction, LossPrediction)):
            refused.append(problem)
            continue
        assert found.self_check < 1e-9
        mse, loss = found.settling[1], problem.star.second_moment + 1.0
        if isinstance(found, Prediction):
            mse, loss = found.train_mse, min(loss, found.train_loss)
        assert mse < loss
        assert found.test_error > problem.noise_std**2
    return refused


@pytest.mark.parametrize("varied", [False, True])
def test_random_problems_are_solved(varied: bool) -> None:
    """Number 1125 of the varied ones diverges when it is accelerated after few damped steps."""
    some = (*range(20), 1125)
    assert not _refused(_varied(i) if varied else _drawn(i, FINITE) for i in some)


@pytest.mark.slow
@pytest.mark.parametrize("varied", [False, True])
def test_two_thousand_random_problems_are_solved(varied: bool) -> None:
    problems = (_varied(i) if varied else _drawn(i, FINITE) for i in range(2000))
    assert len(_refused(problems)) < 10


def _assert_independent_of_nodes(problem: Problem) -> None:
    coarse, fine = (solve([problem], effort=Effort(nodes=k))[0] for k in (1.0, 1.5))
    names = ("test_error", "train_objective", "train_error") if problem.intercept else ERRORS
    for name in names:
        assert getattr(coarse, name) == pytest.approx(getattr(fine, name), rel=1e-6), problem


@pytest.mark.parametrize("seed", range(8))
def test_results_do_not_depend_on_nodes(seed: int) -> None:
    _assert_independent_of_nodes(_drawn(1000 + seed, FINITE))


@pytest.mark.slow
@pytest.mark.parametrize("varied", [False, True])
def test_results_of_many_problems_do_not_depend_on_nodes(varied: bool) -> None:
    for seed in range(1000, 1300):
        _assert_independent_of_nodes(_varied(seed) if varied else _drawn(seed, FINITE))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_results_do_not_depend_on_groups(activation: str) -> None:
    problem = Problem(
        activation=activation,
        target="H1 + 0.5*H2",
        n=2000,
        d=1500,
        width=1500,
        step_size=1500**0.5,
        ridge=0.05,
        noise_std=0.3,
        readout="gaussian",
        rows="same",
    )
    rules, finer = choose_rules(problem), choose_rules(problem, 1.3)
    shares = Shares(0.0, problem.n, 0.0)
    coarse = predict_rows(problem, rules, shares)
    fine = predict_rows(problem, replace(rules, groups=finer.groups), shares)
    for name in ERRORS:
        assert getattr(coarse, name) == pytest.approx(getattr(fine, name), rel=2e-6)


def test_squared_norm_is_the_derivative_by_the_ridge() -> None:
    problem = _problem(VALUES[0])
    step = 1e-4 * problem.ridge
    low, high = (predict(problem.replace(ridge=problem.ridge + k * step)) for k in (-1, 1))
    slope = (high.train_loss - low.train_loss) / (2.0 * step)
    assert predict(problem).readout_norm ** 2 == pytest.approx(slope, rel=1e-6)


def test_error_given_kappa_averages_to_the_test_error() -> None:
    found = predict(_problem(VALUES[5]))
    assert isinstance(found.network, SolvedNetwork)
    kappa = np.linspace(-7.0, 7.0, 281)
    weight = np.exp(-0.5 * kappa**2)
    mean = float(found.error_given(kappa) @ weight / weight.sum())
    assert mean == pytest.approx(found.test_error, rel=1e-8)


def test_half_of_the_rows_lies_between_fresh_and_same() -> None:
    problem = _problem(VALUES[0], rows="half", n_step=VALUES[0]["n"])
    found = {rows: unchecked(problem.replace(rows=rows)) for rows in ("half", "same")}
    none = predict_rows(problem, choose_rules(problem), Shares(problem.n, 0.0, problem.n))
    losses = [none.train_loss, found["half"].train_loss, found["same"].train_loss]
    assert losses == sorted(losses, reverse=True)
    assert predict(problem).train_loss == found["half"].train_loss


@pytest.mark.parametrize("rows", ["half", "same"])
def test_gaussian_rows_before_a_small_step_are_those_of_the_fresh_engine(rows: str) -> None:
    """Norms of the initial rows are worth 15 % of the error here, step or not."""
    problem = Problem(
        **{"activation": "relu", "target": "0.5*H0 + H1", "centre": True, "readout": "constant"},
        **{"n": 45000, "d": 21000, "width": 30000, "ridge": 0.05, "noise_std": 0.3},
        **{"step_size": 0.0, "initial": "gaussian"},
    )
    before = predict(problem)
    found = predict(problem.replace(step_size=0.005, rows=rows))
    sphere = predict(problem.replace(initial="sphere"))
    for name in ERRORS:
        assert getattr(found, name) == pytest.approx(getattr(before, name), rel=1e-4)
        assert getattr(sphere, name) > 1.05 * getattr(before, name)


def test_without_step_rows_do_not_matter() -> None:
    problem = Problem(n=600, d=300, width=400, step_size=0.0, ridge=0.1)
    same = predict(problem.replace(rows="same"))
    assert same.test_error == predict(problem).test_error


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"residual": "full"}, "residual must be labels with rows same .with the full residual"),
        ({"target": "z1 + z1*z2"}, "target must have one direction with rows same"),
    ],
)
def test_what_is_not_known_is_refused(changes: dict[str, Any], said: str) -> None:
    problem = Problem(n=400, d=200, width=300, step_size=10.0, ridge=0.1, rows="same")
    with pytest.raises(InvalidProblem, match=said):
        predict(problem.replace(**changes))
    with pytest.raises(InvalidProblem, match="method must be exact with rows same"):
        predict(problem, method="isotropic")


@pytest.mark.parametrize(
    ("activation", "noise_std"),
    [("erf", 0.0), pytest.param("gelu", 0.2, marks=pytest.mark.slow)],
)
def test_nodes_of_a_continuous_law_follow_a_rows_own_part(
    activation: str, noise_std: float
) -> None:
    """With d > n a row moves its own pre-activations by more than the step moves neurons."""
    problem = Problem(
        activation=activation,
        centre=True,
        target="H1 + H2/sqrt(2)",
        readout="gaussian",
        n=2095,
        d=2474,
        width=790,
        ridge=0.001,
        rows="same",
        noise_std=noise_std,
        step_size=27.0,
    )
    usual, finer = (solve([problem], effort=Effort(nodes=by))[0] for by in (1.0, 1.4))
    assert isinstance(usual, Prediction)
    assert isinstance(finer, Prediction)
    for name in ("test_error", "train_loss", "train_mse"):
        assert getattr(usual, name) == pytest.approx(getattr(finer, name), rel=1e-6)


@pytest.mark.parametrize("activation", ["relu", "hard_tanh", "leaky_relu"])
@pytest.mark.parametrize("initial", ["sphere", "gaussian"])
def test_closed_forms_are_the_averages_on_nodes(
    activation: str, initial: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of activations that are linear between kinks, centred or with another scale."""
    problem = Problem(
        **{"activation": activation, "target": "H1 + 0.5*H2", "centre": True, "noise_std": 0.3},
        **{"n": 800, "d": 500, "width": 900, "step_size": 40.0, "ridge": 0.03},
        **{"readout": "rademacher", "initial": initial, "rows": "same"},
    )
    rules, shares = choose_rules(problem), Shares.of(problem)
    step = solve_rows(problem, rules, shares).step
    (known,) = build_pencil(problem, step, rules, shares).classes
    monkeypatch.setattr(features, "piecewise_linear", lambda sigma: None)
    fine = replace(rules, pre_activation=0.5 * rules.pre_activation)
    (found,) = build_pencil(problem, step, fine, shares).classes
    kept = np.abs(known[0].moments).max(axis=(2, 3)) > features._NO_WEIGHT
    bounds = {"mean": 1e-10, "slopes": 1e-9, "spread": 1e-9, "noise": 1e-9, "pair": 1e-9}
    for name, bound in {**bounds, "norms": 1e-6, "sample_norms": 1e-6}.items():
        left, right = (getattr(each[1], name)[..., kept, :] for each in (known, found))
        assert np.abs(left - right).max() < bound * np.abs(right).max()
