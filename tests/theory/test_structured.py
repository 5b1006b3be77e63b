"""Inputs with a covariance: an independent program, identities, and free moments of matrices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from featurestep import InvalidProblem, Problem, optimum, predict
from featurestep.core.spiked import spiked_weights
from featurestep.theory.exact import columns, inputs, products
from featurestep.theory.exact.columns import ShownAtNorms, sample_radii
from featurestep.theory.exact.inputs import (
    input_classes,
    largest_share,
    trace_polynomials,
    trace_products,
)
from featurestep.theory.exact.products import (
    block_power,
    eigenvalue_nodes,
    own_scale,
    pair_classes,
)
from featurestep.theory.exact.sectors import pair_covariance
from featurestep.theory.exact.step import ProblemRow, build_step
from tests.theory.roads import without_higher_degrees

VALUES = json.loads((Path(__file__).parent / "struct_values.json").read_text())
BASE = Problem(
    activation="relu",
    target="H1 + H2/2",
    n=800,
    d=400,
    width=600,
    step_size=12.0,
    ridge=0.02,
    noise_std=0.2,
    readout="rademacher",
)


def problem_of(value: dict[str, Any]) -> Problem:
    p = value["problem"]
    classes = p["classes"]
    return Problem(
        **{name: p[name] for name in ("activation", "target", "centre", "n", "d")},
        width=p["N"],
        n_step=p["n0"],
        step_size=p["s"] * p["N"] ** 0.5,
        ridge=p["lam"],
        noise_std=p["noise"],
        readout=p["law"] if isinstance(p["law"], str) else [tuple(pair) for pair in p["law"]],
        covariance=[(s, f) for s, f, _ in classes],
        target_mass=[t for _, _, t in classes],
    )


@pytest.mark.parametrize("terms", ["base", "degree2"])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: value["problem"]["name"])
def test_an_independent_program_finds_the_same(value, terms, monkeypatch):
    """Without and with blocks of degree 2 for pairs of classes.

    It has norms of rows as fields and knows neither (122) nor norms of samples (123), nor what
    (124), (125), (137), (141) and (149) add.
    """
    monkeypatch.setattr(products, "SPLIT_CLASSES", 0)
    one = lambda step, _: (np.ones_like(step.norm), np.ones_like(step.norm))  # noqa: E731
    monkeypatch.setattr(columns, "block_power", one)
    monkeypatch.setattr(columns, "limited", lambda values, _: 0.0 * values)
    monkeypatch.setattr(columns, "overlap_columns", lambda *parts: 0.0 * parts[3])
    monkeypatch.setattr(products, "norm_share", lambda variance, *_: np.zeros_like(variance))
    monkeypatch.setattr(inputs, "LARGEST_SPLIT", 0.0)
    monkeypatch.setattr(inputs, "LARGEST_RADIUS", 0.0)
    monkeypatch.setattr(columns, "own_scale", lambda *_: np.eye(3)[None, None])
    problem, expected = problem_of(value), value[terms]
    found = predict(problem) if terms == "degree2" else without_higher_degrees(problem)
    assert found.test_error == pytest.approx(expected["test"], rel=1e-5)
    assert found.train_loss == pytest.approx(expected["train_loss"], rel=1e-5)
    assert found.train_mse == pytest.approx(expected["train_mse"], rel=1e-5)
    assert found.readout_norm**2 == pytest.approx(expected["norm"], rel=1e-5)


INSIDE = [  # but for a law without groups, and a kink across which the other program averages
    value for value in VALUES[:-1] if value["problem"]["target"] != "relu"
]


@pytest.mark.parametrize("value", INSIDE, ids=lambda value: value["problem"]["name"])
def test_constants_of_the_step(value):
    problem, inside = problem_of(value), value["base"]["inside"]
    g = (np.array(problem.law.values), np.array(problem.law.probabilities))
    step = build_step([ProblemRow(problem)], g, 20)
    close = {"rel": 1e-7, "abs": 1e-9}
    assert step.beta[0] == pytest.approx(inside["norm_b"], **close)
    assert step.alignment[0] == pytest.approx(inside["gamma"], **close)
    assert step.shift[0] == pytest.approx(inside["u"], **close)
    assert step.norm[0] ** 2 == pytest.approx(inside["rho2"], **close)
    assert step.norm_variance[0] / problem.d == pytest.approx(inside["var"], **close)
    norms = step.classes.norms
    assert 2.0 * norms.own[0] / problem.d == pytest.approx(inside["var_R"], **close)
    assert 2.0 * norms.shared[0] / problem.d == pytest.approx(inside["cov_R1"], **close)
    assert 2.0 * norms.plain[0] / problem.d == pytest.approx(inside["var_11"], **close)
    assert step.sample_norm[0] == pytest.approx(np.array(inside["s_gh"]), **close)
    assert spiked_weights(problem).alignment == pytest.approx(inside["gamma"], **close)
    assert spiked_weights(problem).beta_norm == pytest.approx(inside["norm_b"], **close)


CASES = {
    "relu": {},
    "no step": {"step_size": 0.0},
    "shifted sine": {"activation": "sin(z+0.6)", "readout": "constant"},
    "gaussian law": {"activation": "tanh", "readout": "gaussian", "n": 500},
    "gaussian rows": {"initial": "gaussian", "activation": "gelu"},
}


@pytest.mark.parametrize("name", CASES)
def test_one_class_is_the_isotropic_theory(name):
    plain = BASE.replace(**CASES[name])
    quantities = ("test_error", "train_loss", "train_mse", "readout_norm")
    for answer, covariances in (
        (predict, ([(3.0, 1.0)], [(1.0, 0.3), (1.0, 0.7)])),
        (without_higher_degrees, ([(1.0 + 1e-12, 0.3), (1.0, 0.7)],)),  # classes, and no block
    ):
        expected = answer(plain)
        for covariance in covariances:
            found = answer(plain.replace(covariance=covariance))
            for quantity in quantities:
                value = getattr(found, quantity)
                assert value == pytest.approx(getattr(expected, quantity), rel=1e-8)


@pytest.mark.parametrize("name", ["relu", "shifted sine"])
def test_blocks_of_one_class_are_those_of_isotropic_inputs(name):
    """What products add agrees with sections 50–53 to leading order: they add more in 1/d.

    The sum of the blocks' effects at n = N = d²/8, without a step, where other terms are small.
    """
    plain = BASE.replace(**CASES[name]).replace(d=100, n=1250, width=1250, step_size=0.0)
    nearly = plain.replace(covariance=[(1.0 + 1e-12, 0.3), (1.0, 0.7)])
    without = without_higher_degrees(plain).test_error
    expected, found = (predict(p).test_error / without - 1.0 for p in (plain, nearly))
    assert abs(expected) > 0.02
    assert found == pytest.approx(expected, abs=0.005)


def test_splitting_a_class_changes_nothing():
    two = BASE.replace(covariance=[(3.0, 0.25), (1 / 3, 0.75)], target_mass=(0.5, 0.5))
    parts = [(3.0, 0.1), (3.0, 0.15), (1 / 3, 0.75)]
    three = BASE.replace(covariance=parts, target_mass=(0.2, 0.3, 0.5))
    assert predict(three).test_error == pytest.approx(predict(two).test_error, rel=1e-11)


def test_the_loss_grows_with_the_ridge_by_the_square_of_the_readout():
    """dL/dλ = ‖â‖², through the whole adjoint."""
    p, step = BASE.replace(covariance="power(0.5)"), 1e-4
    up, down = (predict(p.replace(ridge=p.ridge * (1 + e))).train_loss for e in (step, -step))
    assert (up - down) / (2 * step * p.ridge) == pytest.approx(predict(p).readout_norm ** 2, 1e-6)


def test_few_classes_stand_for_a_smooth_spectrum():
    p = BASE.replace(covariance="power(0.6)", d=1000, n=2000, width=1500)
    values, shares, mass = input_classes(p)
    assert len(values) == 24
    assert (shares.sum(), shares @ values, mass.sum()) == pytest.approx((1.0, 1.0, 1.0))
    assert np.all(np.diff(values) < 0.0)
    law = p.target_law.class_mass(p.input_covariance)
    assert mass[:8] == pytest.approx(law[:8])


def test_free_moments_are_those_of_matrices():
    """tr(K_gK_h)/d of drawn matrices, to five standard errors over eight draws."""
    rng, d, n0 = np.random.default_rng(0), 300, 450
    s = np.repeat([2.5, 0.5], [75, 225])
    powers = np.array([[np.mean(s**k) for k in range(7)]])
    k, delta = np.array([[0.3, -0.4]]), np.array([[0.2, 0.1]])
    x, w = np.polynomial.hermite_e.hermegauss(20)
    r_moments = np.array([[w @ (0.5 + x) ** j / w.sum() for j in range(7)]])
    draws = []
    for _ in range(8):
        X, r = rng.standard_normal((n0, d)) * np.sqrt(s), 0.5 + rng.standard_normal(n0)
        S, S2 = ((X.T * r**p) @ X / n0 for p in (1, 2))
        root = np.sqrt(s)
        K = [
            root[:, None] * (np.linalg.matrix_power(np.eye(d) + a * S, 2) + b * S2) * root
            for a, b in zip(k[0], delta[0], strict=True)
        ]
        draws.append([[np.trace(x @ y) / d for y in K] for x in K])
    mean, error = np.mean(draws, axis=0), np.std(draws, axis=0, ddof=1) / 8**0.5
    found = trace_products(k, delta, np.array([d / n0]), r_moments, powers)[0]
    assert np.all(np.abs(found - mean) < 5.0 * error + 0.01 * np.abs(mean))


def test_products_of_weights_in_a_class_are_those_of_matrices():
    """(124): the diagonal of K_gK_h in each class, to five standard errors over eight draws."""
    rng, d, n0 = np.random.default_rng(1), 300, 450
    s = np.repeat([2.5, 0.5], [75, 225])
    powers = np.array([[np.mean(s**k) for k in range(7)]])
    k, delta = np.array([[0.3, -0.4]]), np.array([[0.2, 0.1]])
    draws = []
    for _ in range(8):
        X, r = rng.standard_normal((n0, d)) * np.sqrt(s), 0.5 + rng.standard_normal(n0)
        S, S2 = ((X.T * r**p) @ X / n0 for p in (1, 2))
        root = np.sqrt(s)
        K = [
            root[:, None] * (np.linalg.matrix_power(np.eye(d) + a * S, 2) + b * S2) * root
            for a, b in zip(k[0], delta[0], strict=True)
        ]
        diagonal = np.array([[(x * y).sum(axis=1) for y in K] for x in K])
        draws.append([diagonal[..., :75].mean(-1), diagonal[..., 75:].mean(-1)])
    mean, error = np.mean(draws, axis=0), np.std(draws, axis=0, ddof=1) / 8**0.5
    x, w = np.polynomial.hermite_e.hermegauss(20)
    r_moments = np.array([[w @ (0.5 + x) ** j / w.sum() for j in range(7)]])
    law = (k, delta, np.array([d / n0]), r_moments, powers, powers)
    found = trace_polynomials(*law)[0] @ np.array([2.5, 0.5]) ** np.arange(7)[:, None]
    found = np.moveaxis(found, 2, 0)
    assert np.all(np.abs(found - mean) < 5.0 * error + 0.015 * np.abs(mean))
    whole = trace_products(*law[:5])[0]
    assert 0.25 * found[0] + 0.75 * found[1] == pytest.approx(whole, rel=1e-12)


def stepped(problem: Problem) -> Any:
    g = (np.array(problem.law.values), np.array(problem.law.probabilities))
    return build_step([ProblemRow(problem)], g, 20, higher=True)


TWO = BASE.replace(covariance=[(3.0, 0.25), (1 / 3, 0.75)], activation="gelu", target="tanh")


def test_classes_are_cut_by_the_eigenvalues_of_weights():
    """Parts keep the mean of K_g in a class and most of tr(K_gK_h), for opposite steps too."""
    p = TWO.replace(n_step=600, step_size=40.0)
    step = stepped(p)
    classes = pair_classes(step, step.classes)
    share, nodes = eigenvalue_nodes(step, classes)
    assert share.sum() == pytest.approx(1.0)
    means = np.einsum("bc,bck->bk", classes.share, classes.variance)
    assert np.einsum("bc,bck->bk", share, nodes) == pytest.approx(means)
    found = np.einsum("c,ck,ch->kh", share[0], nodes[0], nodes[0])
    whole = step.sample_norm[0] * step.d[0] / 2.0
    shown = step.classes.radius[0] * step.norm[0] ** 2
    whole = whole + np.outer(shown, shown) * step.d[0] / 2.0
    plain = np.einsum("c,ck,ch->kh", classes.share[0], classes.variance[0], classes.variance[0])
    assert plain[0, 0] < 0.8 * whole[0, 0]
    assert plain[0, 1] > 1.3 * whole[0, 1]
    assert np.linalg.norm(found - whole) < 0.2 * np.linalg.norm(plain - whole)
    still = stepped(p.replace(step_size=0.0))
    share, nodes = eigenvalue_nodes(still, pair_classes(still, still.classes))
    assert np.sort(share[share > 0.0]) == pytest.approx([0.25, 0.75])
    assert sorted(nodes[share > 0.0][:, 0]) == pytest.approx(
        sorted(still.classes.variance[0, :, 0])
    )


def test_power_of_products_of_drawn_rows():
    """(125): what functions of degree 2 carry beside the norms of samples, for rows on a sphere."""
    p = TWO.replace(d=100, step_size=0.0)
    step = stepped(p)
    classes = pair_classes(step, step.classes)
    _, kept = block_power(step, eigenvalue_nodes(step, classes))
    rng, s = np.random.default_rng(5), np.repeat([3.0, 1 / 3], [25, 75])
    W = rng.standard_normal((200_000, 100))
    W = W / np.linalg.norm(W, axis=1, keepdims=True) * np.sqrt(s)
    norm = (W**2).sum(axis=1)
    # E[(w̃ᵀx̃x̃ᵀw̃ − ‖w̃‖²)²] less the variance of its mean over rows, which is tr of E[w̃w̃ᵀ]²
    products = 2.0 * (norm**2).mean() - 2.0 * (s**2).sum() / 100**2
    predicted = 2.0 * step.norm[0] ** 4 @ (kept[0] * step.neurons[0] / step.neurons[0].sum())
    assert predicted == pytest.approx(products, rel=2e-3)
    assert 2.0 * np.mean(step.norm[0] ** 4) > 1.02 * products


def test_norms_of_samples_leave_the_mean_of_a_feature():
    """(126): over h = ±1 columns and the variance of a feature are those at R = 1."""
    step = stepped(TWO.replace(d=100))
    kappa = np.linspace(-2.0, 2.0, 9)
    sigma, nodes = TWO.sigma, eigenvalue_nodes(step, pair_classes(step, step.classes))
    norm, place = step.norm[:, None, :], step.shift[:, None, :] * kappa[:, None]
    plain = np.tile(sigma.averages(norm, place, 4), (1, 2, 1))
    radius = sample_radii(step.classes, 18)
    place = np.tile(place, (1, 2, 1))
    found = sigma.averages(np.sqrt(radius) * norm, place, 2)
    shown = ShownAtNorms.of(step, nodes, radius, found, plain, np.zeros_like(radius))
    assert np.all(np.abs(radius - 1.0) > 0.1)

    def mean(values):
        return 0.5 * (values[:, :9] + values[:, 9:])

    for values, power, expected in (
        (shown.mean, 0, plain[0]),
        (shown.slope, 0, plain[1]),
        (shown.second, 0, plain[2]),
        (shown.curvature, 0, 0.5 * plain[2]),
        (shown.linear, 0.5, plain[1]),
    ):
        assert mean(radius**power * values) == pytest.approx(expected[:, :9], rel=1e-12)
    assert np.all(shown.spread > 0.0)


@pytest.mark.parametrize("activation", ["gelu", "relu", "sin(z+0.6)"])
@pytest.mark.parametrize("step_size", [0.0, 40.0])
def test_equal_classes_are_small_isotropic_inputs(activation, step_size):
    """Two classes with nearly one eigenvalue against sections 50–53, at n = N = 2.5 d."""
    plain = TWO.replace(
        covariance=None, activation=activation, target="sin(z)", d=320, n=800, width=800
    )
    plain = plain.replace(n_step=400, step_size=step_size, noise_std=0.3, ridge=0.01)
    nearly = plain.replace(covariance=[(1.001, 0.5), (0.999, 0.5)])
    expected, found = predict(plain), predict(nearly)
    assert found.test_error == pytest.approx(expected.test_error, rel=3e-3)
    assert found.train_loss == pytest.approx(expected.train_loss, rel=3e-3)


OWN = BASE.replace(
    activation="sin(z+0.6)",
    target="relu",
    covariance=[(3.0, 0.25), (1 / 3, 0.75)],
    readout="constant",
    n_step=600,
    step_size=2.0 * 600**0.5,
)


def test_fields_of_degree_two_have_what_neurons_have_along_kappa():
    """(122) turns the mean over the classes into 𝒦_g; without a step there is nothing to turn."""
    step = build_step([ProblemRow(OWN)], (np.ones(1), np.ones(1)), 20, higher=True)
    classes, own = pair_classes(step, step.classes), pair_covariance(step)
    mean = np.einsum("bck,bcij->bkij", classes.variance, classes.overlap)
    basis = np.array([1.0, 2**0.5, 1.0])  # of the elements (11), (12), (22)

    def elements(matrix):
        return basis * matrix[0][:, [0, 0, 1], [0, 1, 1]]

    scale = own_scale(classes, own)[0]
    assert np.einsum("kij,kj->ki", scale, elements(mean)) == pytest.approx(elements(own))
    assert np.all(own[0, :, 0, 0] > 1.5 * mean[0, :, 0, 0])
    still = build_step([ProblemRow(OWN.replace(step_size=0.0))], (np.ones(1), np.ones(1)), 20)
    classes = pair_classes(still, still.classes)
    assert own_scale(classes, pair_covariance(still))[0, 0] == pytest.approx(np.eye(3), abs=1e-9)


def test_parts_of_drawn_weights_along_kappa():
    """K_ββ of (107) is the variance of w′·Σβ/‖b‖ over neurons, to four standard errors."""
    rng, draws, p = np.random.default_rng(3), 40, OWN
    step = build_step([ProblemRow(p)], (np.ones(1), np.ones(1)), 20, higher=True)
    share = step.neurons[0] / step.neurons[0].sum()
    expected = share @ pair_covariance(step)[0, :, 0, 0] / p.d
    s = np.repeat([3.0, 1 / 3], [p.d // 4, p.d - p.d // 4])
    mass = p.target_law.class_mass(p.input_covariance)
    found = []
    for _ in range(draws):
        theta = rng.standard_normal(p.d)
        for part, m in zip((slice(p.d // 4), slice(p.d // 4, None)), mass, strict=True):
            theta[part] *= np.sqrt(m) / np.linalg.norm(theta[part])
        W = rng.standard_normal((600, p.d))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        X = rng.standard_normal((p.n_step, p.d))
        r = np.maximum(X @ theta, 0.0) + p.noise_std * rng.standard_normal(p.n_step)
        X = X * np.sqrt(s)
        W = W + 2.0 * (np.cos(X @ W.T + 0.6) * r[:, None]).T @ X / p.n_step
        beta = X.T @ r / p.n_step
        found.append(np.var(W @ (s * beta) / np.sqrt(s @ beta**2)))
    error = np.std(found, ddof=1) / draws**0.5
    assert error < 0.05 * expected
    assert abs(np.mean(found) - expected) < 4.0 * error


def test_visible_directions_are_noted():
    p = BASE.replace(covariance="power(0.9)")
    share = largest_share(p, spiked_weights(p))
    assert share > 0.1
    assert any("a second direction of the inputs" in note for note in predict(p).notes)
    several = BASE.replace(covariance=[(30.0, 4 / BASE.d), (1.0, 1.0 - 4 / BASE.d)])
    assert any("one direction of the inputs" in note for note in predict(several).notes)
    flat = BASE.replace(covariance=[(2.0, 0.5), (1.0, 0.5)], step_size=1.0)
    assert largest_share(flat, spiked_weights(flat)) < 0.03
    assert not any("direction" in note for note in predict(flat).notes)
    assert largest_share(BASE, spiked_weights(BASE)) == 0.0


# Networks of 8 seeds: test error with its standard error, and training loss.
CENTRED = {
    "relu": ((0.1875, 0.0043), (0.0182, 0.0003)),
    "gelu": ((0.3303, 0.0078), (0.0723, 0.0017)),
}


@pytest.mark.parametrize("name", CENTRED)
def test_the_mean_of_a_target_is_learned_through_norms_of_rows(name, monkeypatch):
    """Centred activations learn it only through them; as fields norms are 9 % off and more."""
    base = Problem(
        activation=name,
        centre=True,
        target="H0/2 + H1",
        readout="constant",
        ridge=0.01,
        step_size=0.0,
        noise_std=0.1,
        covariance=[(6.0, 0.1), (4 / 9, 0.9)],
        **({"n": 1500, "d": 375, "width": 2250} if name == "relu" else {}),
        **({"n": 1600, "d": 400, "width": 1200} if name == "gelu" else {}),
    )
    (error, se), (loss, loss_se) = CENTRED[name]
    found = predict(base)
    assert abs(found.test_error - error) < 2.5 * se
    assert abs(found.train_loss - loss) < 2.5 * loss_se
    monkeypatch.setattr(inputs, "LARGEST_SPLIT", 0.0)
    literal = predict(base.replace(ridge=0.01 * (1 + 1e-12)))
    assert literal.test_error > error + 3.0 * se


def test_rows_of_different_norms_vanish_in_large_networks():
    """What their groups change falls as 1/d."""
    changes = []
    for size in (1, 4):
        p = BASE.replace(covariance=[(3.0, 0.25), (1 / 3, 0.75)])
        p = p.replace(n=800 * size, d=400 * size, width=600 * size, step_size=12.0 * size**0.5)
        found = predict(p).test_error
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(inputs, "LARGEST_SPLIT", 0.0)
            changes.append(found / predict(p).test_error - 1.0)
    assert 1e-4 < abs(changes[0]) < 1e-2
    assert changes[1] == pytest.approx(changes[0] / 4, rel=0.3)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"residual": "full", "centre": True}, "residual must be labels with a covariance"),
        ({"target": "z1 + z1*z2"}, "target must have one direction with a covariance"),
    ],
)
def test_what_is_not_known_is_refused(fields, message):
    with pytest.raises(InvalidProblem, match=message):
        predict(BASE.replace(covariance="power(0.5)", **fields))
    with pytest.raises(InvalidProblem, match="method must be exact with a covariance"):
        predict(BASE.replace(covariance="power(0.5)"), method="isotropic")


def test_grids_and_optima():
    p = BASE.replace(covariance=[(3.0, 0.25), (1 / 3, 0.75)])
    grid = p.vary(covariance=[None, "power(0.3)", p.covariance], ridge=[0.02, 0.1])
    found = predict(grid)
    assert set(found.statuses) == {"ok"}
    errors = found.dataset.test_error.values
    assert errors[2, 0] == pytest.approx(predict(p).test_error, rel=1e-12)
    best = optimum(p, over="ridge")
    assert best.value <= errors[2].min()


@pytest.mark.parametrize("exponent", [0.3, 0.6, 0.9])
def test_more_classes_change_errors_by_less_than_a_thousandth(exponent, monkeypatch):
    p = BASE.replace(covariance=f"power({exponent})", readout="constant")
    expected = predict(p)
    monkeypatch.setattr(inputs, "BINS", 40)
    inputs._input_classes.cache_clear()
    found, count = predict(p), len(input_classes(p)[0])
    inputs._input_classes.cache_clear()
    assert count == 48
    assert found.test_error == pytest.approx(expected.test_error, rel=1e-3)
    assert found.train_loss == pytest.approx(expected.train_loss, rel=1e-3)
