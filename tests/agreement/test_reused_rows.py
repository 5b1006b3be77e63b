"""Readouts on rows of the step: theory against the recorded networks of `reused_rows`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from featurestep import Problem, predict, simulate
from featurestep.functions.nonlinearity import coefficients
from tests.agreement.reused_rows import COLUMNS, RECORD, SETS, problem_of
from tests.theory.test_reuse import REMOVED, unchecked

RECORDED = json.loads(RECORD.read_text())
SAME = RECORDED["same rows"]
LARGE = [i for i in range(len(SAME)) if i % 4 < 2 and i // 4 % 4 > 0]  # finite, √N/2 at least
FEW = LARGE[:12]
NAMES = ("test_error", "train_loss")
LARGEST_RMS_Z = 1.4
LARGEST_GAP = 0.02
Gap = tuple[float, float]  # relative, and its standard error
Predict = Callable[[Problem], Any]


@cache
def _untrained(problem: Problem) -> tuple[float, float]:
    """Test error and training loss of the same network before its step."""
    found = predict(problem.replace(step_size=0.0, residual="labels"))
    if problem.intercept:
        return found.test_error, 2.0 * found.train_objective
    return found.test_error, found.train_loss


def _gap(each: dict[str, Any], name: str, predicted: float) -> Gap:
    """Mean of simulated/predicted − 1 with its standard error.

    Controls are the same network before its step, on the same rows, whose theory is known, and two
    averages over the labels: what they miss by chance is subtracted, by linear regression.
    """
    problem, networks = problem_of(each["problem"]), each["networks"]
    square = problem.star.second_moment + problem.noise_std**2
    test, train = _untrained(problem)
    known = {"initial test_error": test, "initial train_loss": train, "square": square}
    known["product"] = coefficients(problem.sigma_star, 1)[1]
    own = COLUMNS.index(f"trained {name}")
    controls = [
        COLUMNS.index("initial test_error" if name == "test_error" else "initial train_loss"),
        COLUMNS.index("square"),
        COLUMNS.index("product"),
    ]
    C = np.zeros((len(COLUMNS), len(COLUMNS)))
    C[np.triu_indices(len(COLUMNS))] = each["covariances"]
    C = np.triu(C) + np.triu(C, 1).T
    missed = np.array([each["means"][i] - known[COLUMNS[i]] for i in controls])
    inverse = np.linalg.inv(C[np.ix_(controls, controls)])
    slopes = inverse @ C[controls, own]
    left = (C[own, own] - slopes @ C[controls, own]) * (networks - 1) / (networks - 4)
    variance = left * (1.0 / networks + missed @ inverse @ missed / (networks - 1))
    mean = each["means"][own] - slopes @ missed
    return float(mean / predicted - 1.0), float(np.sqrt(variance) / predicted)


def _errors(found: Any) -> dict[str, float]:
    """By the names of the square loss without intercept."""
    if found.problem.intercept:
        return {"test_error": found.test_error, "train_loss": 2.0 * found.train_objective}
    return {"test_error": found.test_error, "train_loss": found.train_loss}


def _gaps(record: Sequence[dict[str, Any]], name: str, by: Predict = predict) -> list[Gap]:
    predicted = [_errors(by(problem_of(each["problem"])))[name] for each in record]
    return [_gap(each, name, value) for each, value in zip(record, predicted, strict=True)]


def _rms_z(gaps: Sequence[Gap]) -> float:
    return float(np.sqrt(np.mean([(gap / error) ** 2 for gap, error in gaps])))


def _check_gaps(record: Sequence[dict[str, Any]], name: str) -> None:
    """rms z, and no gap above 2 %."""
    gaps = _gaps(record, name)
    assert _rms_z(gaps) < LARGEST_RMS_Z
    assert all(abs(gap) < LARGEST_GAP for gap, _ in gaps)


def test_the_record_has_the_drawn_problems() -> None:
    for name, each in SETS.items():
        assert [known["problem"] for known in RECORDED[name]] == each.problems()


@pytest.mark.parametrize("name", NAMES)
def test_a_dozen_networks_agree(name: str) -> None:
    _check_gaps([SAME[i] for i in FEW], name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["same rows", "varied"])
@pytest.mark.parametrize("name", NAMES)
def test_networks_agree(name: str, kind: str) -> None:
    _check_gaps(RECORDED[kind], name)


@pytest.mark.parametrize("name", NAMES)
def test_networks_agree_where_pairs_matter(name: str) -> None:
    """A bound of 2 %, or the size of a note, which the largest step has: there 2.2 % were seen."""
    record = RECORDED["pairs"]
    noted = [_noted(problem_of(each["problem"])) for each in record]
    assert [size > 0.0 for size in noted] == [True, True, False, False]
    for (gap, _), size in zip(_gaps(record, name), noted, strict=True):
        assert abs(gap) < max(LARGEST_GAP, size)


def _noted(problem: Problem) -> float:
    """The size of the note on functions of degree 2 and 3, 0 without one."""
    kind = "quadratic functions that are left out"
    return sum(note.size for note in predict(problem).notes if note.kind == kind)


def test_no_drawn_problem_has_the_note_on_quadratic_functions() -> None:
    assert not any(_noted(problem_of(SAME[i]["problem"])) for i in FEW)


@pytest.mark.parametrize("term", REMOVED)
def test_networks_show_every_term(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Υ changes at most 0.4 % in the drawn problems, and up to 11 % in those made to show it."""
    REMOVED[term](monkeypatch)
    record = RECORDED["pairs"] if term == "pairs Υ" else [SAME[i] for i in FEW]
    assert _rms_z(_gaps(record, "train_loss", unchecked)) > LARGEST_RMS_Z


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
