"""Targets of several directions: what they must reduce to, and what they must not depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from featurestep import (
    InaccurateQuadrature,
    InvalidProblem,
    Problem,
    Teacher,
    baselines,
    limit,
    predict,
)
from featurestep.figures.base import SHIFTED_SINE
from tests.theory.many_directions import many_samples
from tests.theory.roads import exact_answer, exact_numbers, without_higher_degrees

BASE: dict[str, Any] = {
    "n": 2000,
    "d": 1000,
    "width": 1500,
    "step_size": 1500**0.5,
    "ridge": 0.01,
    "noise_std": 0.2,
}
Function = Callable[[np.ndarray], np.ndarray]
QUANTITIES = ("test_error", "train_loss", "train_mse", "readout_norm", "alignment")


def turned(g: Function, r: int, seed: int) -> Function:
    """The same function of other orthonormal directions."""
    turn, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((r, r)))
    return lambda z: g(z @ turn)


def gaps(found: Problem, expected: Problem) -> np.ndarray:
    """Of a target of several directions to one of a single direction, by the same equations.

    Blocks of degree 2 and 3 are those of a single direction.
    """
    a, b = predict(found), without_higher_degrees(expected)
    assert max(a.self_check, b.self_check) < 1e-9
    return np.array([getattr(a, name) / getattr(b, name) - 1.0 for name in QUANTITIES])


CASES: tuple[dict[str, Any], ...] = (
    {"activation": "relu", "readout": "rademacher"},
    {"activation": SHIFTED_SINE, "readout": "constant", "initial": "gaussian"},
    {"activation": "relu", "readout": "rademacher", "residual": "full", "centre": True},
    {"activation": "sigmoid", "readout": "rademacher", "residual": "full"},
    {"activation": "relu", "readout": "gaussian", "step_size": 8.0},
    {"activation": "tanh", "readout": "rademacher", "step_size": 0.0},
)


def parabola(z: np.ndarray) -> np.ndarray:
    return np.asarray(z[:, 0] + (z[:, 0] ** 2 - 1.0) / 2**0.5)


ONE = {r: [Teacher(r, parabola), Teacher(r, turned(parabola, r, 3))] for r in (2, 3)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['activation']}-{case['readout']}")
@pytest.mark.parametrize("r", [2, 3])
def test_one_direction_given_as_several(case: dict[str, Any], r: int) -> None:
    expected = Problem(**{**BASE, **case}, target="H1 + H2/sqrt(2)")
    for teacher in ONE[r]:
        assert np.abs(gaps(expected.replace(target=teacher), expected)).max() < 1e-10


def test_a_bounded_direction_given_as_two() -> None:
    expected = Problem(**BASE, activation="relu", target="tanh", readout="rademacher")
    g = turned(lambda z: np.tanh(z[:, 0]), 2, 1)
    assert np.abs(gaps(expected.replace(target=Teacher(2, g)), expected)).max() < 1e-10


SEVERAL: dict[str, tuple[int, Function]] = {
    "z1 + z1*z2": (2, lambda z: z[:, 0] + z[:, 0] * z[:, 1]),
    "z1 + z2^2 - 1 + z1*z2": (2, lambda z: z[:, 0] + z[:, 1] ** 2 - 1.0 + z[:, 0] * z[:, 1]),
    "z1 + 0.5*z2 + tanh(z1*z2)": (
        2,
        lambda z: z[:, 0] + 0.5 * z[:, 1] + np.tanh(z[:, 0] * z[:, 1]),
    ),
    "z1 + z2 + z1*z2*z3": (3, lambda z: z[:, 0] + z[:, 1] + z[:, 0] * z[:, 1] * z[:, 2]),
    "0.3 + z1 - 0.5*z2*z3 + z3^2/2": (
        3,
        lambda z: 0.3 + z[:, 0] - 0.5 * z[:, 1] * z[:, 2] + z[:, 2] ** 2 / 2.0,
    ),
}


TURNED = {text: Teacher(r, turned(g, r, 5)) for text, (r, g) in SEVERAL.items()}


def test_formulas_are_the_functions_they_write() -> None:
    z = np.random.default_rng(0).standard_normal((50, 3))
    for text, (r, g) in SEVERAL.items():
        teacher = Problem(**BASE, target=text).teacher
        assert teacher is not None
        assert teacher.directions == r
        assert teacher(z[:, :r]) == pytest.approx(g(z[:, :r]), rel=1e-14)


@pytest.mark.parametrize("text", SEVERAL)
@pytest.mark.parametrize("case", CASES[:3:2], ids=["labels", "full"])
def test_directions_may_be_turned(text: str, case: dict[str, Any]) -> None:
    expected = Problem(**{**BASE, **case}, target=text)
    assert np.abs(gaps(expected.replace(target=TURNED[text]), expected)).max() < 1e-8


@pytest.mark.parametrize("text", SEVERAL)
@pytest.mark.parametrize("activation", ["relu", SHIFTED_SINE], ids=["relu", "sine"])
def test_many_samples_in_the_step(text: str, activation: Any) -> None:
    """n_step/d → ∞ is (53): the gap shrinks linearly in d/n_step, and without it is gone."""
    r, g = SEVERAL[text]
    p = Problem(**{**BASE, "ridge": 0.05}, activation=activation, target=text, readout="rademacher")
    expected = np.array(many_samples(p, g, r))
    second, third = (
        np.array(exact_numbers(p.replace(n_step=1000 * ratio), finite=False)) / expected - 1.0
        for ratio in (10**5, 10**7)
    )
    assert third == pytest.approx(second / 100, rel=0.02, abs=2e-7)
    assert np.abs(third).max() < 1e-5
    assert np.abs((100 * third - second) / 99).max() < 1e-6


@pytest.mark.parametrize("text", ["z1 + z2 + z1*z2*z3", "z1 + z2^2 - 1 + z1*z2"])
@pytest.mark.parametrize("readout", ["rademacher", "constant"])
def test_the_law_of_products_is_resolved(text: str, readout: str) -> None:
    """Products of Gaussians have heavy tails; in asinh(2r/rms) some nodes are enough."""
    step = {"step_size": 2.0 * 1500**0.5, "n_step": 2000}
    p = Problem(**{**BASE, **step}, activation="relu", target=text, readout=readout)
    few, many = (exact_answer(p, count=count) for count in (None, 72))
    weight = few.solution.at.samples.weight
    errors = [found.errors.by_kappa[0] @ weight for found in (few, many)]
    losses = [found.fitted.train_loss[0] for found in (few, many)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_other_verbs_see_the_same_target() -> None:
    """One direction given as two: limits and baselines are those of the one.

    Not of the untrained network, where one direction has blocks of degree 2 and 3.
    """
    one = Problem(
        **{**BASE, "step_size": None, "step_exponent": 0.3},
        activation="relu",
        target="H1 + H2/2",
        readout="rademacher",
        centre=True,
    )
    two = one.replace(
        target=Teacher(2, turned(lambda z: z[:, 0] + (z[:, 0] ** 2 - 1.0) / 2.0, 2, 4))
    )
    for degree in (None, 1, "maximal"):
        a, b = limit(one, degree), limit(two, degree)  # type: ignore[arg-type]
        assert b.test_error == pytest.approx(a.test_error, rel=1e-9)
        assert b.train_gain == pytest.approx(a.train_gain, rel=1e-9)
        assert a.powers == b.powers
    first, second = (
        {name: value for name, value in baselines(p).numbers.items() if name != "untrained"}
        for p in (one, two)
    )
    assert second == pytest.approx(first, rel=1e-9)


def test_a_limit_that_features_of_constant_slope_reach() -> None:
    """In a published regime the other directions are noise: predictions at small steps agree."""
    p = Problem(
        **{**BASE, "step_size": None, "step_exponent": 0.3},
        activation="tanh",
        target="z1 + z1*z2 + z2^2 - 1",
        readout="rademacher",
    )
    far = p.replace(n=2 * 10**12, d=10**12, width=15 * 10**11)
    assert predict(far).test_error == pytest.approx(limit(p).test_error, rel=1e-3)


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("z1 + z4", "unexpected 'z4'"),
        ("z1 + foo(z2)", "unexpected 'foo'"),
        ("z1 + 1/z2", "finite"),
        (Teacher(2, lambda z: z), "map"),
    ],
)
def test_refused_targets(target: Any, named: str) -> None:
    with pytest.raises(InvalidProblem, match=named):
        predict(Problem(**BASE, target=target))


def test_more_directions_than_the_theory_takes() -> None:
    p = Problem(**BASE, target=Teacher(4, lambda z: z.sum(axis=1)))
    assert p.directions == 4
    with pytest.raises(InvalidProblem, match="at most 3 directions"):
        predict(p)


def test_isotropic_weights_take_one_direction() -> None:
    with pytest.raises(InvalidProblem, match="method must be exact for a target"):
        predict(Problem(**BASE, target="z1 + z1*z2"), method="isotropic")


def test_a_single_direction_by_formula() -> None:
    p = Problem(**BASE, target="0.5 + z1", activation="relu")
    same = p.replace(target="0.5*H0 + H1")
    assert p.directions == 1
    assert predict(p).test_error == pytest.approx(predict(same).test_error, rel=1e-13)
    third = Problem(**BASE, target="tanh(z3)", activation="relu")
    assert predict(third).test_error == pytest.approx(
        predict(third.replace(target="tanh")).test_error, rel=1e-10
    )


def test_rough_targets_are_noted_or_refused() -> None:
    p = Problem(**BASE, target="relu(z1) + z2", activation="relu", readout="rademacher")
    assert any("not smooth" in note for note in predict(p).notes)
    jumps = Teacher(2, lambda z: np.where(z[:, 0] > 40.0 * np.sin(20.0 * z[:, 1]), 50.0, 0.0))
    assert isinstance(Problem(**BASE, target=jumps).teacher, Teacher)
    spikes = Teacher(2, lambda z: np.where(np.abs(z).sum(axis=1) < 0.02, 1e6, 1.0))
    with pytest.raises(InaccurateQuadrature, match="averages"):
        predict(Problem(**BASE, target=spikes))
