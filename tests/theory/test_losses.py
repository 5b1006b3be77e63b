"""Other losses than the square (theory, sections 30–35): values, identities, real networks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

from featurestep import (
    FeaturestepError,
    InvalidProblem,
    LossPrediction,
    Problem,
    function,
    predict,
)
from featurestep.core.problem import BINARY_LOSSES
from featurestep.core.spiked import spiked_weights
from featurestep.functions.nonlinearity import Analytic
from featurestep.functions.quadrature import crowding, stretched_normal
from featurestep.theory.exact import convex
from featurestep.theory.exact.convex_solver import crowded
from featurestep.theory.exact.label_rules import SIGNS, WHOLE, LabelRule, label_rule
from featurestep.theory.exact.losses import LOSSES, Output, logistic_prox
from featurestep.theory.exact.solve import block_size
from featurestep.theory.predict import solve
from featurestep.theory.resolution import Effort, choose, shared_rules
from tests.theory import fitted_networks
from tests.theory.roads import without_higher_degrees

VALUES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("loss_values.json").read_text(encoding="utf-8")
)
NAMES = {
    "test_loss": "test_loss",
    "train_loss": "train_loss",
    "train_objective": "train_objective",
    "test_01": "test_error",
    "train_01": "train_error",
    "test_mse": "test_error",
    "train_mse": "train_error",
}


def equispaced(count: int) -> list[tuple[float, float]]:
    """The groups that stand for the Gaussian law in the check values."""
    g = np.linspace(-4.5, 4.5, count)
    w = np.exp(-0.5 * g**2)
    w /= w.sum()
    g /= np.sqrt(w @ g**2)
    return list(zip(g.tolist(), w.tolist(), strict=True))


def problem_of(case: dict[str, Any]) -> Problem:
    activation: Any = case["activation"]
    if activation == "sin(z+.6)":
        activation = function(lambda z: np.sin(z + 0.6), name="shifted sine")
    readout = equispaced(case["readout_nodes"]) if "readout_nodes" in case else case["readout"]
    same = ("loss", "centre", "noise_std", "ridge", "n", "d", "width", "n_step", "step_size")
    return Problem(
        **{name: case[name] for name in same},
        activation=activation,
        target=case["target"].replace("/sqrt(2)", "*0.7071067811865476"),
        readout=readout,
        initial=case["initial"],
        intercept=case["intercept"] is not False,
    )


def predicted(problem: Problem, **options: Any) -> LossPrediction:
    """By section 31 whatever the loss."""
    (found,) = solve([problem], any_loss=True, **options)
    if isinstance(found, FeaturestepError):
        raise found
    assert isinstance(found, LossPrediction)
    return found


def label(case: dict[str, Any]) -> str:
    return f"{case['loss']}, {case['activation']}"


@pytest.mark.parametrize("case", VALUES, ids=label)
def test_check_values(case):
    found = predicted(problem_of(case))
    for theirs, ours in NAMES.items():
        if theirs in case:
            expected = case[theirs] if case[theirs] > 1e-100 else 0.0
            assert getattr(found, ours) == pytest.approx(expected, rel=1e-6, abs=1e-100), theirs
    assert found.readout_norm**2 == pytest.approx(case["readout_norm_squared"], rel=1e-6)
    if case["intercept"] is not False:
        assert found.intercept == pytest.approx(case["intercept"], rel=1e-6)


@pytest.mark.parametrize("case", VALUES, ids=label)
def test_check_values_change_with_the_ridge(case):
    slope, norm = by_ridge(problem_of(case))
    assert slope == pytest.approx(norm, rel=1e-6)


@pytest.mark.parametrize("case", [case for case in VALUES if "P" in case["inside"]], ids=label)
def test_what_they_are_made_of(case, monkeypatch):
    """Fields feel nodes to first order, errors to second.

    The other program has groups of g and −g.
    """
    monkeypatch.setattr(Analytic, "is_odd", False)
    problem, inside = problem_of(case), case["inside"]
    found = predicted(problem, effort=Effort(residuals=2.0))
    size = found.groups.g.size
    close = {"rel": 2e-6}
    assert found.beta_norm == pytest.approx(inside["beta_norm"], **close)
    assert found.alignment == pytest.approx(inside["alignment"], **close)
    assert found.groups.norm**2 == pytest.approx(inside["rho_squared"], **close)
    unknowns = found.network.unknowns
    assert unknowns.v2[0] == pytest.approx(inside["V2"], **close)
    assert unknowns.v2[0] * unknowns.relative[0] == pytest.approx(inside["P"], **close)
    fields = unknowns.coefficients[0].reshape(-1, size)
    for name, field in zip(("A", "tau", "psi", "Delta"), fields, strict=False):
        expected = np.array(inside["solution"][name])
        largest = max(np.abs(expected).max(), 1e-6)
        assert field == pytest.approx(expected, rel=1e-5, abs=1e-5 * largest), name
    at = found.network._at(np.array([0.0, inside["kappa_1"]]))
    for name, values in (("chi", at.output.influence), ("v", at.output.variance)):
        expected = [inside[f"{name}_at_kappa_0"], inside[f"{name}_at_kappa_1"]]
        assert values[0, :, 0] == pytest.approx(expected, **close)


SQUARE = [
    {"activation": "tanh", "readout": "constant"},
    {"activation": "gelu", "readout": "rademacher", "target": "H1 + H2/2", "noise_std": 0.3},
    {"activation": "relu", "readout": "rademacher", "initial": "gaussian", "target": "H0/2 + H1"},
    {"activation": "gelu", "readout": "gaussian", "step_size": 10.0},
    {"activation": "relu", "step_size": 0.0},
    {"activation": "tanh", "readout": "constant", "residual": "full"},
    {"activation": "gelu", "readout": "rademacher", "residual": "full", "target": "H1 + H2/2"},
]
SIZES = {"n": 2000, "d": 1000, "width": 1500, "n_step": 3000, "step_size": 30.0, "ridge": 0.02}


@pytest.mark.parametrize("fields", SQUARE, ids=lambda f: f"{f['activation']} {len(f)}")
def test_the_square_loss_is_ridge_regression(fields):
    """Two solvers: (29)–(32), which is triangular, and the joint fixed point.

    Other losses have no blocks of degree 2 and 3.
    """
    problem = Problem(**{**SIZES, **fields})
    found = predicted(problem)
    plain = without_higher_degrees(problem, Effort(residuals=24 / 14))
    assert found.test_error == pytest.approx(plain.test_error, rel=1e-9)
    assert found.test_loss == pytest.approx(0.5 * plain.test_error, rel=1e-9)
    assert found.train_error == pytest.approx(plain.train_mse, rel=1e-9)
    assert found.train_objective == pytest.approx(0.5 * plain.train_loss, rel=1e-9)
    assert found.readout_norm == pytest.approx(plain.readout_norm, rel=1e-9)
    kappa = np.array([-2.0, 0.0, 1.0])
    assert found.learned(kappa) == pytest.approx(plain.learned(kappa), rel=1e-6, abs=1e-8)


def by_ridge(problem: Problem, share: float = 1e-2) -> tuple[float, float]:
    """d(train_objective)/dλ by central differences, and ‖â‖²/2: both sides of (86)."""

    def slope(h: float) -> float:
        up, down = (predicted(problem.replace(ridge=problem.ridge * f)) for f in (1 + h, 1 - h))
        return (up.train_objective - down.train_objective) / (2 * h * problem.ridge)

    extrapolated = (16.0 * slope(0.5 * share) - 4.0 * slope(share)) / 12.0
    return extrapolated, 0.5 * predicted(problem).readout_norm ** 2


IDENTITY = [
    {"loss": "logistic", "target": "H0/2 + H1", "noise_std": 0.3, "readout": "rademacher"},
    {"loss": "logistic", "target": "H1", "intercept": True, "activation": "relu", "flip": 0.1},
    {"loss": "squared_hinge", "target": "H0/2 + H1", "intercept": True, "initial": "gaussian"},
    {"loss": "squared_hinge", "target": "sin", "activation": "gelu", "readout": "rademacher"},
    {"loss": "hinge", "target": "tanh", "noise_std": 0.5, "ridge": 0.1},
    {"loss": "hinge", "target": "H0/2 + H1", "noise_std": 0.2, "intercept": True, "ridge": 0.2},
    {"loss": "huber", "target": "H1 + H2/2", "noise_std": 0.5, "activation": "gelu"},
    {"loss": "huber", "target": "relu", "noise_std": 0.2, "intercept": True, "centre": True},
    {"loss": "square", "target": "H1 + H2/2", "intercept": True, "initial": "gaussian"},
    {"loss": "square_signs", "target": "H0/2 + H1", "noise_std": 0.2, "intercept": True},
    *(
        {"loss": loss, "target": "H0/2 + H1", "noise_std": 0.3, "residual": "full", "centre": True}
        for loss in LOSSES
    ),
    {"loss": "logistic", "target": "tanh", "residual": "full", "readout": "rademacher"},
]


def identity_name(fields: dict[str, Any]) -> str:
    return " ".join(fields.get(name, "") for name in ("loss", "target", "residual")).strip()


@pytest.mark.parametrize("fields", IDENTITY, ids=identity_name)
def test_the_objective_changes_with_the_ridge_by_half_the_norm(fields):
    """The check of the adjoint pass (86): it needs P and Q, and all that they are made of."""
    problem = Problem(**{**SIZES, "readout": "constant", **fields})
    slope, norm = by_ridge(problem)
    assert slope == pytest.approx(norm, rel=1e-6)


@pytest.mark.parametrize("fields", [IDENTITY[0], IDENTITY[3], IDENTITY[6]], ids=str)
@pytest.mark.parametrize("factor", [1.03, 1 / 1.03])
def test_a_wrong_variance_breaks_it(fields, factor, monkeypatch):
    problem = Problem(**{**SIZES, "readout": "constant", **fields})
    right = convex.sides

    def wrong(fitting, unknowns):
        at = right(fitting, unknowns)
        return replace(at, output=at.output._replace(variance=factor * at.output.variance))

    monkeypatch.setattr(convex, "sides", wrong)
    slope, norm = by_ridge(problem)
    assert abs(slope / norm - 1.0) > 1e-3


@pytest.mark.parametrize("factor", [1.03, 1 / 1.03])
@pytest.mark.parametrize("fields", [IDENTITY[0], IDENTITY[3], IDENTITY[6]], ids=str)
def test_a_wrong_influence_is_refused(fields, factor, monkeypatch):
    right = convex.sides

    def wrong(fitting, unknowns):
        at = right(fitting, unknowns)
        return replace(at, output=at.output._replace(influence=factor * at.output.influence))

    monkeypatch.setattr(convex, "sides", wrong)
    with pytest.raises(FeaturestepError, match="two expressions"):
        predicted(Problem(**{**SIZES, "readout": "constant", **fields}))


@pytest.mark.parametrize("chi", [1e-3, 0.1, 1.0, 30.0, 1e4])
def test_the_logistic_proximal_point(chi):
    a = np.linspace(-60.0, 60.0, 2001)
    z = logistic_prox(a, np.full(1, chi))
    residual = z - a - chi / (1.0 + np.exp(z))
    assert np.abs(residual).max() <= 1e-14 * (1.0 + 60.0 + chi)


@pytest.mark.parametrize("chi", [0.02, 0.5, 4.0, 60.0])
@pytest.mark.parametrize("variance", [0.7, 0.01, 1e-6])
@pytest.mark.parametrize("name", LOSSES)
def test_averages_over_the_output(name, variance, chi):
    """Closed forms and lattices against a fine sum over ω, of proximal points by minimisation."""
    loss = LOSSES[name]
    binary = name in BINARY_LOSSES
    mean = np.array([-3.0, -0.4, 0.2, 1.5, 8.0])[None, None]
    spread, noise = np.full((1, 1, 1), variance), np.full((1, 1, 1), 0.0 if binary else 0.3)
    y = SIGNS[:, None, None, None] if binary else np.full((1, 1, 1, 1), 0.6)
    at = Output(y, mean, spread, np.full((1, 1, 1), chi), noise)
    x = np.linspace(-9.0, 9.0, 180_001)
    w = np.exp(-0.5 * x**2)
    w /= w.sum()
    omega = mean[..., None] + np.sqrt(spread + noise)[..., None] * x
    f = _prox(name, y[..., None], omega, chi)
    g = (f - omega) / chi
    s = np.array([-2.0, -0.5, 0.3, 1.0, 2.5])
    weight = np.concatenate([np.eye(5 * len(y)), np.full((1, 5 * len(y)), 0.2)])
    weight = weight.reshape(-1, len(y), 1, 5).transpose(1, 2, 0, 3)  # one node each, and all
    rule = LabelRule(s[None, None], y, weight, np.zeros((0, 1, len(weight[0, 0]))))
    every = at._replace(
        mean=np.broadcast_to(mean, weight.shape[1:]),
        variance=np.full((1, weight.shape[2], 1), variance),
        influence=np.full((1, weight.shape[2], 1), chi),
    )

    def expected(values, factor=1.0):
        return np.einsum("lqs,ls->q", weight[:, 0], (values @ w)[:, 0, 0] * factor)

    found, seen = loss.averages(rule, every), loss.measured(rule, every)
    close = {"rel": 1e-6, "abs": 1e-9}
    bend = -np.gradient(g, omega[0, 0, 0, 1] - omega[0, 0, 0, 0], axis=-1)
    assert found.h[0] == pytest.approx(expected(bend), rel=1e-4, abs=1e-6)
    assert found.g_square[0] == pytest.approx(expected(g**2), **close)
    basis = (np.ones(5), s, s**2 - 1.0)
    for i, factor in enumerate(basis):
        assert found.force[0, :, i] == pytest.approx(expected(g, factor), **close)
        for j, other in enumerate(basis):
            if name != "hinge":  # whose Newton step has more than h
                curvature, seen_there = expected(bend, factor * other), found.curvature[0]
                assert seen_there[:, 3 * i + j] == pytest.approx(curvature, rel=1e-4, abs=1e-5)
    for omegas, kind in ((f, "train"), (omega, "test")):
        value = fitted_networks.loss(y[..., None], omegas, name)
        assert getattr(seen, f"{kind}_loss")[0] == pytest.approx(expected(value), **close)
        missed = y[..., None] * omegas < 0.0 if binary else (y[..., None] - omegas) ** 2
        rough = {"rel": 1e-3, "abs": 1e-3} if binary else close
        assert getattr(seen, f"{kind}_error")[0] == pytest.approx(expected(missed), **rough)


def _prox(name, y, omega, chi):
    """argmin ℓ(y, f) + (f − ω)²/2χ, by cases."""
    u = y - omega
    if name in ("square", "square_signs"):
        return omega + chi / (1.0 + chi) * u
    if name == "huber":
        return omega + np.where(np.abs(u) <= 1.0 + chi, chi / (1.0 + chi) * u, chi * np.sign(u))
    if name == "logistic":
        return y * logistic_prox(y * omega, np.full(1, chi))
    gap = np.maximum(1.0 - y * omega, 0.0)
    moved = np.minimum(gap, chi) if name == "hinge" else chi / (1.0 + chi) * gap
    return omega + y * moved


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.5])
def test_rules_for_labels(noise):
    """Weights of nodes that do not know where labels change their sign."""
    problem = Problem(**SIZES, loss="hinge", target="H1 + H2/2", noise_std=noise)
    kappa, gamma = np.array([-1.3, 0.2, 2.0]), np.array([0.8])
    rule = label_rule([problem.star], gamma, kappa)
    s = np.linspace(-8.0, 8.0, 160_001)
    w = np.exp(-0.5 * s**2) / np.sqrt(2.0 * np.pi) * (s[1] - s[0])
    for q, k in enumerate(kappa):
        mean = problem.star(gamma * k + 0.6 * s)
        for f in (np.ones_like, special.ndtr, lambda s: s**2):
            expected = w @ (mean * f(s))
            values = f(rule.s[0, 0])
            found = (rule.weight[1, 0, q] - rule.weight[0, 0, q]) @ values
            assert found == pytest.approx(expected, abs=1e-4 if noise == 0.0 else 1e-9)


def random_problem(rng: np.random.Generator) -> Problem:
    loss = str(rng.choice(list(LOSSES)))
    n = round(np.exp(rng.uniform(np.log(800), np.log(20_000))))
    d, width = round(n * rng.uniform(0.25, 2.0)), round(n * rng.uniform(0.5, 2.5))
    binary = loss in ("logistic", "squared_hinge", "hinge")
    laws = ("constant", "rademacher", ((-(2**0.5), 0.25), (0.0, 0.5), (2**0.5, 0.25)), "gaussian")
    return Problem(
        n=n,
        d=d,
        width=width,
        n_step=round(d * np.exp(rng.uniform(np.log(0.5), np.log(32.0)))),
        step_size=float(rng.uniform(0.0, 2.0) * width**0.5 * (rng.random() < 0.9)),
        ridge=float(10.0 ** rng.uniform(-4.0, 1.0)),
        noise_std=float(rng.choice([0.0, 0.1, 0.3, 0.5])),
        activation=str(rng.choice(["tanh", "relu", "gelu", "erf", "sin", "sigmoid"])),
        target=str(rng.choice(["H1", "tanh", "H0/2 + H1", "H1 + H2/2", "sin", "H1 + H3/6"])),
        readout=laws[rng.choice(4, p=[0.35, 0.35, 0.2, 0.1])],
        centre=bool(rng.random() < 0.5),
        initial=str(rng.choice(["sphere", "gaussian"])),
        loss=loss,
        intercept=bool(rng.random() < 0.5),
        flip=0.1 if binary and rng.random() < 0.3 else 0.0,
    )


def check_random(seed: int, count: int, allowed: int) -> None:
    rng = np.random.default_rng(seed)
    refused = []
    for index, problem in enumerate(random_problem(rng) for _ in range(count)):
        try:
            found = predicted(problem)
        except FeaturestepError as error:
            refused.append((problem, str(error)))
            continue
        assert found.solver_residual < 1e-10
        assert found.self_check < 1e-9
        assert found.train_loss < found.test_loss
        if index % 10 == 0:  # (86) takes four more solutions
            slope, norm = by_ridge(problem)
            assert slope == pytest.approx(norm, rel=1e-6), problem
    assert len(refused) <= allowed, refused


def test_random_problems_converge():
    check_random(7, 12, 0)


@pytest.mark.slow
def test_many_random_problems_converge():
    check_random(8, 2000, 9)


@pytest.mark.parametrize("target", ["H0/2 + H1", "H1 + H2/2"])
def test_labels_of_degree_two_have_the_same_averages_on_all_nodes_of_s(target):
    star, kappa = Problem(**SIZES, target=target).star, np.array([-2.0, 0.3, 1.5])
    alignment = np.array([0.9, 0.6, 0.9])
    fine = label_rule([star] * 3, alignment, kappa)
    assert fine.parts is not None
    for count in (20, 28, 64):
        rule = label_rule([star] * 3, alignment, kappa, (count,))
        for power in (1, 2):
            means = [
                (each.weight * (each.label - 0.4 * each.s) ** power).sum(axis=(0, 3))
                for each in (rule, fine)
            ]
            assert means[0] == pytest.approx(means[1], rel=1e-8)  # panels end at |s| = 7
        label = (rule.basis * rule.parts[:, :, None, :]).sum(axis=-1)
        assert label == pytest.approx(rule.label[0], abs=1e-11)
        assert rule.take(np.array([1, 0, 2])).label[:, 1] == pytest.approx(rule.label[:, 0])


def test_grids_of_steps_share_rules_and_are_their_points():
    base = Problem(**SIZES, target="H0/2 + H1", noise_std=0.3, readout="rademacher")
    problems = [
        base.replace(loss=loss, ridge=ridge, step_size=step)
        for loss in ("huber", "hinge")
        for step in (4.0, 16.0, 36.0)
        for ridge in np.geomspace(0.01, 1.0, 5).tolist()
    ]
    for problem, found in zip(problems, solve(problems), strict=True):
        (alone,) = solve([problem])
        assert found.test_loss == pytest.approx(alone.test_loss, rel=1e-8)
        assert found.train_objective == pytest.approx(alone.train_objective, rel=1e-8)


def test_grids_over_noise_and_flips_are_their_points():
    base = Problem(**{**SIZES, "n": 800}, target="H1 + H2/2", readout="rademacher", intercept=True)
    problems = [
        base.replace(loss=loss, noise_std=noise, flip=flip, ridge=ridge)
        for loss in ("logistic", "hinge")
        for noise in (0.0, 0.1, 0.5)
        for flip in (0.0, 0.1)
        for ridge in (0.05, 0.5)
    ]
    for problem, found in zip(problems, solve(problems), strict=True):
        (alone,) = solve([problem])
        assert found.test_loss == pytest.approx(alone.test_loss, rel=1e-7)
        assert found.test_error == pytest.approx(alone.test_error, rel=1e-7)
        assert found.train_objective == pytest.approx(alone.train_objective, rel=1e-7)


def test_all_steps_share_the_rules_of_the_largest():
    """Also where rules of equally many nodes crowd more or less."""
    base = Problem(**SIZES, loss="hinge", readout="rademacher", target="H1", noise_std=0.3)
    problems = dict(enumerate(base.vary(step_size=[5.0, 10.0, 40.0, 45.0, 60.0])))
    rules = {i: choose(each, spiked_weights(each), Effort()) for i, each in problems.items()}
    assert len({rule.sizes for rule in rules.values()}) < len(set(rules.values()))
    assert shared_rules(rules) == dict.fromkeys(rules, rules[4])


def test_points_with_many_groups_are_solved_together():
    """Few of them at once would be solved without what their neighbours have shown."""
    problem = Problem(
        **{**SIZES, "step_size": 200.0}, loss="hinge", readout="gaussian", activation="relu"
    )
    rules = choose(problem, spiked_weights(problem), Effort())
    assert rules.sizes[0] > 30
    sizes = [block_size(rules, problem, "exact", any_loss=each) for each in (False, True)]
    assert sizes[0] == 1
    assert 12 <= sizes[1] <= 40


def test_averages_are_as_accurate_as_kappa_is_probable():
    """Longer steps and fewer nodes of s at improbable κ leave averages over κ as they are."""
    kappa = np.linspace(-7.5, 7.5, 41)
    weight = np.exp(-0.5 * kappa**2) / np.exp(-0.5 * kappa**2).sum()
    star = Problem(**SIZES, loss="logistic", target="H1", noise_std=0.3).star
    rule = label_rule([star], np.array([0.7]), kappa, WHOLE[1])
    mean = (2.0 * np.tanh(kappa)[:, None] + 0.4 * rule.s[0])[None]
    every = np.ones((1, kappa.size, 1))
    at = Output(rule.label, mean, 0.8 * every, 3.0 * every, np.zeros((1, 1, 1)))
    loss = LOSSES["logistic"]
    few, all_alike = (loss.averages(each, at) for each in (rule, replace(rule, digits=None)))
    assert rule.reach[0, 0] > rule.reach[20, 0]
    for name in ("h", "g_square"):
        found, expected = (getattr(each, name)[0] for each in (few, all_alike))
        assert np.abs(found / expected - 1.0).max() > 1e-9
        for factor in (1.0, kappa**2):
            assert weight * factor @ found == pytest.approx(weight * factor @ expected, rel=1e-9)


def test_bends_between_nodes_are_resolved():
    """Interpolated labels: outputs pass the hinge's bend, of small spread, between coarse nodes."""
    problem = Problem(
        n=1339, d=1708, width=2876, n_step=2940, step_size=73.46, activation="erf",
        target="H1 + H2/2", readout="rademacher", loss="hinge", ridge=0.0016427, noise_std=1 / 3,
        flip=0.1,
    )  # fmt: skip
    found, finer = (predicted(problem, effort=Effort(nodes=share)) for share in (1.0, 2.0))
    assert found.nodes != finer.nodes
    for name in ("test_loss", "train_objective", "test_error", "readout_norm"):
        assert getattr(found, name) == pytest.approx(getattr(finer, name), rel=1e-6)


def test_nodes_crowd_where_the_influence_changes_fast():
    """χ changes by orders of magnitude between nodes: the training loss was 3 % off."""
    problem = Problem(
        n=8646, d=2796, width=20146, n_step=13054, step_size=283.8732111348304,
        ridge=0.0012735626990068238, noise_std=0.5, activation="relu", readout="constant",
        loss="hinge",
    )  # fmt: skip
    found, finer = (predicted(problem, effort=Effort(nodes=share)) for share in (1.0, 3.0))
    for name in ("test_loss", "train_loss", "test_error", "readout_norm"):
        assert getattr(found, name) == pytest.approx(getattr(finer, name), rel=1e-7)


def test_crowds_are_as_dense_as_they_must_be():
    number = np.linspace(-20.0, 20.0, 321)
    needed = 1.0 + 6.0 * np.exp(-2.0 * (number - 4.0) ** 2) + 0.4 * (np.abs(number + 8.0) < 3.0)
    crowds = crowded(number, needed)
    density = crowding(number, crowds)
    assert np.all(density >= needed)
    assert density.mean() < 0.4 * needed.max()
    kappa, weight = stretched_normal(((0.0, 0.5),), 1.0, 0.58, 8.0, crowds)
    for t in (0.5, 1.0, 2.0):
        assert weight @ np.cos(t * kappa) == pytest.approx(np.exp(-0.5 * t**2), abs=1e-10)
        assert weight @ np.sin(t * kappa) == pytest.approx(0.0, abs=1e-10)


def test_problems_are_taken_in_the_order_of_their_rows(monkeypatch):
    seen, take = [], convex.Fitting.take
    monkeypatch.setattr(
        convex.Fitting, "take", lambda self, rows: seen.append(self) or take(self, rows)
    )
    base = Problem(**SIZES, loss="huber", target="H1")
    solve([base.replace(ridge=ridge) for ridge in (0.1, 0.3)])
    every = seen[0].samples.step.ridge
    assert take(seen[0], np.array([1, 0])).samples.step.ridge == pytest.approx(every[::-1])
    assert take(seen[0], np.arange(2)) is seen[0]


def test_grids_are_their_points():
    base = Problem(**SIZES, loss="logistic", target="H1", noise_std=0.3, readout="constant")
    grid = base.vary(ridge=[0.01, 0.1, 1.0], loss=["logistic", "square", "hinge"])
    found = predict(grid)
    assert set(found.statuses) == {"ok"}
    for i, problem in enumerate(grid):
        alone = predicted(problem)
        assert found.columns["test_loss"][i] == pytest.approx(alone.test_loss, rel=1e-9)
        assert found.columns["train_objective"][i] == pytest.approx(alone.train_objective, rel=1e-9)


def test_a_prediction_tells_the_law_of_the_output():
    problem = Problem(**SIZES, loss="logistic", target="H1", noise_std=0.3, readout="constant")
    found = predict(problem)
    assert isinstance(found, LossPrediction)
    kappa = np.linspace(-2.0, 2.0, 5)
    mean, sd = found.margin(kappa)
    assert mean == pytest.approx(found.learned(kappa))
    assert np.all(sd > 0.0)
    curve = found.reliability([-3.0, -1.0, 0.0, 1.0, 3.0])
    assert curve[2] == pytest.approx(0.5, abs=1e-9)  # the problem is odd
    assert curve + curve[::-1] == pytest.approx(np.ones(5), abs=1e-9)
    assert np.all(np.diff(curve) > 0.0)
    with pytest.raises(InvalidProblem, match="must have labels ±1 for a reliability curve"):
        predict(problem.replace(loss="huber")).reliability(0.0)


def test_only_exact_weights_know_other_losses():
    with pytest.raises(InvalidProblem, match="method must be exact for other losses"):
        predict(Problem(**SIZES, loss="huber"), method="isotropic")


# Real networks.

MEASURED = ("test_loss", "test_error", "readout_norm", "intercept")
RECORD = json.loads(fitted_networks.RECORD.read_text(encoding="utf-8"))


def scores(name: str) -> dict[str, float]:
    """z of each measure: predictions against recorded networks."""
    problem, seen = fitted_networks.PROBLEMS[name], RECORD[name]
    found = predicted(problem)
    measured = [m for m in MEASURED if m != "intercept" or problem.intercept]
    return {m: (getattr(found, m) - seen["mean"][m]) / seen["standard_error"][m] for m in measured}


def rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(list(values)))))


@pytest.mark.parametrize("name", ["logistic", "squared hinge", "huber"])
def test_recorded_networks_can_be_drawn_again(name):
    found = fitted_networks.draw(fitted_networks.PROBLEMS[name], 0)
    assert found == pytest.approx(RECORD[name]["first"], rel=1e-6)


def test_networks_agree():
    found = {name: scores(name) for name in fitted_networks.PROBLEMS}
    every = [z for each in found.values() for z in each.values()]
    assert rms(every) <= 1.5, found
    assert max(map(abs, every)) <= 3.5, found
    for name, problem in fitted_networks.PROBLEMS.items():
        seen, prediction = RECORD[name], predicted(problem)
        noted = sum(note.size for note in prediction.notes)
        gap = prediction.train_loss / seen["mean"]["train_loss"] - 1.0
        error = seen["standard_error"]["train_loss"] / seen["mean"]["train_loss"]
        assert abs(gap) <= noted + 2.5 * error


@pytest.mark.parametrize("factor", [1.03, 1 / 1.03])
def test_networks_disagree_with_a_wrong_variance(factor, monkeypatch):
    right = convex.sides

    def wrong(fitting, unknowns):
        at = right(fitting, unknowns)
        return replace(at, output=at.output._replace(variance=factor * at.output.variance))

    monkeypatch.setattr(convex, "sides", wrong)
    every = [z for name in fitted_networks.PROBLEMS for z in scores(name).values()]
    assert rms(every) > 1.5


def test_quadratic_functions_are_noted_before_n_is_of_the_order_of_their_number() -> None:
    """A real loss without blocks says what they change with the square loss."""
    problem = Problem(
        n=1022, d=158, width=2153, n_step=524, step_size=42.9, activation="leaky_relu", centre=True,
        target="0.4 + z", ridge=0.0426, readout=((1.5, 0.4), (-((0.1 / 0.6) ** 0.5), 0.6)),
        initial="gaussian", loss="huber", intercept=True,
    )  # fmt: skip
    (note,) = [each for each in predict(problem).notes if "left out with this loss" in each]
    assert 0.05 < note.size < 0.15
    larger = problem.replace(d=800)
    assert not any("left out with this loss" in each for each in predict(larger).notes)
