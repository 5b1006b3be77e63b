"""Inputs with a covariance: the theory against recorded networks (`structured_networks`)."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from featurestep import Problem, predict
from featurestep.core.spiked import spiked_weights
from featurestep.theory.exact.inputs import largest_share, sees_direction

from .structured_networks import PATH, QUANTITIES, SMALL, WANTED, PermutedNetworks

GAP = 0.03  # that the test error may be off where there is no note
RMS = np.array([1.5, 1.5, 1.5])  # of z of test error, training loss and training error
SEEN_GAP = (0.03, 0.03, 0.035)  # where the largest direction is conditioned on, without a note
pytestmark = pytest.mark.slow


class Row(NamedTuple):
    """One problem: its largest share, the size of its notes, gaps and z-scores."""

    share: float
    is_seen: bool  # the largest direction is conditioned on
    size: float  # of the note on single directions, 0 without
    gap: np.ndarray[Any, Any]  # relative, of test error, training loss and training error
    z: np.ndarray[Any, Any]


@lru_cache(maxsize=1)
def every() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {name: [] for name in WANTED}
    for record in json.loads(PATH.read_text()):
        problem = Problem(**record["problem"])
        prediction = predict(problem)
        seen = np.array([record[name] for name in QUANTITIES])
        expected = np.array([getattr(prediction, name) for name in QUANTITIES])
        sizes = [n.size for n in prediction.notes if n.kind == "single directions of the inputs"]
        found[record["set"]].append(
            Row(
                largest_share(problem, spiked_weights(problem)),
                sees_direction(problem),
                max(sizes, default=0.0),
                expected / seen[:, 0] - 1.0,
                (expected - seen[:, 0]) / seen[:, 1],
            )
        )
    return found


@pytest.mark.parametrize("name", WANTED)
def test_so_many_problems_were_drawn(name):
    shares = np.array([row.share for row in every()[name]])
    assert np.sum(shares < SMALL) == WANTED[name][True]
    assert np.sum(shares >= SMALL) == WANTED[name][False]


@pytest.mark.parametrize("name", WANTED)
def test_problems_without_a_note_agree(name):
    """Root mean square of z, and no gap of the test error beyond 3 %, whatever the error bars."""
    plain = [row for row in every()[name] if row.size == 0.0 and not row.is_seen]
    assert len(plain) >= 0.8 * WANTED[name][True]
    z, gap = np.array([row.z for row in plain]), np.array([row.gap for row in plain])
    rms = np.sqrt(np.mean(z**2, axis=0))
    assert np.all(rms <= RMS), rms
    assert np.all(np.abs(gap[:, 0]) <= GAP)
    error = np.abs(gap[:, 0] / z[:, 0])  # standard errors, as shares
    assert np.sqrt(np.mean((z[:, 0] + GAP / error) ** 2)) > RMS[0], "3 % too high"


def test_all_problems_of_the_last_set_without_visible_directions_agree():
    """Those with a note on the learned direction too, with networks that no one had seen."""
    rows = [row for row in every()["last"] if row.share < SMALL]
    rms = np.sqrt(np.mean([row.z**2 for row in rows], axis=0))
    assert len(rows) == 60
    assert np.all(rms <= RMS), rms
    assert max(abs(row.gap[0]) for row in rows) <= GAP


def test_a_direction_that_is_conditioned_on_leaves_small_gaps():
    """Without it 11 of 46 test errors were more than 3 % off, and the largest 24 %.

    Medians, and that one in twelve may be off by more than 3 %, were chosen after the networks.
    """
    rows = [row for part in every().values() for row in part if row.is_seen]
    gap = np.abs([row.gap for row in rows])
    assert len(rows) >= 90
    assert np.all(np.median(gap, axis=0) <= (0.007, 0.009, 0.011)), np.median(gap, axis=0)
    assert np.mean(gap[:, 0] > 0.03) <= 1 / 12
    alone = np.array([row.gap for row in rows if row.size == 0.0])
    assert np.all(np.abs(alone) <= SEEN_GAP)


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize("quantity", [0, 1, 2], ids=QUANTITIES)
def test_problems_with_a_note_are_within_its_size(quantity, name):
    for row in every()[name]:
        if row.size > 0.0:
            assert abs(row.gap[quantity]) <= row.size, row


def test_what_is_left_out_of_a_direction_that_is_conditioned_on():
    """Parts along it are correlated with neurons' other weights: permuted over them they are not.

    A problem of the record that is 15 % off.
    """
    pytest.importorskip("torch")
    record = json.loads(PATH.read_text())[130]
    fields = record["problem"]
    prediction = predict(Problem(**fields))
    (note,) = (n for n in prediction.notes if n.kind == "single directions of the inputs")
    assert note.size == 0.5
    seen, error = record["test_error"]
    assert prediction.test_error < 0.9 * (seen - 2.0 * error)
    permuted = PermutedNetworks(fields, seed=5)
    errors = [float(permuted.draw(3000)[0]) for _ in range(16)]
    error = np.std(errors, ddof=1) / len(errors) ** 0.5
    assert error < 0.03 * prediction.test_error
    assert abs(np.mean(errors) - prediction.test_error) < 2.0 * error + 0.02
