"""Readouts on rows of the step: theory against the recorded networks of `reused_rows`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from featurestep import Problem, predict
from tests.agreement.reused_rows import COUNT, RECORD, drawn_problems
from tests.theory.test_reuse import REMOVED, unchecked

RECORDED = json.loads(RECORD.read_text())
FINITE = [i for i in range(COUNT) if i % 4 < 2]  # constant and Rademacher laws
# A dozen for the fast tests, all of finite laws and of steps of √N/2 at least.
FEW = [i for i in range(COUNT) if i % 4 < 2 and i // 4 % 4 > 0][:12]
LARGEST_RMS_Z = 1.4
LARGEST_GAP = 0.02  # beyond which three standard errors are needed
Gap = tuple[float, float]  # relative, and its standard error


@cache
def _untrained(i: int) -> dict[str, float]:
    found = predict(Problem(**RECORDED[i]["problem"]).replace(step_size=0.0))
    return {name: getattr(found, name) for name in ("test_error", "train_loss")}


def _gap(i: int, predicted: Any, name: str) -> Gap:
    """Mean of simulated/predicted − 1 with its standard error.

    The same network before its step, on the same rows, is the control: what its theory misses by
    chance is subtracted, in the proportion that the draws show.
    """
    each = RECORDED[i]
    gap = np.array(each["trained"][name]) / getattr(predicted, name) - 1.0
    control = np.array(each["initial"][name]) / _untrained(i)[name] - 1.0
    slope = np.cov(gap, control)[0, 1] / np.var(control, ddof=1)
    left = gap - slope * control
    return float(left.mean()), float(np.sqrt(np.var(left, ddof=2) / left.size))


def _gaps(which: Sequence[int], name: str) -> list[Gap]:
    predicted = (predict(Problem(**RECORDED[i]["problem"], rows="same")) for i in which)
    return [_gap(i, found, name) for i, found in zip(which, predicted, strict=True)]


def _rms_z(gaps: Sequence[Gap]) -> float:
    return float(np.sqrt(np.mean([(gap / error) ** 2 for gap, error in gaps])))


def test_the_record_has_the_drawn_problems() -> None:
    assert [each["problem"] for each in RECORDED] == drawn_problems()


@pytest.mark.parametrize("name", ["test_error", "train_loss"])
def test_a_dozen_networks_agree(name: str) -> None:
    gaps = _gaps(FEW, name)
    assert _rms_z(gaps) < LARGEST_RMS_Z
    assert all(abs(gap) < LARGEST_GAP + 3.0 * error for gap, error in gaps)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["test_error", "train_loss"])
def test_networks_agree(name: str) -> None:
    gaps = _gaps(range(COUNT), name)
    assert _rms_z(gaps) < LARGEST_RMS_Z
    assert all(abs(gap) < LARGEST_GAP + 3.0 * error for gap, error in gaps)


@pytest.mark.slow
@pytest.mark.parametrize("term", ["correlation o", "correlation a1", "constraint ϑ"])
def test_networks_show_the_largest_terms(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smaller ones (Υ, Δ) change a few tenths of a percent: these networks do not show it."""
    REMOVED[term](monkeypatch)
    found = ((i, unchecked(Problem(**RECORDED[i]["problem"], rows="same"))) for i in FINITE)
    assert _rms_z([_gap(i, each, "train_loss") for i, each in found]) > LARGEST_RMS_Z
