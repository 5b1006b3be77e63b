"""The same experiment on torch tensors; skipped where torch is not installed."""

from __future__ import annotations

import re

import numpy as np
import pytest

from featurestep import (
    InvalidProblem,
    Problem,
    SingularSystem,
    function,
    simulate,
    simulated_spectrum,
)
from featurestep.core.results import QUANTITIES

torch = pytest.importorskip("torch")
VARIANTS = ("trained", "initial", "spiked:2", "gaussian", "gaussian+spiked:1", "srf")
ACTIVATIONS = ["tanh", "erf", "relu", "leaky_relu", "softplus", "gelu", "silu", "sigmoid", "sin"]
ACTIVATIONS += ["hard_tanh", "identity", "H1 + 0.3*H2 - 0.1*H3"]


def problem(**changes):
    base = {"n": 150, "d": 30, "width": 45, "ridge": 0.02, "noise_std": 0.3, "step_size": 2.5}
    return Problem(**{**base, **changes})


DEVICES = ["torch", "cuda"] if torch.cuda.is_available() else ["torch"]


def same(p, **options):
    cpu = simulate(p, seeds=2, n_test=200, **options)
    for device in DEVICES:
        other = simulate(p, seeds=2, n_test=200, device=device, drawn="host", **options)
        for name in QUANTITIES:
            np.testing.assert_allclose(cpu.values[name], other.values[name], rtol=1e-10, atol=1e-13)
        assert other.record["device"].startswith(device)


@pytest.mark.parametrize("residual", ["labels", "full"])
@pytest.mark.parametrize("n", [150, 40])
def test_torch_gives_the_same_numbers(residual, n):
    p = problem(residual=residual, n=n)
    same(p.vary(step_size=[0.0, 1.0, 2.0], ridge=[0.01, 0.1]), variants=VARIANTS)


@pytest.mark.parametrize("activation", [*ACTIVATIONS, function(np.arctan)], ids=str)
@pytest.mark.parametrize("centre", [False, True])
def test_activations(activation, centre):
    same(problem(activation=activation, centre=centre))


def test_gaussian_first_layer():
    same(problem(initial="gaussian"), variants=VARIANTS)


def test_many_ridges():
    same(problem().vary(ridge=list(np.geomspace(1e-3, 1, 30))))


def test_singular():
    with pytest.raises(SingularSystem):
        simulate(problem(activation="identity", ridge=1e-15), seeds=1, n_test=9, device="torch")


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_no_gpu_is_refused():
    with pytest.raises(InvalidProblem, match="CUDA"):
        simulate(problem(), device="cuda")


def test_several_steps_and_levels_of_noise():
    same(problem(steps=2).vary(noise_std=[0.1, 0.3], ridge=[0.01, 0.1]))


def seen_types(p):
    """The types that a user's activation is called with on torch, beside NumPy's."""
    kinds = set()

    def arctan(z):
        kinds.add(type(z))
        return torch.arctan(z) if isinstance(z, torch.Tensor) else np.arctan(z)

    def slope(z):
        return 1.0 / (1.0 + z * z)

    same(p.replace(activation=function(arctan, derivative=slope)))
    return kinds


def test_a_function_that_takes_tensors_gets_them():
    assert torch.Tensor in seen_types(problem())


@pytest.mark.parametrize(
    "wrong", [lambda z: torch.tanh(z), lambda z: torch.arctan(z)[:5]], ids=["other", "short"]
)
def test_a_function_that_means_something_else_on_tensors_stays_on_the_host(wrong):
    def arctan(z):
        return wrong(z) if isinstance(z, torch.Tensor) else np.arctan(z)

    same(problem(activation=function(arctan)))


@pytest.mark.parametrize("device", ["cpu", *DEVICES])
@pytest.mark.parametrize("n", [150, 40])
@pytest.mark.parametrize(("dtype", "bound"), [("float32", 2e-4), ("mixed", 2e-5)])
def test_reduced_precision_states_a_gap_that_holds(device, n, dtype, bound):
    """The gap it states on its first draw is that to float64, and small."""
    grid = problem(n=n).vary(step_size=[0.0, 2.0], ridge=[0.01, 0.1])
    drawn = {"seeds": 2, "n_test": 200, "variants": VARIANTS, "drawn": "host"}
    single = simulate(grid, dtype=dtype, device=device, **drawn)
    double = simulate(grid, device=device, **drawn)
    stated = dict(re.findall(r"(\w+) (\d\.\de[-+]\d+)", single.record["precision"]))
    for name in QUANTITIES:
        gaps = np.abs(single.values[name] / double.values[name] - 1.0)
        assert gaps.max() < bound
        here = gaps[:, 1, 0, 0].max()  # largest step, least ridge, first seed
        assert float(stated[name]) == pytest.approx(here, rel=0.06)
    assert single.record["dtype"] == dtype
    assert "precision" not in double.record


@pytest.mark.parametrize("method", ["dense", "krylov"])
@pytest.mark.parametrize("dtype", ["float64", "mixed"])
def test_spectra(method, dtype):
    options = {"seeds": 1, "variants": ("trained", "weights"), "top": 4, "method": method}
    cpu = simulated_spectrum(problem(), **options)
    other = simulated_spectrum(problem(), **options, device="torch", dtype=dtype)
    for name in cpu.found:
        left, right = cpu.found[name][0], other.found[name][0]
        np.testing.assert_allclose(right.top, left.top, rtol=1e-10 if dtype == "float64" else 1e-5)


def test_spectra_of_a_network_drawn_on_the_device():
    options = {"seeds": 1, "top": 4, "device": "torch", "drawn": "device"}
    dense, krylov = (
        simulated_spectrum(problem(), **options, method=method, block_rows=rows).found["trained"][0]
        for method, rows in (("dense", 64), ("krylov", None))
    )
    np.testing.assert_allclose(dense.top, krylov.top, rtol=1e-9)
