"""Exact weights against check values from an independent program.

`exact_values.json` has sixteen problems, and for those without random offset and with a finite law
what their solutions are made of. They are of the theory for d → ∞ with the terms (37) and
(39)–(40b): blocks and fields of degree 2 and 3 are left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from featurestep import Problem
from tests.theory.roads import exact_answer, without_higher_degrees

VALUES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("exact_values.json").read_text(encoding="utf-8")
)
INSIDE = [case for case in VALUES if "inside" in case]


def problem_of(case: dict[str, Any]) -> Problem:
    fields = dict(case["problem"])
    if not isinstance(fields["readout"], str):
        fields["readout"] = tuple(map(tuple, fields["readout"]))
    return Problem(**fields)


def precision(problem: Problem) -> float:
    """What the references allow.

    Gaussian law: theirs has 27 equispaced groups. Cubic target: theirs has few nodes for the
    heavy tails of the residual.
    """
    if not problem.law.is_finite:
        return 1e-4
    return 2e-6 if problem.target == "H0/4 + H1 + H2/2 + H3/6" else 1e-6


def label(case: dict[str, Any]) -> str:
    p = case["problem"]
    return f"{p['activation']}, {p['readout']}, {p['residual']}, {p['initial']}"


@pytest.mark.parametrize("case", VALUES, ids=label)
def test_errors(case: dict[str, Any]) -> None:
    problem, numbers = problem_of(case), case["numbers"]
    found = without_higher_degrees(problem)
    close = {"rel": precision(problem)}
    assert found.test_error == pytest.approx(numbers["test_error"], **close)
    assert found.train_loss == pytest.approx(numbers["train_loss"], **close)
    assert found.train_mse == pytest.approx(numbers["train_mse"], **close)
    assert found.readout_norm**2 == pytest.approx(numbers["readout_norm_squared"], **close)
    assert found.test_error_sd == pytest.approx(numbers.get("test_error_sd", 0.0), **close)


@pytest.mark.parametrize("case", INSIDE, ids=label)
def test_what_they_are_made_of(case: dict[str, Any]) -> None:
    """Fields feel the number of nodes for r to first order, errors to second: more of them here."""
    problem, inside = problem_of(case), case["inside"]
    found = exact_answer(problem, count=40)
    step, size = found.step, found.step.k.shape[1]
    close = {"rel": precision(problem)}
    assert step.beta[0] == pytest.approx(inside["beta_norm"], **close)
    assert step.alignment[0] == pytest.approx(inside["alignment"], **close)
    assert step.norm[0] ** 2 == pytest.approx(inside["rho_squared"], **close)
    own = step.a[0] * step.output_slope[0] / step.beta[0]  # a f_1 (43)
    assert step.shift[0] + own == pytest.approx(inside["u"], **close)
    variance = step.norm_variance[0] / problem.d
    assert variance == pytest.approx(inside["norm_variance_27"], **close)
    assert step.sample_norm[0] == pytest.approx(np.array(inside["sample_norm_s"]), **close)
    assert found.solution.at.state.v2[0] == pytest.approx(inside["V2"], **close)
    fields = found.fitted.coefficients[0].reshape(-1, size)
    assert len(fields) == len(inside["solution"])
    for name, field in zip(("A", "tau", "psi", "Delta", "Omega"), fields, strict=False):
        expected = np.array(inside["solution"][name])
        largest = np.abs(expected).max()
        assert field == pytest.approx(expected, abs=precision(problem) * largest), name
