"""Exact weights where they must become something simpler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurestep import Problem
from featurestep.figures.base import SHIFTED_SINE
from tests.theory.roads import ManySamples, Numbers, exact_numbers, literal, untrained

BASE: dict[str, Any] = {"n": 2000, "d": 1000, "width": 1500, "ridge": 0.05, "noise_std": 0.2}
ROOT = 1500**0.5  # √N
CASES: dict[str, dict[str, Any]] = {
    "relu": {"activation": "relu", "target": "H1 + H2/sqrt(2)", "readout": "constant"},
    "sine": {"activation": SHIFTED_SINE, "target": "H0/2 + H1", "readout": "rademacher"},
    "cubic": {
        "activation": "H1 + H2/2 + H3/6",
        "target": "H0/4 + H1 + H2/2 + H3/6",
        "readout": "rademacher",
    },
    "three values": {
        "activation": "gelu",
        "target": "softplus",
        "readout": ((-1.5, 0.2), (0.0, 0.35), (1.1055415967851332, 0.45)),
    },
}


def problem(case: str, size: float = 1.0, **changes: Any) -> Problem:
    """A step of `size` √N."""
    return Problem(**{**BASE, **CASES[case], "step_size": size * ROOT, **changes})


def gap(found: Numbers, expected: Numbers) -> np.ndarray:
    return np.array(found) / np.array(expected) - 1.0


@pytest.mark.parametrize("case", CASES)
def test_many_samples_in_the_step(case: str) -> None:
    """Without the terms of order 1/d, n_step/d → ∞ gives (33), with a gap linear in d/n_step."""
    expected = ManySamples(problem(case)).numbers()
    first, second, third = (
        gap(exact_numbers(problem(case, n_step=1000 * ratio), finite=False), expected)
        for ratio in (10**3, 10**5, 10**7)
    )
    assert np.abs(first).max() < 0.02
    assert second == pytest.approx(first / 100, rel=0.02)
    assert third == pytest.approx(second / 100, rel=0.001)
    assert np.abs(third).max() < 2e-6
    assert np.abs((100 * third - second) / 99).max() < 1e-9  # without the linear term


@pytest.mark.parametrize("case", CASES)
def test_small_steps(case: str) -> None:
    """η ≪ √N: section 3. What is left is of order η/√N, or its square where signs cancel."""
    gaps = []
    for size in (1e-2, 1e-3, 1e-4):
        p = problem(case, size)
        gaps.append(np.abs(gap(exact_numbers(p, finite=False), literal(p).numbers())).max())
    order = 2 if CASES[case]["readout"] == "rademacher" else 1
    assert gaps[0] < 2e-3
    assert gaps[1] < gaps[0] * 0.11**order
    assert gaps[2] == pytest.approx(gaps[1] * 0.1**order, rel=0.02)


@settings(max_examples=30)
@given(
    phi=st.floats(0.05, 20.0),
    psi=st.floats(0.05, 20.0),
    ridge=st.floats(1e-5, 10.0),
    noise=st.floats(0.0, 1.0),
    activation=st.sampled_from(["tanh", "relu", "gelu", "sin", "H1 + H2", "abs", "identity"]),
    target=st.sampled_from(["tanh", "H1 + 0.5*H2", "relu", "H3 + H1"]),
)
def test_no_step(
    phi: float, psi: float, ridge: float, noise: float, activation: str, target: str
) -> None:
    p = Problem.from_ratios(
        phi=phi,
        psi=psi,
        n=1000,
        ridge=ridge,
        noise_std=noise,
        activation=activation,
        target=target,
        step_size=0.0,
        centre=True,
    )
    assert np.abs(gap(exact_numbers(p, finite=False), untrained(p))).max() < 1e-8
