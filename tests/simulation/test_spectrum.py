"""Spectra of features and weights against NumPy's SVD of the plain second implementation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval

from featurestep import Problem, Setting, Teacher, simulated_spectrum

from .dense import beta_of, draw_of, features, trained_weights, whole

pytestmark = pytest.mark.usefixtures("one_blas_thread")
FEATURES = ("trained", "initial", "spiked:1", "spiked:3", "gaussian", "gaussian+spiked:2", "srf")
WEIGHTS = ("weights", "initial_weights")
WIDTHS = [45, 60, 80]  # N < n, N = n, N > n
SEED = 3


def problem(**changes):
    base = {"n": 60, "d": 30, "width": 45, "n_step": 50, "ridge": 0.02, "noise_std": 0.3}
    return Problem(**{**base, "step_size": 2.5, "activation": "relu", "target": "tanh", **changes})


def plain_features(p, variant, setting=None):
    """F, and κ of the same draw."""
    draw = draw_of(p, setting, seed=SEED)
    X, _, _ = whole(draw, draw.readout_sample(p.n))
    beta = beta_of(p, draw)
    return features(p, draw, variant, X, 0), X @ beta / np.linalg.norm(beta)


def plain_weights(p, variant, setting=None):
    return trained_weights(p, draw_of(p, setting, seed=SEED))[-1 if variant == "weights" else 0]


def overlaps(vectors, functions):
    return np.array([[(v @ f) ** 2 / (f @ f) for f in functions] for v in vectors])


def check_features(p, variants, setting=None, *, top=8, rtol=1e-10, **options):
    found = simulated_spectrum(
        p, seeds=[SEED], variants=variants, setting=setting, top=top, **options
    )
    for variant in variants:
        F, kappa = plain_features(p, variant, setting)
        U, s, _ = np.linalg.svd(F / np.sqrt(p.n), full_matrices=False)
        np.testing.assert_allclose(found.singular_values(variant)[0], s[:top], rtol=rtol)
        hermite = [hermeval(kappa, np.eye(7)[k]) for k in range(7)]
        powers = [kappa**k for k in range(1, 7)]
        expected = overlaps(U.T[:top], hermite)
        np.testing.assert_allclose(found.hermite_overlaps(variant)[0], expected, atol=100 * rtol)
        expected = overlaps(U.T[:top], powers)
        np.testing.assert_allclose(found.power_overlaps(variant)[0], expected, atol=100 * rtol)
        if found.methods[variant] == "dense":
            np.testing.assert_allclose(found.eigenvalues(variant)[0], s**2, atol=rtol * s[0] ** 2)
            assert found.eigenvalues(variant).shape[1] + found.zeros(variant) == p.width
    return found


def check_weights(p, setting=None, *, top=8, rtol=1e-10, **options):
    found = simulated_spectrum(
        p, seeds=[SEED], variants=WEIGHTS, setting=setting, top=top, **options
    )
    draw, beta = draw_of(p, setting, seed=SEED), beta_of(p, draw_of(p, setting, seed=SEED))
    for variant in WEIGHTS:
        W = plain_weights(p, variant, setting)
        U, s, V = np.linalg.svd(W, full_matrices=False)
        np.testing.assert_allclose(found.singular_values(variant)[0], s[:top], rtol=rtol)
        got = {name: values[0] for name, values in found.direction_overlaps(variant).items()}
        a = overlaps(U.T[:top], [draw.readout])[:, 0]
        along = overlaps(V[:top], [beta])[:, 0]
        target = np.sum((V[:top] @ draw.unit_directions.T) ** 2, axis=1)
        for name, expected in {"readout": a, "beta": along, "target": target}.items():
            np.testing.assert_allclose(got[name], expected, atol=100 * rtol, err_msg=name)
        if found.methods[variant] == "dense":
            np.testing.assert_allclose(found.eigenvalues(variant)[0], s**2, atol=rtol * s[0] ** 2)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("residual", ["labels", "full"])
@pytest.mark.parametrize("method", ["dense", "krylov"])
def test_features(width, residual, method):
    p = problem(width=width, residual=residual)
    check_features(p, FEATURES, method=method, rtol=1e-10 if method == "dense" else 1e-8)


@pytest.mark.parametrize("width", [20, 30, 45])  # N < d, N = d, N > d
@pytest.mark.parametrize("residual", ["labels", "full"])
@pytest.mark.parametrize("method", ["dense", "krylov"])
def test_weights(width, residual, method):
    p = problem(width=width, residual=residual)
    check_weights(p, method=method, rtol=1e-10 if method == "dense" else 1e-8)


@pytest.mark.parametrize(
    "law", ["gaussian", "rademacher", "constant", "uniform", [(2.0, 0.2), (-0.5, 0.8)]]
)
def test_laws(law):
    p = problem(readout=law, residual="full", centre=True)
    check_features(p, ("trained", "srf"))
    check_weights(p)


def test_gaussian_first_layer():
    p = problem(initial="gaussian", residual="full")
    check_features(p, FEATURES)
    check_weights(p)


@pytest.mark.parametrize(
    "setting",
    [
        {"inputs": "student_t(5)"},
        {"teacher": Teacher(2, lambda k: k[:, 0] * k[:, 1] + np.tanh(k[:, 0]))},
        {"corrupted": 0.3},
        {"inputs": np.random.default_rng(0).laplace(size=(200, 30))},
    ],
    ids=str,
)
def test_settings(setting):
    check_features(problem(), ("trained", "initial"), Setting(**setting))
    check_weights(problem(), Setting(**setting))


@pytest.mark.parametrize(
    "fields",
    [
        {"covariance": (2.0, 1.0, 0.1)},
        {"covariance": np.diag(np.arange(1.0, 31.0)), "target_exponent": -0.5},
        {"rows": "same", "n_step": None},
        {"step_sizes": (4.0, 2.0), "step_size": None, "step_exponent": None},
    ],
    ids=["variances", "matrix", "rows", "steps"],
)
def test_fields_beyond_the_plain_problem(fields):
    check_features(problem(**fields), ("trained", "initial"))
    check_weights(problem(**fields))


@pytest.mark.parametrize("method", ["dense", "krylov"])
def test_no_step(method):
    """β is that of the step which is not taken, so that overlaps mean the same."""
    p = problem(step_size=0.0)
    check_features(p, ("trained", "initial"), method=method, rtol=1e-8)
    check_weights(p, method=method, rtol=1e-8)
    check_features(problem(), ("initial",), method=method, rtol=1e-8)


def test_one_weight_matrix_alone():
    found = simulated_spectrum(problem(), seeds=[SEED], variants=("initial_weights",), top=3)
    s = np.linalg.svd(plain_weights(problem(), "initial_weights"), compute_uv=False)
    np.testing.assert_allclose(found.singular_values()[0], s[:3], rtol=1e-10)


@pytest.mark.parametrize("width", WIDTHS)
def test_user_function_and_one_value(width):
    p = problem(activation=lambda s: s / np.sqrt(1 + s * s), width=width)
    for method in ("dense", "krylov"):
        check_features(p, ("trained",), top=1, method=method, rtol=1e-8)


def test_sizes_of_one():
    p = problem(n=1, width=1, d=1, n_step=1, activation="tanh")
    found = simulated_spectrum(p, seeds=1, top=1, variants=("trained", "weights"))
    F, _ = plain_features(p, "trained")
    one = simulated_spectrum(p, seeds=[SEED], top=1)
    np.testing.assert_allclose(one.singular_values(), [[abs(F[0, 0])]], rtol=1e-12)
    np.testing.assert_allclose(found.hermite_overlaps(), 1.0)


@pytest.mark.parametrize("method", ["dense", "krylov"])
@pytest.mark.parametrize("width", WIDTHS)
def test_float32(method, width):
    p = problem(width=width)
    check_features(p, FEATURES, method=method, dtype="float32", rtol=1e-4)
    check_weights(p, method=method, dtype="float32", rtol=1e-4)


def test_torch():
    pytest.importorskip("torch")
    for method in ("dense", "krylov"):
        for width in WIDTHS:
            check_features(problem(width=width), FEATURES, method=method, device="torch", rtol=1e-8)
        check_weights(problem(), method=method, device="torch", rtol=1e-8)


def test_rank_deficient_features():
    """A linear network: singular values beyond d are 0, and their vectors are no answer."""
    p = problem(activation="identity", d=6)
    F, _ = plain_features(p, "trained")
    s = np.linalg.svd(F / np.sqrt(p.n), compute_uv=False)
    for method in ("dense", "krylov"):
        found = simulated_spectrum(p, seeds=[SEED], top=10, method=method)
        np.testing.assert_allclose(found.singular_values()[0, :6], s[:6], rtol=1e-10)
        assert np.all(found.singular_values()[0, 6:] < 1e-6 * s[0])
        assert np.all(np.isfinite(found.hermite_overlaps()[0, :6]))
        assert np.all(np.isnan(found.hermite_overlaps()[0, 6:]))
        below = found.cumulative([1e-3 * s[5] ** 2]).mean[0]
        assert below == pytest.approx(39 / 45, abs=0.1 if method == "krylov" else 1e-12)


@pytest.mark.parametrize("method", ["dense", "krylov"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", [1, 100, 10_000])
def test_block_size_does_not_matter(method, width, rows):
    p, variants = problem(n=150, width=2 * width), ("trained", "gaussian", "weights")
    options = {"seeds": 2, "variants": variants, "method": method}
    x = np.linspace(0.0, 5.0, 50)
    one, two = (simulated_spectrum(p, **options, block_rows=r) for r in (None, rows))
    for v in variants:
        np.testing.assert_allclose(one.singular_values(v), two.singular_values(v), rtol=1e-10)
        np.testing.assert_allclose(one.cumulative(x, v).mean, two.cumulative(x, v).mean, atol=1e-8)
    np.testing.assert_allclose(one.hermite_overlaps(), two.hermite_overlaps(), atol=1e-9)


def test_variants_do_not_disturb_each_other():
    p, every = problem(), (*FEATURES, *WEIGHTS)
    together = simulated_spectrum(p, seeds=2, variants=every)
    for variant in every:
        alone = simulated_spectrum(p, seeds=[1], variants=[variant])
        got, expected = alone.singular_values(variant)[0], together.singular_values(variant)[1]
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_streams_are_pinned_as_in_simulate():
    p = problem()
    options = {"variants": ("trained", "initial_weights"), "seeds": 2}
    free = simulated_spectrum(p, **options)
    pinned = simulated_spectrum(p, **options, streams={"initialisation": 7})
    W = pinned.singular_values("initial_weights")
    np.testing.assert_array_equal(W[0], W[1])
    assert not np.allclose(free.singular_values("initial_weights")[0], W[0])
