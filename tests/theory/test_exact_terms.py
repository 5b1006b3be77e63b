"""Every term of the exact theory is pinned: 3 % on any of them moves a check value."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep.theory import prediction
from featurestep.theory.predict import solve
from featurestep.theory.prediction import Prediction
from tests.theory.perturbed import TERMS
from tests.theory.test_exact_values import VALUES, problem_of

FINITE = [case for case in VALUES if case["problem"]["readout"] != "gaussian"]


def largest_gap() -> float:
    """To the check values of finite laws, in test error."""
    found = solve([problem_of(case) for case in FINITE], method="exact")
    return max(
        abs(o.test_error / case["numbers"]["test_error"] - 1.0)
        if isinstance(o, Prediction)
        else np.inf
        for o, case in zip(found, FINITE, strict=True)
    )


def test_check_values_hold() -> None:
    assert largest_gap() < 2e-6


@pytest.mark.parametrize("term", TERMS)
def test_three_per_cent_on_a_term_are_seen(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    TERMS[term](monkeypatch, 1.03)
    monkeypatch.setattr(prediction, "SELF_CHECK", np.inf)
    monkeypatch.setattr(prediction, "ACCEPTED", np.inf)
    assert largest_gap() > 1e-5
