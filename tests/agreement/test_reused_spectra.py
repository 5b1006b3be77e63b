"""Spectra of training features on rows of the step: theory against recorded networks."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from featurestep import Spectrum, spectrum
from featurestep.theory.exact.fixed_point import State
from featurestep.theory.reuse import features
from featurestep.theory.spectra.equations import FULL
from featurestep.theory.spectra.rows_model import build_rows_model
from tests.agreement.reused_rows import problem_of
from tests.agreement.reused_spectra import PLACES, RECORD, drawn_problems

RECORDED = json.loads(RECORD.read_text())
FEW = (0, 4, 5)  # a second each: small steps of finite laws, with two spikes in one of them
FINITE = [i for i in range(len(RECORDED)) if i % 4 < 2]


@cache
def _predicted(i: int) -> Spectrum:
    found: Spectrum = spectrum(problem_of(RECORDED[i]["problem"]))
    return found


def _seen(i: int, name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Means and standard deviations over the networks."""
    each = RECORDED[i][name]
    return np.array(each["mean"]), np.array(each["sd"])


def _trace_gaps(i: int) -> np.ndarray[Any, Any]:
    """m(−λ) of networks over that of the bulk, with the spikes' few eigenvalues, minus 1."""
    model = build_rows_model(problem_of(RECORDED[i]["problem"]), FULL)
    equations = model.equations(FULL)
    z = -np.array(PLACES) + 0j
    branch = equations.at(z, equations.far(z)).require_converged("no solution")
    return np.asarray(_seen(i, "trace")[0][0] / equations.trace(branch).real - 1.0)


def _check_spikes(i: int) -> None:
    """As many resolved spikes as networks have, where they have them, with their overlaps."""
    found, problem = _predicted(i), problem_of(RECORDED[i]["problem"])
    places, spread = (values[0] for values in _seen(i, "singular_value"))
    overlaps = _seen(i, "overlap")[0]
    spikes = [spike for spike in found.spikes if spike.resolved]
    assert len(spikes) == np.count_nonzero(places**2 > found.border.place)
    for rank, spike in enumerate(spikes):
        error = spread[rank] / RECORDED[i]["networks"] ** 0.5
        assert abs(spike.singular_value - places[rank]) < 3.5 * error + 0.01 * places[rank]
        own = np.array([spike.constant_overlap, *spike.overlaps[:3]])
        np.testing.assert_allclose(own, overlaps[rank], atol=0.05)
    largest = places[len(spikes)]
    assert largest**2 < found.border.place
    if (
        not found.is_smoothed and found.entry_reach < 1.01 * found.edge
    ):  # it lies below the edge by about N^(−2/3)
        assert 0.0 < 1.0 - largest / found.edge**0.5 < 2.0 * problem.width ** (-2.0 / 3.0)


def test_the_record_has_the_drawn_problems() -> None:
    assert [each["problem"] for each in RECORDED] == drawn_problems()


@pytest.mark.parametrize("i", FEW)
def test_spikes_agree(i: int) -> None:
    _check_spikes(i)


@pytest.mark.slow
@pytest.mark.parametrize("i", FINITE)
def test_spikes_of_finite_laws_agree(i: int) -> None:
    _check_spikes(i)


@pytest.mark.parametrize("i", FEW)
def test_traces_agree(i: int) -> None:
    assert np.abs(_trace_gaps(i)).max() < 0.005


def test_traces_show_what_rows_of_the_step_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a1 and o in ℓ of (57) the spectrum is another one."""
    build = features.step_features

    def changed(*args: Any) -> features.RowFeatures:
        found = build(*args)
        slopes = found.slopes.copy()
        size = slopes.shape[-1] // 3
        slopes[..., :size] = slopes[..., 2 * size :] = 0.0
        return replace(found, slopes=slopes)

    monkeypatch.setattr("featurestep.theory.reuse.solve.step_features", changed)
    assert np.abs(_trace_gaps(20)).max() > 0.01


@pytest.mark.parametrize("rows", ["same", "half"])
def test_newtons_derivative_is_that_of_the_solution(rows: str) -> None:
    problem = problem_of({**RECORDED[1]["problem"], "rows": rows})
    equations = build_rows_model(problem, FULL).equations(FULL)
    z, h = np.array([-1.0 + 0.3j, -0.2 + 0.1j]), 1e-5
    at = equations.at(z, equations.far(z))
    low, high = (equations.evaluated(equations.at(z + sign * h, at)).state for sign in (-1, 1))
    slope: State = equations.ridge_response(equations.evaluated(at))
    pairs = (
        (np.log(high.v2 / low.v2), slope.v2),
        (high.chi - low.chi, slope.chi),
        (high.xi - low.xi, slope.xi),
    )
    for change, derivative in pairs:
        np.testing.assert_allclose(
            change / (2.0 * h), derivative, atol=1e-7 * abs(derivative).max()
        )
