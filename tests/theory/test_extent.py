"""Rough extents of a spectrum, against the spectrum itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featurestep import Problem, spectrum
from featurestep.theory.limits import largest_mean, untrained_edge

SIZES = {"n": 2000, "ridge": 0.1, "readout": "constant", "target": "H1 + H2/sqrt(2)"}
CASES: dict[str, dict[str, Any]] = {
    "relu": {"d": 600, "width": 1000, "activation": "relu"},
    "wide": {"d": 200, "width": 4000, "activation": "relu"},
    "narrow": {"d": 4000, "width": 660, "activation": "relu"},
    "tanh": {"d": 1000, "width": 1000, "activation": "tanh", "centre": False},
    "uncentred": {"d": 600, "width": 1000, "activation": "softplus", "centre": False},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_untrained_edge_is_that_of_the_spectrum_at_step_0(case: dict[str, Any]) -> None:
    problem = Problem(**SIZES, **case, step_size=0.0)
    assert untrained_edge(problem) ** 2 == pytest.approx(spectrum(problem).edge, rel=2e-3)


@pytest.mark.parametrize("exponent", [0.4, 0.5])
def test_the_largest_mean_is_about_the_first_spike(exponent: float) -> None:
    sizes = {**SIZES, "readout": "rademacher"}
    problem = Problem(**sizes, **CASES["relu"], step_exponent=exponent)
    first = spectrum(problem).spikes[0].singular_value
    assert first == pytest.approx(np.hypot(largest_mean(problem), 0.5), rel=0.05)
