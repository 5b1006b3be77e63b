"""The same experiment on torch tensors; skipped where torch is not installed."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep.errors import InvalidProblem
from featurestep.functions.activations import function
from featurestep.problem import Problem
from featurestep.simulation import SingularSystem, simulate
from featurestep.simulation.network.result import QUANTITIES

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
        other = simulate(p, seeds=2, n_test=200, device=device, **options)
        for name in QUANTITIES:
            np.testing.assert_allclose(cpu.values[name], other.values[name], rtol=1e-9, atol=1e-13)
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
