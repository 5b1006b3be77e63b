"""The two routes against each other, what they cost, and what they refuse."""

from __future__ import annotations

import subprocess
import sys
from functools import cache, partial

import numpy as np
import pytest

from featurestep import (
    Border,
    InsufficientMemory,
    InvalidProblem,
    NonFiniteFeatures,
    NotConverged,
    Problem,
    estimate_spectrum,
    simulated_spectrum,
)
from featurestep.simulation import make_backend
from featurestep.simulation.backend import eigenvalues_and_top
from featurestep.simulation.spectra import krylov as krylov_module
from featurestep.simulation.spectra.krylov import BlockLanczos, gauss_rule

pytestmark = pytest.mark.usefixtures("one_blas_thread")
VARIANTS = ("trained", "weights")
LARGE = {"n": 1200, "width": 1050, "d": 980, "n_step": 1000}  # more than the probes can fill


def problem(**changes):
    base = {"n": 700, "d": 350, "width": 500, "n_step": 400, "ridge": 0.02, "noise_std": 0.3}
    return Problem(**{**base, "step_exponent": 0.4, "activation": "tanh", **changes})


@cache
def routes(width):
    p = problem(**{**LARGE, "width": width})
    both = {"seeds": 1, "variants": VARIANTS}
    return [simulated_spectrum(p, **both, method=m) for m in ("dense", "krylov")]


@pytest.mark.parametrize(
    "width", [*(pytest.param(w, marks=pytest.mark.slow) for w in (1050, 1200)), 1500]
)
def test_krylov_equals_dense(width):
    dense, krylov = routes(width)
    for v in VARIANTS:
        assert np.nanmax(krylov.residuals(v)) < 1e-9
        np.testing.assert_allclose(krylov.singular_values(v), dense.singular_values(v), rtol=1e-10)
        assert krylov.zeros(v) == dense.zeros(v)
        x = np.quantile(dense.eigenvalues(v), np.linspace(0.01, 0.995, 40))
        true, got = dense.cumulative(x, v).mean, krylov.cumulative(x, v)
        gap = np.abs(got.mean - true)
        assert np.all(gap <= 4 * got.standard_error + 0.5 * got.resolution + 1e-9)
        upper = slice(20, 39)  # the quadrature's own error is at the lower edge
        assert np.sqrt(np.mean((gap / got.standard_error)[upper] ** 2)) < 2.0
    np.testing.assert_allclose(krylov.hermite_overlaps(), dense.hermite_overlaps(), atol=1e-8)
    for name, values in dense.direction_overlaps().items():
        np.testing.assert_allclose(krylov.direction_overlaps()[name], values, atol=1e-8)


def test_cumulative_beyond_the_top_is_exact():
    dense, krylov = routes(1500)
    edge = np.mean(dense.singular_values()[0, -2:]) ** 2
    x = np.linspace(edge, 1.2 * dense.eigenvalues().max(), 50)
    np.testing.assert_allclose(krylov.cumulative(x).mean, dense.cumulative(x).mean, atol=1e-12)
    assert krylov.cumulative([-1.0, 1e9]).mean == pytest.approx([0.0, 1.0], abs=1e-12)


def test_densities_agree_and_integrate_to_one_minus_the_zeros():
    dense, krylov = routes(1500)
    for v in VARIANTS:
        x = np.linspace(-0.5, 1.05 * dense.eigenvalues(v).max(), 1000)
        curves = [found.density(x, v, width=0.05) for found in (dense, krylov)]
        for curve in curves:
            rest = 1.0 - dense.zeros(v) / (1500 if v != "weights" else 980)
            assert np.trapezoid(curve.mean, x) == pytest.approx(rest, rel=1e-3)
        gap = np.abs(curves[0].mean - curves[1].mean)
        assert np.max(gap) < 4 * np.max(curves[1].standard_error) + 0.02 * np.max(curves[0].mean)


@pytest.mark.parametrize(("width", "keep"), [(250, "float32"), (400, "float32"), (250, None)])
def test_less_memory_changes_what_is_kept_but_not_the_answer(width, keep):
    p = problem(n=300, d=100, width=width)
    options = {"seeds": 1, "method": "krylov", "block_rows": 64}
    free = simulated_spectrum(p, **options)
    assert free.record["method"] == "trained: krylov, features kept in float64"
    limit = estimate_spectrum(p, **options).memory - 4 * p.n * width * (1 if keep else 3)
    tight = simulated_spectrum(p, **options, max_memory=limit)
    kept = f"krylov, features kept in {keep}" if keep else "krylov"
    assert tight.record["method"] == f"trained: {kept}"
    tolerance = 1e-7 if keep else 1e-12
    np.testing.assert_allclose(tight.singular_values(), free.singular_values(), rtol=tolerance)
    np.testing.assert_allclose(tight.hermite_overlaps(), free.hermite_overlaps(), atol=1e-6)


def test_auto_takes_the_dense_route_where_it_fits():
    p = problem()
    assert simulated_spectrum(p, seeds=1).methods == {"trained": "dense"}
    large = Problem(n=20_000, d=5000, width=20_000, ridge=0.1, step_size=1.0)
    dense, auto = (estimate_spectrum(large, method=m) for m in ("dense", "auto"))
    assert auto.flops < dense.flops
    long = Problem(n=10**7, d=2000, width=8000, ridge=0.1, step_size=1.0, n_step=10**4)
    assert estimate_spectrum(long).flops == estimate_spectrum(long, method="dense").flops
    assert estimate_spectrum(long).memory < 1.5e9  # whatever n is


def test_memory_is_refused_with_its_numbers():
    huge = Problem(n=10**6, d=10**6, width=10**6, ridge=0.1, step_size=1.0)
    with pytest.raises(
        InsufficientMemory, match=r"trained needs at least \d+.* GiB .*auto.*1000000"
    ):
        simulated_spectrum(huge, max_memory=1e10)
    with pytest.raises(InsufficientMemory, match=r"max_memory is 1 MiB"):
        estimate_spectrum(problem(), max_memory=2**20)
    p = problem()
    least = estimate_spectrum(p, method="dense", block_rows=64).memory
    assert estimate_spectrum(p, method="dense", max_memory=least).block_rows == 64
    assert estimate_spectrum(p, max_memory=least).memory <= least
    with pytest.raises(InsufficientMemory):
        estimate_spectrum(p, method="dense", max_memory=least - 1)


def test_flops_are_counted_as_promised():
    p, calls = problem(n=200, d=60, width=90), []
    options = {"seeds": 2, "variants": VARIANTS}
    found = simulated_spectrum(p, **options, progress=lambda *now: calls.append(now))
    promised = estimate_spectrum(p, **options).flops
    assert found.flops == promised
    assert calls[-1] == (promised, promised)
    krylov = simulated_spectrum(
        p, **options, method="krylov", progress=lambda *now: calls.append(now)
    )
    promised = estimate_spectrum(p, **options, method="krylov").flops
    assert krylov.flops < promised
    assert calls[-1] == (promised, promised)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variants": ("features",)}, "variants must be some of trained.*initial_weights"),
        ({"variants": "trained"}, "variants must be some of"),
        ({"variants": ()}, "variants must be some of"),
        ({"variants": ("weights", "weights")}, "variants must be some of .* each once"),
        ({"method": "svd"}, "method must be one of auto, dense, krylov; got 'svd'"),
        ({"top": 0}, "top must be a whole number"),
        ({"top": 501}, r"top must be <= 500, the smaller side of trained \(700 × 500\); got 501"),
        ({"top": 400, "variants": ("weights",)}, r"the smaller side of weights \(500 × 350\)"),
        ({"seeds": 0}, "seeds must be a number >= 1"),
        ({"border": -1.0}, "border must be a Border, as .* is; got -1.0"),
        ({"border": {"srf": Border(1.0, 0.1)}}, "border must name some of trained; got 'srf'"),
        ({"border": {"trained": "wide"}}, "border must be a Border"),
        ({"max_memory": 0}, "max_memory must be > 0"),
        ({"dtype": "float16"}, "dtype must be one of"),
        ({"device": "tpu"}, "device must be"),
        ({"setting": 3}, "setting must be a Setting"),
        ({"progress": 3}, "progress must be callable"),
        ({"streams": {"nois": 1}}, "streams must name some of"),
        ({"block_rows": 0}, "block_rows must be"),
    ],
    ids=str,
)
def test_wrong_arguments(options, message):
    with pytest.raises(InvalidProblem, match=message):
        simulated_spectrum(problem(), **options)


def test_a_grid_has_the_spectra_of_its_points():
    grid = problem().vary(step_exponent=[0.1, 0.3])
    found = simulated_spectrum(grid, seeds=2, top=3)
    for i, each in enumerate(grid):
        alone = simulated_spectrum(each, seeds=2, top=3)
        assert np.array_equal(found.singular_value.values[i], alone.singular_value)


@pytest.mark.parametrize("method", ["dense", "krylov"])
def test_features_that_overflow_are_refused(method):
    p = problem(activation="H1 + H9", step_size=1e12, step_exponent=None, n=60, d=30, width=40)
    with pytest.raises(NonFiniteFeatures, match="not finite"):
        simulated_spectrum(p, seeds=1, method=method, dtype="float32")


def test_unresolved_values_are_an_error(monkeypatch):
    monkeypatch.setattr(krylov_module, "most_steps", lambda side: 8)
    with pytest.raises(NotConverged, match="resolved after 8 steps") as caught:
        simulated_spectrum(problem(), seeds=1, method="krylov", top=60)
    assert caught.value.iterations == 8
    assert caught.value.residual > 1e-10
    assert caught.value.solution.shape == (60,)


def symmetric(values, rng):
    Q = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    return (Q * values) @ Q.T


@pytest.mark.parametrize(
    "values",
    [
        np.linspace(0.0, 1.0, 80),
        np.geomspace(1e-9, 1e6, 80),
        np.repeat([0.0, 1.0, 3.0, 7.0], 20),
        np.zeros(80),
        np.array([2.0, 1.0]),
    ],
    ids=["even", "wide", "multiple", "zero", "two"],
)
@pytest.mark.parametrize("top", [1, 2, 30])
def test_eigenvalues_and_top(values, top):
    A = symmetric(values, np.random.default_rng(1))
    top = min(top, len(values))
    found, vectors = eigenvalues_and_top(np.tril(A), top)
    size = max(values.max(), 1e-300)
    np.testing.assert_allclose(found, np.sort(values)[::-1], atol=1e-13 * size)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(top), atol=1e-12)
    np.testing.assert_allclose(vectors @ A, found[:top, None] * vectors, atol=1e-12 * size)


def lanczos_of(apply, start, capacity):
    backend = make_backend("cpu", "float64")
    return BlockLanczos(apply, start, capacity=capacity, precision=2e-16, backend=backend)


@pytest.mark.parametrize("probes", [1, 4])
def test_lanczos_basis_and_quadrature(probes):
    """Orthonormal to rounding, T = QAQᵀ, and moments exact up to twice the steps less one."""
    rng = np.random.default_rng(2)
    values = np.concatenate([[50.0, 20.0], np.linspace(0.0, 1.0, 118)])
    A = symmetric(values, rng)
    start = rng.standard_normal((probes, 120))
    start /= np.linalg.norm(start, axis=1)[:, None]
    lanczos = lanczos_of(lambda V: V @ A, start, capacity=120)
    for _ in range(6):
        lanczos.step()
    Q, ritz = lanczos.basis[: lanczos.size], lanczos.ritz()
    np.testing.assert_allclose(Q @ Q.T, np.eye(len(Q)), atol=1e-13)
    inside = Q[: lanczos.start]
    np.testing.assert_allclose(
        inside @ A @ inside.T, lanczos.T[: lanczos.start, : lanczos.start], atol=1e-12
    )
    vectors = lanczos.vectors(ritz, 3)
    residuals = np.linalg.norm(vectors @ A - ritz.values[:3, None] * vectors, axis=1)
    np.testing.assert_allclose(ritz.residuals[:3], residuals, rtol=1e-6, atol=1e-12)
    for power in range(12):
        exact = np.einsum("pi,ij,pj->p", start, np.linalg.matrix_power(A, power), start)
        np.testing.assert_allclose(ritz.weights @ ritz.values**power, exact, rtol=1e-10)


def test_lanczos_ends_with_its_space():
    """Four distinct eigenvalues and two probes: a basis of eight vectors is invariant."""
    rng = np.random.default_rng(3)
    values = np.repeat([0.0, 1.0, 3.0, 7.0], 20)
    start = rng.standard_normal((2, 80)) / np.sqrt(80)
    lanczos = lanczos_of(lambda V: V * values, start, capacity=80)
    while not lanczos.exhausted:
        lanczos.step()
    assert lanczos.size == 8
    expected = np.repeat([7.0, 3.0, 1.0, 0.0], 2)
    np.testing.assert_allclose(lanczos.ritz().values, expected, atol=1e-12)


def test_gauss_rule_of_a_uniform_measure_is_legendre():
    nodes = np.cos(np.pi * (np.arange(4000) + 0.5) / 4000)
    weights = np.sin(np.pi * (np.arange(4000) + 0.5) / 4000)
    x, w = gauss_rule((1.0 + nodes) / 2.0, weights / weights.sum(), 7)
    exact, masses = np.polynomial.legendre.leggauss(7)
    np.testing.assert_allclose(x, (1.0 + exact) / 2.0, atol=1e-6)
    np.testing.assert_allclose(w, masses / 2.0, atol=1e-6)
    few, all_mass = gauss_rule(np.array([3.0, 1.0]), np.array([0.25, 0.75]), 7)
    np.testing.assert_allclose(few, [1.0, 3.0])
    np.testing.assert_allclose(all_mass, [0.75, 0.25])


MEASURE = """
from featurestep import Problem
from featurestep import estimate_spectrum, simulated_spectrum

def status(field):
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))

simulated_spectrum(Problem(n=600, d=300, width=300, ridge=0.01, step_size=1.0), seeds=1)
problem = {problem}
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")
before = status("VmRSS")
simulated_spectrum(problem, seeds=1, {options})
print(status("VmHWM") - before, estimate_spectrum(problem, seeds=1, {options}).memory)
"""


def measured(problem, options):
    script = MEASURE.format(problem=problem, options=options)
    run = partial(subprocess.run, capture_output=True, text=True, check=True)
    return map(int, run([sys.executable, "-c", script]).stdout.split())


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("sizes", ["n=4000, d=800, width=2000", "n=1500, d=800, width=2500"])
def test_dense_memory_is_as_promised(sizes):
    peak, promised = measured(f"Problem({sizes}, ridge=0.01, step_size=1.0)", "method='dense'")
    assert abs(peak - promised) < 0.2 * promised


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_krylov_memory_is_at_most_as_promised():
    problem = "Problem(n=3000, d=800, width=2500, ridge=0.01, step_size=1.0)"
    peak, promised = measured(problem, "method='krylov'")
    assert 0.3 * promised < peak < 1.05 * promised
