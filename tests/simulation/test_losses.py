"""Simulations with other losses than the square: labels, fits, tests, costs and refusals."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from scipy import optimize, special

from featurestep import (
    InsufficientMemory,
    InvalidProblem,
    NonFiniteFeatures,
    NotConverged,
    Problem,
    Setting,
    SingularSystem,
    estimate,
    simulate,
)
from featurestep.core.problem import BINARY_LOSSES, LOSSES
from featurestep.core.results import LOSS_QUANTITIES, QUANTITIES
from featurestep.simulation import make_backend
from featurestep.simulation.network import convex
from featurestep.simulation.network.losses import LOSSES as FUNCTIONS
from featurestep.simulation.network.plan import ReadoutFit

from .dense import draw_of, whole
from .plain_losses import labels, plain

N_TEST = 150
SMOOTH = ("logistic", "squared_hinge", "huber", "square")
SIDES = {"n<N": (60, 90), "n>N": (90, 60)}


def devices():
    """What torch computes on, where it is installed."""
    if importlib.util.find_spec("torch") is None:
        return []
    import torch

    return ["torch", "cuda"] if torch.cuda.is_available() else ["torch"]


DEVICES = devices()


def problem(**changes):
    base = {"n": 60, "d": 30, "width": 45, "n_step": 50, "ridge": 0.02, "noise_std": 0.3}
    base |= {"step_size": 2.5, "activation": "relu", "target": "H1 + H2/2", "loss": "logistic"}
    return Problem(**{**base, **changes})


def fitted(n, N, *, loss, ridge, intercept, seed=0, device="cpu"):
    """F, labels and the fitted readout of made-up features with a mean."""
    rng = np.random.default_rng(seed)
    F = np.maximum(rng.standard_normal((n, N)) + 0.5 * rng.standard_normal((n, 1)), 0.0)
    y = F @ rng.standard_normal(N) / N**0.5 + 0.5 * rng.standard_normal(n) + 0.2
    if loss in BINARY_LOSSES:
        y = np.where(y >= 0.0, 1.0, -1.0)
    backend = make_backend(device, "float64")
    by_samples = ReadoutFit(n, ridge, 0.0, loss, intercept).by_samples(N)
    features = convex.Features(backend, backend.put(F), by_samples=by_samples)
    found = convex.fit_readout(features, y, loss=loss, ridge=ridge, intercept=intercept)
    return F, y, found


def gradient(F, y, found, loss, ridge):
    slopes = FUNCTIONS[loss].slope(y, F @ found.a + found.b)
    return F.T @ slopes / len(y) + ridge * found.a, slopes.mean()


@pytest.mark.parametrize("device", ["cpu", *DEVICES])
@pytest.mark.parametrize("ridge", [1.0, 1e-2, 1e-5])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("sizes", SIDES.values(), ids=SIDES)
def test_the_gradient_vanishes(sizes, loss, intercept, ridge, device):
    """Also the intercept's, Σℓ′ = 0."""
    kind = {"loss": loss, "ridge": ridge, "intercept": intercept}
    F, y, found = fitted(*sizes, **kind, device=device)
    at_start = np.linalg.norm(F.T @ FUNCTIONS[loss].slope(y, np.zeros(len(y)))) / len(y)
    by_a, by_b = gradient(F, y, found, loss, ridge)
    assert np.linalg.norm(by_a) <= 1e-9 * at_start
    assert found.residual <= 1e-9
    if intercept:
        assert abs(by_b) <= 1e-9 * at_start
    else:
        assert found.b == 0.0


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sizes", SIDES.values(), ids=SIDES)
def test_logistic_regression_of_scikit_learn(sizes, intercept):
    """The same coefficients for C = 1/(λn)."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    F, y, found = fitted(*sizes, loss="logistic", ridge=0.01, intercept=intercept)
    other = linear_model.LogisticRegression(
        C=1.0 / (0.01 * len(y)), fit_intercept=intercept, tol=1e-12, max_iter=10_000
    ).fit(F, y)
    assert found.a == pytest.approx(other.coef_[0], abs=1e-6)
    assert found.b == pytest.approx(float(np.ravel(other.intercept_)[0]), abs=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
def test_huber_by_scipy(intercept):
    F, y, found = fitted(90, 60, loss="huber", ridge=0.01, intercept=intercept)

    def objective(x):
        u = y - F @ x[:-1] - x[-1] * intercept
        slope = -np.clip(u, -1.0, 1.0) / len(y)
        value = special.huber(1.0, u).mean() + 0.005 * x[:-1] @ x[:-1]
        return value, np.r_[F.T @ slope + 0.01 * x[:-1], slope.sum() * intercept]

    other = optimize.minimize(
        objective, np.zeros(61), jac=True, method="BFGS", options={"gtol": 1e-12, "maxiter": 5000}
    ).x
    assert found.a == pytest.approx(other[:-1], abs=1e-6)
    assert found.b == pytest.approx(other[-1], abs=1e-6)


@pytest.mark.parametrize("ridge", [1.0, 1e-2, 1e-5])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sizes", SIDES.values(), ids=SIDES)
def test_the_hinge_closes_its_duality_gap(sizes, intercept, ridge):
    """The dual's value from α itself, a = Fᵀ(yα)/λn; with an intercept Σyα = 0."""
    F, y, found = fitted(*sizes, loss="hinge", ridge=ridge, intercept=intercept)
    n, alpha = len(y), found.coordinates * y * len(y) * ridge
    assert alpha.min() >= 0.0
    assert alpha.max() <= 1.0
    assert F.T @ (y * alpha) / (n * ridge) == pytest.approx(found.a, abs=1e-10)
    square = ridge / 2 * found.a @ found.a
    primal = np.maximum(1.0 - y * (F @ found.a + found.b), 0.0).mean() + square
    assert primal - (alpha.mean() - square) <= 1e-8 * primal
    if intercept:
        assert abs(y @ alpha) <= 1e-8 * n


@pytest.mark.parametrize("sizes", SIDES.values(), ids=SIDES)
def test_the_hinge_of_scikit_learn(sizes):
    """Its SVC has an intercept without penalty."""
    svm = pytest.importorskip("sklearn.svm")
    F, y, found = fitted(*sizes, loss="hinge", ridge=0.05, intercept=True)
    other = svm.SVC(kernel="linear", C=1.0 / (0.05 * len(y)), tol=1e-9).fit(F, y)
    assert found.a == pytest.approx(other.coef_[0], abs=1e-6)
    assert found.b == pytest.approx(other.intercept_[0], abs=1e-6)


def test_a_neighbouring_ridge_is_a_good_start():
    backend = make_backend("cpu", "float64")
    F, y, large = fitted(90, 60, loss="squared_hinge", ridge=1e-4, intercept=True)
    features = convex.Features(backend, F, by_samples=False)
    kind = {"loss": "squared_hinge", "ridge": 5e-5, "intercept": True}
    cold = convex.fit_readout(features, y, **kind)
    warm = convex.fit_readout(features, y, **kind, start=large)
    assert warm.steps < cold.steps
    assert warm.a == pytest.approx(cold.a, abs=1e-8)


def check(p, setting=None, variants=("trained",), rel=1e-8, **options):
    found = simulate(p, seeds=[3], n_test=N_TEST, variants=variants, setting=setting, **options)
    draw = draw_of(p, setting, seed=3, n_test=N_TEST)
    for v, variant in enumerate(variants):
        expected = plain(p, draw, variant)
        assert set(expected) == set(LOSS_QUANTITIES)
        for name, value in expected.items():
            got = float(found.values[name][v].squeeze())
            assert got == pytest.approx(value, rel=rel, abs=rel), (variant, name)


@pytest.mark.parametrize("sizes", [{}, {"width": 80}, {"n": 45}])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_plain_implementation(loss, intercept, sizes):
    if loss == "square" and not intercept:
        return
    flip = 0.1 if loss in BINARY_LOSSES else 0.0
    check(problem(loss=loss, intercept=intercept, flip=flip, **sizes))


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_variants(loss):
    variants = ("trained", "initial", "spiked:2", "gaussian", "gaussian+spiked:1", "srf")
    check(problem(loss=loss), variants=variants)


@pytest.mark.parametrize("changes", [{"noise_std": 0.0}, {"initial": "gaussian"}, {"centre": True}])
@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_other_problems(loss, changes):
    check(problem(loss=loss, readout="rademacher", **changes))


@pytest.mark.parametrize("setting", [{"inputs": "uniform"}, {"corrupted": 0.3}])
def test_settings(setting):
    check(problem(flip=0.2), Setting(**setting))


@pytest.mark.parametrize(
    "fields", [{"steps": 2}, {"rows": "same", "n_step": None}, {"covariance": "power(0.5)"}]
)
def test_fields_beyond_the_plain_problem(fields):
    check(problem(flip=0.2, **fields))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_on_torch(loss, intercept, device):
    if loss == "square" and not intercept:
        return
    flip = 0.1 if loss in BINARY_LOSSES else 0.0
    p = problem(loss=loss, intercept=intercept, flip=flip)
    check(p, rel=1e-8, device=device, drawn="host")


@pytest.mark.parametrize("device", DEVICES)
def test_mixed_precision_on_torch(device):
    p = problem(flip=0.1, intercept=True)
    check(p, rel=1e-4, device=device, dtype="mixed", drawn="host")


def test_labels_flip_by_a_stream_of_their_own():
    draws = {flip: draw_of(problem(flip=flip, n=2000)) for flip in (0.0, 0.1, 0.3)}
    y = {flip: whole(draw, draw.readout_sample(2000))[1] for flip, draw in draws.items()}
    assert set(np.unique(y[0.0])) == {-1.0, 1.0}
    changed = [y[flip] != y[0.0] for flip in (0.1, 0.3)]
    assert [each.mean() for each in changed] == pytest.approx([0.1, 0.3], abs=0.03)
    assert not (changed[0] & ~changed[1]).any()  # more of the same
    draw = draws[0.0]
    assert y[0.0] == pytest.approx(labels(problem(n=2000), draw, draw.readout_sample(2000)))


@pytest.mark.parametrize(
    "axes",
    [
        {"ridge": [0.1, 0.01], "loss": ["logistic", "hinge", "squared_hinge"]},
        {"n": [30, 45, 64, 128], "intercept": [False, True]},
        {"flip": [0.0, 0.1], "step_size": [0.0, 1.0, 3.0], "noise_std": [0.1, 0.5]},
        {"loss": ["logistic", "huber"], "width": [30, 70]},
    ],
    ids=lambda axes: "-".join(axes),
)
def test_a_grid_is_its_points_and_counts_the_flops_it_promised(axes):
    grid, calls = problem().vary(**axes), []
    options = {"seeds": 2, "n_test": 100, "variants": ("trained", "initial")}
    found = simulate(grid, **options, progress=lambda done, total: calls.append((done, total)))
    promised = estimate(grid, **options).flops
    assert found.flops == promised
    assert calls[-1] == (promised, promised)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    points = list(grid)
    for i in (0, len(points) // 2, len(points) - 1):
        alone = simulate(points[i], **options)
        for name in set(LOSS_QUANTITIES) - set(axes):
            got = found.values[name].reshape(2, len(points), 2)[:, i]
            assert got == pytest.approx(alone.values[name], rel=1e-7, abs=1e-9), name


def test_block_rows_do_not_matter():
    few, many = (
        simulate(problem(n=300), seeds=1, n_test=300, block_rows=rows).values for rows in (64, 512)
    )
    for name, values in few.items():
        assert values == pytest.approx(many[name], rel=1e-9)


def test_numbers_have_their_names():
    p = problem(intercept=True)
    found = simulate(p, seeds=3, n_test=200)
    assert set(found.numbers) == set(LOSS_QUANTITIES)
    assert found.dataset.test_error.attrs["long_name"] == LOSS_QUANTITIES["test_error"]
    assert found.train_objective == pytest.approx(
        found.train_loss + p.ridge / 2 * np.mean(found.values["readout_norm"] ** 2)
    )
    assert found.standard_error.test_loss.item() > 0.0
    assert "intercept" in found.tables()[0].text()
    assert not hasattr(found, "train_mse")
    plain_header = simulate(problem(), seeds=2, n_test=200).tables()[0].text()
    assert "train objective" in plain_header
    assert "intercept" not in plain_header
    square = simulate(problem(loss="square"), seeds=2, n_test=200)
    assert set(square.numbers) == set(QUANTITIES)
    assert found.plot().get_xlabel()


def test_the_square_loss_by_either_way():
    """Without intercept the objective is half of today's loss, and the readout the same."""
    p = problem(loss="huber", target="H1/100", noise_std=0.01)  # residuals below 1: a square
    found = simulate(p, seeds=2, n_test=200)
    square = simulate(p.replace(loss="square"), seeds=2, n_test=200)
    assert 2 * found.train_objective == pytest.approx(square.train_loss)
    assert 2 * found.train_loss == pytest.approx(square.train_mse)
    assert found.train_error == pytest.approx(square.train_mse)
    assert found.test_error == pytest.approx(square.test_error)
    assert found.readout_norm == pytest.approx(square.readout_norm)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: simulate(problem(), dtype="float32"), "dtype must be float64 or mixed with loss"),
        (
            lambda: simulate(problem(loss="square").vary(loss=["square", "huber"])),
            "loss must be square (without intercept) at all points of a grid or at none",
        ),
        (
            lambda: simulate(problem(loss="square").vary(intercept=[False, True])),
            "intercept must be the same at every point of a grid with loss square",
        ),
    ],
    ids=["float32", "losses", "intercepts"],
)
def test_refusals(ask, message):
    with pytest.raises(InvalidProblem) as caught:
        ask()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_memory_is_refused_before_the_run():
    """The sample is held: no blocks of rows make it smaller."""
    large = problem(n=20_000, width=20_000, d=1000)
    with pytest.raises(InsufficientMemory, match=r"needs at least .* GiB"):
        simulate(large, max_memory=4e9)
    assert estimate(large).memory > 20_000**2 * 8 * 3


@pytest.mark.parametrize("n", [60, 20])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge", "huber"])
def test_features_that_overflow(loss, n):
    p = problem(activation="H1 + H20", step_size=1e12, loss=loss, n=n, intercept=True)
    with pytest.raises(NonFiniteFeatures, match="not finite"):
        simulate(p, seeds=1, n_test=100)


def test_labels_of_one_sign_have_no_intercept():
    with pytest.raises(SingularSystem, match="all 2 labels have one sign"):
        simulate(problem(n=2, intercept=True), seeds=8, n_test=100)


def test_what_does_not_converge_is_an_error(monkeypatch):
    monkeypatch.setattr(convex, "MAX_STEPS", 2)
    for loss in ("logistic", "hinge"):
        with pytest.raises(NotConverged, match="stopped at a"):
            simulate(problem(loss=loss), seeds=1, n_test=100)
