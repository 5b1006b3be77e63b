"""Readouts on rows of the step: theory against the recorded networks of `reused_rows`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from featurestep import predict, simulate
from featurestep.functions.nonlinearity import coefficients
from tests.agreement.reused_rows import COUNT, RECORD, drawn_problems, problem_of
from tests.theory.test_reuse import REMOVED, unchecked

RECORDED = json.loads(RECORD.read_text())
FINITE = [i for i in range(COUNT) if i % 4 < 2]  # constant and Rademacher laws
LARGE = [i for i in FINITE if i // 4 % 4 > 0]  # steps of √N/2 at least
# A dozen for the fast tests, all of finite laws and of steps of √N/2 at least.
FEW = [i for i in range(COUNT) if i % 4 < 2 and i // 4 % 4 > 0][:12]
LARGEST_RMS_Z = 1.4
LARGEST_GAP = 0.02  # beyond which one standard error is allowed
Gap = tuple[float, float]  # relative, and its standard error


@cache
def _untrained(i: int) -> dict[str, float]:
    found = predict(problem_of(RECORDED[i]["problem"]).replace(step_size=0.0))
    return {name: getattr(found, name) for name in ("test_error", "train_loss")}


def _gap(i: int, predicted: Any, name: str) -> Gap:
    """Mean of simulated/predicted − 1 with its standard error.

    Controls are the same network before its step, on the same rows, whose theory is known, and two
    averages over the labels: what they miss by chance is subtracted, by linear regression.
    """
    each, problem = RECORDED[i], problem_of(RECORDED[i]["problem"])
    gap = np.array(each["trained"][name]) / getattr(predicted, name) - 1.0
    square = problem.star.second_moment + problem.noise_std**2
    controls = [
        np.ones_like(gap),
        np.array(each["initial"][name]) / _untrained(i)[name] - 1.0,
        np.array(each["labels"]["squares"]) / square - 1.0,
        np.array(each["labels"]["products"]) - coefficients(problem.sigma_star, 1)[1],
    ]
    C = np.stack(controls, axis=1)
    slopes = np.linalg.solve(C.T @ C, C.T @ gap)
    variance = ((gap - C @ slopes) ** 2).sum() / (len(gap) - len(controls))
    return float(slopes[0]), float(np.sqrt(variance * np.linalg.inv(C.T @ C)[0, 0]))


def _gaps(which: Sequence[int], name: str) -> list[Gap]:
    predicted = (predict(problem_of(RECORDED[i]["problem"])) for i in which)
    return [_gap(i, found, name) for i, found in zip(which, predicted, strict=True)]


def _rms_z(gaps: Sequence[Gap]) -> float:
    return float(np.sqrt(np.mean([(gap / error) ** 2 for gap, error in gaps])))


def test_the_record_has_the_drawn_problems() -> None:
    assert [each["problem"] for each in RECORDED] == drawn_problems()


@pytest.mark.parametrize("name", ["test_error", "train_loss"])
def test_a_dozen_networks_agree(name: str) -> None:
    gaps = _gaps(FEW, name)
    assert _rms_z(gaps) < LARGEST_RMS_Z
    assert all(abs(gap) < LARGEST_GAP + error for gap, error in gaps)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["test_error", "train_loss"])
def test_networks_agree(name: str) -> None:
    gaps = _gaps(range(COUNT), name)
    assert _rms_z(gaps) < LARGEST_RMS_Z
    assert all(abs(gap) < LARGEST_GAP + error for gap, error in gaps)


@pytest.mark.slow
@pytest.mark.parametrize("term", [term for term in REMOVED if term != "pairs Υ"])
def test_networks_show_the_largest_terms(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Υ changes at most 0.4 %, which these networks do not show: the values of `test_reuse` do."""
    REMOVED[term](monkeypatch)
    found = ((i, unchecked(problem_of(RECORDED[i]["problem"]))) for i in LARGE)
    assert _rms_z([_gap(i, each, "train_loss") for i, each in found]) > LARGEST_RMS_Z


RATIOS = {  # of what is compared: the changes that make the other problem of a pair
    "half of the rows": (
        {"rows": "half", "activation": "tanh", "target": "tanh", "step_size": 500**0.5},
        {"rows": "same", "activation": "tanh", "target": "tanh", "step_size": 500**0.5},
    ),
    "Gaussian rows": ({"initial": "gaussian"}, {"initial": "sphere"}),
    "Gaussian rows, half": (
        {"initial": "gaussian", "rows": "half"},
        {"initial": "sphere", "rows": "half"},
    ),
}


@pytest.mark.parametrize("pair", RATIOS)
def test_pairs_of_networks_agree(pair: str) -> None:
    """Ratios of errors of networks that share their draws, so that errors of the theory cancel."""
    fields = {
        **{"activation": "sin(z+0.6)", "target": "0.5*H0 + H1", "readout": "rademacher"},
        **{"n": 800, "d": 240, "width": 500, "step_size": 2.0 * 500**0.5, "ridge": 0.03},
        **{"noise_std": 0.3},
    }
    problems = [problem_of(fields).replace(**changes) for changes in RATIOS[pair]]
    predicted = [predict(problem) for problem in problems]
    draws = [simulate(problem, seeds=12, n_test=2000).dataset for problem in problems]
    for name in ("test_error", "train_loss"):
        left, right = (found[name].values.ravel() for found in draws)
        ratios = left / right
        error = ratios.std(ddof=1) / len(ratios) ** 0.5
        expected = getattr(predicted[0], name) / getattr(predicted[1], name)
        assert ratios.mean() == pytest.approx(expected, abs=2.5 * error)
        assert error < 0.02
    assert abs(expected - 1.0) > 4.0 * error  # or the pair would show nothing
