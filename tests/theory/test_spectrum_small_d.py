"""Blocks of degree 2 and 3 in spectra, n and N of the order of d² (sections 50, 53)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from featurestep import Problem, spectrum
from featurestep.core.spiked import spiked_weights
from featurestep.theory.exact.fixed_point import solve
from featurestep.theory.spectra import model as model_module
from featurestep.theory.spectra.edges import right_edge
from featurestep.theory.spectra.equations import Equations
from featurestep.theory.spectra.model import build_model, visible_degrees
from featurestep.theory.spectra.spike_system import SpikeGroups
from featurestep.theory.spectra.spikes import strengths_at
from featurestep.theory.validity import spectrum_notes


def problem(**changes: Any) -> Problem:
    usual = {
        "activation": "relu", "centre": True, "target": "H1 + H2/sqrt(2)", "n": 1200, "d": 40,
        "width": 800, "n_step": 160, "ridge": 0.1, "noise_std": 0.2, "readout": "constant",
        "initial": "sphere", "step_size": 0.0,
    }  # fmt: skip
    return Problem(**{**usual, **changes})


@pytest.mark.parametrize(("width", "initial"), [(2000, "sphere"), (2400, "gaussian")])
def test_every_degree_has_a_part_of_the_bulk_with_its_eigenvalues(width: int, initial: str) -> None:
    """d of degree 1, d(d + 1)/2 − 1 of degree 2, and the rest of the features."""
    d = 30
    found = spectrum(problem(n=3000, d=d, width=width, initial=initial))
    counts = np.array([part.mass for part in found.intervals]) * width
    square = d * (d + 1) // 2 - 1
    assert counts == pytest.approx([width - d - square, square, d], abs=1e-3)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"width": 1200}, marks=pytest.mark.slow),
        {"n": 3000, "d": 25, "activation": "tanh"},  # degree 3
        {"step_size": 10.0, "readout": "rademacher"},
        {"step_size": 10.0, "initial": "gaussian", "centre": False},
        {"step_size": 10.0, "residual": "full", "activation": "gelu", "readout": "rademacher"},
        {"step_size": 10.0, "target": "z1 + z1*z2"},
        pytest.param({"step_size": 14.0, "readout": "gaussian"}, marks=pytest.mark.slow),
    ],
)
def test_mass_and_moments_are_exact(changes: dict[str, Any]) -> None:
    p = problem(**changes)
    assert visible_degrees(p)
    found = spectrum(p)
    assert not found.is_smoothed
    assert found.mass == pytest.approx(1.0, abs=1e-6)
    assert found.moment(1) == pytest.approx(found.mean, rel=1e-5)
    assert found.moment(2) == pytest.approx(found.mean_square, rel=1e-5)


LAW = ((-(1.5**0.5), 0.4), (0.0, 0.2), (1.0, 0.4))
STEPPED = {"step_size": 14.0, "readout": LAW, "n_step": 80}


def test_derivatives_are_those_of_the_solution() -> None:
    equations = Equations(build_model(problem(**STEPPED)).samples)
    assert len(equations.samples.columns.sectors) == 2
    known = equations.at(np.array([20.0 + 10.0j]), equations.far(np.array([20.0 + 10.0j])))
    for place in (6.0 + 3.0j, 2.0 + 1.0j):
        known = equations.at(np.array([place]), known)
    h, slope = 1e-5, equations.slope(known)
    up, down = (equations.at(known.z + sign * h, known) for sign in (1.0, -1.0))
    assert np.log(up.v2 / down.v2) / (2 * h) == pytest.approx(slope.v2, rel=1e-6)
    assert (up.chi - down.chi) / (2 * h) == pytest.approx(slope.chi, rel=1e-6, abs=1e-9)
    assert (up.state.xi - down.state.xi) / (2 * h) == pytest.approx(slope.xi, rel=1e-6, abs=1e-9)


def test_solutions_at_negative_z_are_those_of_predictions() -> None:
    """Two ways to solve (131)–(133) and (22), Newton's method and Anderson's acceleration."""
    samples = build_model(problem(**STEPPED, initial="gaussian")).samples
    equations = Equations(samples)
    found = equations.far(np.array([-4.0 + 0j]))
    for z in (-4.0, -1.0, -0.1):
        found = equations.at(np.array([z + 0j]), found)
    expected = solve(replace(samples, step=replace(samples.step, ridge=np.array([0.1]))))
    assert expected.residual[0] < 1e-11
    assert found.v2[0] == pytest.approx(expected.at.state.v2[0], rel=1e-8)
    assert found.chi[0] == pytest.approx(expected.at.state.chi[0], rel=1e-8)


def test_groups_without_weight_see_the_blocks_as_others_do() -> None:
    model = build_model(problem(**STEPPED))
    same = replace(model, spike_groups=SpikeGroups(model.samples))
    equations = Equations(model.samples)
    edge = right_edge(equations)
    for place in (edge.at, edge.path[-3]):
        expected = strengths_at(model, equations, place)[:4]
        assert strengths_at(same, equations, place)[:4] == pytest.approx(expected, rel=1e-5)


def test_blocks_begin_where_they_are_hardly_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    p = problem(n=1500, d=315, width=1000)
    monkeypatch.setattr(model_module, "_VISIBLE", 0.019)
    found = spectrum(p)
    monkeypatch.setattr(model_module, "_VISIBLE", 0.021)
    without = spectrum(p)
    assert not visible_degrees(p)
    ends, others = (np.sqrt([each.edges[0][0], each.edge]) for each in (found, without))
    assert ends == pytest.approx(others, rel=0.015)
    assert np.abs(ends / others - 1.0).max() > 1e-3
    assert not visible_degrees(problem(n=2000, d=1000, width=1500))


def test_spectra_with_blocks_need_no_note() -> None:
    def quadratic(p: Problem) -> list[str]:
        kinds = [getattr(note, "kind", "") for note in spectrum_notes(p, spiked_weights(p))]
        return [kind for kind in kinds if "d²" in kind]

    assert not quadratic(problem())
    assert quadratic(problem(step_size=5.0).replace(steps=2))
