"""The papers' equivalence of features: the norm itself, and that it falls with n."""

from __future__ import annotations

import numpy as np
import pytest

from featurestep import InvalidProblem, NonFiniteFeatures, Problem, feature_gap

from .dense import draw_of, features, whole

PROBLEM = Problem(n=130, d=40, width=50, ridge=0.1, noise_std=0.2, step_size=3.0, centre=True)


@pytest.mark.parametrize("residual", ["labels", "full"])
def test_gap_is_the_operator_norm(residual):
    p = PROBLEM.replace(activation="relu", residual=residual)
    found = feature_gap(p, degrees=[1, 3], seeds=[7]).values
    draw = draw_of(p, seed=7)
    X, _, _ = whole(draw, draw.readout_sample(p.n))
    F = features(p, draw, "trained", X, 0)
    for row, degree in zip(found, (1, 3), strict=True):
        gap = np.linalg.norm(F - features(p, draw, f"spiked:{degree}", X, 0), 2) / np.sqrt(p.n)
        assert row[0] == pytest.approx(gap, rel=1e-10)


def test_gap_falls_with_n_in_its_regime():
    """tanh at α = 0.1 lies in regime 1: F_1 approaches F."""
    gaps = [
        feature_gap(
            Problem(n=n, d=n // 2, width=n // 2, ridge=0.1, step_exponent=0.1), degrees=[1], seeds=4
        ).values
        for n in (100, 800)
    ]
    first, last = (gap.mean() for gap in gaps)
    assert last < 0.8 * first


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"degrees": [0]}, "variants"),
        ({"degrees": 2}, "degrees"),
        ({"seeds": 0}, "seeds"),
    ],
)
def test_bad_arguments(options, parameter):
    with pytest.raises(InvalidProblem) as caught:
        feature_gap(PROBLEM, **options)
    assert caught.value.parameter == parameter


def test_no_step_is_refused():
    with pytest.raises(InvalidProblem, match="step_size"):
        feature_gap(PROBLEM.replace(step_size=0.0))


def test_features_that_overflow_are_refused():
    p = Problem(n=60, d=30, width=40, activation="H1 + H15", step_size=1e12, ridge=0.1)
    with pytest.raises(NonFiniteFeatures, match="40 of 40 features"):
        feature_gap(p, seeds=1)
