"""The bulk seen from above the axis: close to the resolved one, and given where that fails."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from featurestep import NotConverged, Problem, spectrum
from featurestep.theory.spectra.bulk import SMOOTHING

SOLVE = import_module("featurestep.theory.spectra.solve")
PROBLEMS: dict[str, dict[str, Any]] = {
    "one interval": {"n": 800, "d": 400, "width": 500},
    "two intervals": {"n": 5000, "d": 1000, "width": 4100, "activation": "tanh"},
    "an atom": {"n": 400, "d": 300, "width": 900, "readout": "rademacher"},
    "down to 0": {"n": 600, "d": 900, "width": 600},
    "gaussian": {"n": 800, "d": 400, "width": 500, "readout": "gaussian", "step_exponent": 0.42},
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n == "gaussian")) for n in PROBLEMS],
)
def test_a_blurred_bulk_is_the_resolved_one_within_its_blur(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = {"activation": "relu", "centre": True, "readout": "constant", "ridge": 0.1}
    problem = Problem(**{**usual, "step_exponent": 0.3, **PROBLEMS[name]})
    exact = spectrum(problem)
    assert not exact.is_smoothed

    def fail(*_: object) -> None:
        raise NotConverged("a part was lost")

    monkeypatch.setattr(SOLVE, "bulk", fail)
    seen = spectrum(problem)
    assert seen.is_smoothed
    assert seen.spikes == exact.spikes
    assert seen.edge == pytest.approx(exact.edge, rel=1e-9)
    assert seen.mass == pytest.approx(1.0, abs=SOLVE.SMOOTHED_MASS_ERROR)
    top = exact.edge**0.5
    s = np.linspace(0.0, top, 400)
    assert np.abs(seen.cumulative(s**2) - exact.cumulative(s**2)).max() < 0.01
    density = exact.singular_density(s)
    edges = np.sqrt(np.array(exact.edges)).ravel()
    inner = np.abs(s[:, None] - edges).min(axis=1) > 4.0 * SMOOTHING * top
    gap = np.abs(seen.singular_density(s) - density)[inner]
    assert gap.max() < 0.02 * density.max()


def test_where_even_that_fails_the_first_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise NotConverged("a part was lost")

    def fail_too(*_: object) -> None:
        raise NotConverged("nothing was seen")

    monkeypatch.setattr(SOLVE, "bulk", fail)
    monkeypatch.setattr(SOLVE, "smoothed_bulk", fail_too)
    with pytest.raises(NotConverged, match="a part was lost"):
        spectrum(Problem(n=300, d=150, width=200, readout="constant", ridge=0.1, step_size=1.0))
