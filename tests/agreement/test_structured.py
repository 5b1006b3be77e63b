"""Inputs with a covariance: the theory against recorded networks (`structured_networks`)."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from featurestep import Problem, predict
from featurestep.core.spiked import spiked_weights
from featurestep.theory.exact.inputs import largest_share

from .structured_networks import PATH, QUANTITIES, SMALL, WANTED

GAP = 0.03  # that the test error may be off where there is no note


class Row(NamedTuple):
    """One problem: its largest share, the sizes of its notes, gaps and z-scores."""

    share: float
    size: float  # of the largest note on the covariance, 0 without
    gap: np.ndarray[Any, Any]  # relative, of test error, training loss and training error
    z: np.ndarray[Any, Any]


@lru_cache(maxsize=1)
def rows() -> list[Row]:
    found = []
    for record in json.loads(PATH.read_text()):
        problem = Problem(**record["problem"])
        prediction = predict(problem)
        seen = np.array([record[name] for name in QUANTITIES])
        expected = np.array([getattr(prediction, name) for name in QUANTITIES])
        about = ("one direction of the inputs", "products of two strong")
        sizes = [n.size for n in prediction.notes if any(words in n for words in about)]
        found.append(
            Row(
                largest_share(problem, spiked_weights(problem)),
                max(sizes, default=0.0),
                expected / seen[:, 0] - 1.0,
                (expected - seen[:, 0]) / seen[:, 1],
            )
        )
    return found


def test_so_many_problems_were_drawn():
    shares = np.array([row.share for row in rows()])
    assert (np.sum(shares < SMALL), np.sum(shares >= SMALL)) == (WANTED[True], WANTED[False])


def test_problems_without_a_note_agree():
    plain = [row for row in rows() if row.size == 0.0]
    assert len(plain) >= 30
    z, gap = np.array([row.z for row in plain]), np.array([row.gap for row in plain])
    rms = np.sqrt(np.mean(z**2, axis=0))
    assert np.all(rms <= 1.5), rms
    assert np.all((np.abs(gap) <= GAP) | (np.abs(z) <= 3.0), axis=0)[0]
    error = gap[:, 0] / z[:, 0]  # standard errors, as shares
    assert np.sqrt(np.mean((z[:, 0] + 0.03 / np.abs(error)) ** 2)) > 1.5, "a theory 3 % too high"


@pytest.mark.parametrize("quantity", [0, 1, 2], ids=QUANTITIES)
def test_problems_with_a_note_are_within_its_size(quantity):
    for row in rows():
        if row.size > 0.0:
            assert abs(row.gap[quantity]) <= row.size or abs(row.z[quantity]) <= 3.0, row
