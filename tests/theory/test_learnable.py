"""What one step can never learn (52), and what a prediction says that it did learn."""

from __future__ import annotations

import itertools
import json
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from featurestep import InvalidProblem, Problem, Teacher, baselines, learnable, predict
from featurestep.core.spiked import spiked_weights
from featurestep.functions.nonlinearity import coefficients
from featurestep.theory.labels import KAPPA, WEIGHT
from featurestep.theory.resolution import Effort
from tests.theory.roads import without_higher_degrees

MODULE = import_module("featurestep.theory.learnable")

# The sizes of the table in docs/theory.md: d = 1e5, n_step/d = 1000, η = √N, N = n/50.
D = 10**5


def large(target: Any, activation: str, readout: str, ratio: int = 10**4) -> Problem:
    width = ratio * D // 50
    return Problem(
        activation=activation,
        target=target,
        n=ratio * D,
        d=D,
        width=width,
        n_step=1000 * D,
        step_size=width**0.5,
        ridge=0.01,
        noise_std=0.2,
        readout=readout,
    )


TABLE = {  # test errors at n/d = 100, 1000, 10000
    ("z1 + z1*z2", "relu", "constant"): (1.305, 1.158, 1.144),
    ("z1 + z1*z2", "relu", "rademacher"): (0.744, 0.154, 0.060),
    ("z1 + z1*z2", "tanh", "rademacher"): (1.060, 1.056, 1.055),
    ("z1 + z2^2 - 1", "relu", "rademacher"): (2.078, 2.073, 2.072),
    ("z1 + z2*z3", "relu", "constant"): (1.433, 1.275, 1.262),
    ("z1 + (z1^2 - 1)*z2", "tanh", "rademacher"): (2.041, 2.037, 2.036),
    ("z1 + (z1^2 - 1)*z2", "relu", "rademacher"): (2.084, 2.066, 2.060),
    ("z1*z2", "relu", "constant"): (1.059, 1.057, 1.057),
}


@pytest.mark.parametrize("case", TABLE, ids="-".join)
def test_errors_go_down_to_the_floor_of_their_class(case: tuple[str, str, str]) -> None:
    found = learnable(large(*case))
    assert found.class_floor >= found.floor - 1e-12
    errors = [predict(large(*case, ratio=ratio)).test_error for ratio in (100, 1000, 10**4)]
    assert errors == pytest.approx(TABLE[case], abs=6e-4)
    assert errors[0] > errors[1] > errors[2] > found.class_floor
    # What is left above the floor: terms of the ridge, which does not vanish here.
    assert errors[2] < found.class_floor + 0.02 * found.power


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("z1 + z1*z2", {"z1": "learned", "z1*z2": "learned"}),
        ("z1 + z2^2 - 1", {"z1": "learned", "H2(z2)": "never"}),
        ("z1 + z2*z3", {"z1": "learned", "z2*z3": "never"}),
        (
            "z1 + (z1^2 - 1)*z2",
            {"z1": "learned", "H2(z1)*z2": "not with this activation and law"},
        ),
        ("z1*z2", {"z1*z2": "never"}),
        ("z2 + z1*z2", {"z2": "learned", "z2*z1": "learned"}),
    ],
)
def test_verdicts_for_relu(target: str, expected: dict[str, str]) -> None:
    found = learnable(large(target, "relu", "rademacher"))
    assert {term.name: term.verdict for term in found.terms} == expected
    total = sum(term.size for term in found.terms) + found.problem.noise_std**2
    assert found.power == pytest.approx(total, rel=1e-9)


def test_odd_activations_never_learn_odd_times_another_direction() -> None:
    (along, product) = learnable(large("z1 + z1*z2", "tanh", "gaussian")).terms
    assert along.expressed > 0.999
    assert product.possible > 0.99
    assert product.expressed < 1e-9


@pytest.mark.parametrize("law", ["gaussian", "uniform"])
@pytest.mark.parametrize("step", [0.0, 1.0])
def test_odd_activations_never_learn_a_mean(law: str, step: float) -> None:
    p = large("0.5*H0 + H1", "tanh", law)
    found = learnable(p.replace(step_size=step * p.step_size))
    assert found.class_floor == pytest.approx(0.25 + 0.04, rel=1e-9)
    assert found.floor == pytest.approx(0.04, rel=1e-9)


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid"])
@pytest.mark.parametrize("law", ["gaussian", "uniform"])
def test_floors_do_not_depend_on_the_groups(
    monkeypatch: pytest.MonkeyPatch, activation: str, law: str
) -> None:
    p = large("tanh", activation, law).replace(n_step=2 * D)
    first = learnable(p)
    monkeypatch.setattr(MODULE, "_EFFORT", Effort(groups=4.0))
    assert learnable(p).class_floor == pytest.approx(first.class_floor, rel=1e-7)


def test_the_floor_in_hermite_coefficients() -> None:
    """(52) as a sum over terms: Σ size·(1 − possible) + noise."""
    p = large("z1 + z1*z2 + 0.3*(z1^2-1)*z2 + 0.4*z2*z3 + 0.2*(z1^3-3*z1)", "relu", "gaussian")
    for n_step in (D, 10 * D, 1000 * D):
        found = learnable(p.replace(n_step=n_step))
        lost = sum(term.size * (1.0 - term.possible) for term in found.terms)
        assert found.floor == pytest.approx(lost + 0.04, rel=1e-9)


def test_the_floor_is_the_best_that_baselines_know() -> None:
    for target in ("z1 + z2 + tanh(z1*z2)", "H1 + H2/2 + H3/6"):
        p = large(target, "relu", "rademacher").replace(n_step=2 * D)
        assert learnable(p).floor == pytest.approx(
            baselines(p).best_given_direction_and_linear, rel=1e-8
        )


def test_one_direction_floor() -> None:
    p = large("H1 + H2/2 + H3/6", "relu", "gaussian").replace(n_step=2 * D)
    gamma, c = spiked_weights(p).alignment, coefficients(p.sigma_star, 3)
    factorial = (1.0, 1.0, 2.0, 6.0)
    lost = sum(
        factorial[a]
        * c[a] ** 2
        * (1.0 - gamma ** (2 * a) - a * gamma ** (2 * a - 2) * (1 - gamma**2))
        for a in (2, 3)
    )
    assert learnable(p).floor == pytest.approx(lost + 0.04, rel=1e-10)


def test_turned_directions_have_the_same_floors() -> None:
    p = large("z1 + z1*z2 + z2*z3/2", "relu", "rademacher").replace(n_step=3 * D)
    turn, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))

    def g(z: np.ndarray) -> np.ndarray:
        x = z @ turn
        return np.asarray(x[:, 0] + x[:, 0] * x[:, 1] + x[:, 1] * x[:, 2] / 2.0)

    first, second = learnable(p), learnable(p.replace(target=Teacher(3, g)))
    for name in first.MEANINGS:
        assert getattr(second, name) == pytest.approx(getattr(first, name), rel=1e-8)
    assert all("=" in axis for axis in second.axes)


def test_a_second_step_climbs_one_stair() -> None:
    stairs = learnable(large("z1 + z1*z2 + z1*z2*z3", "relu", "rademacher"))
    assert stairs.floor_second == pytest.approx(0.04, abs=1e-9)
    assert any("second step" in line for line in stairs.advice)
    leap = learnable(large("z1 + z2*z3", "relu", "rademacher"))
    assert leap.floor_second == pytest.approx(1.04, rel=1e-9)
    nothing = learnable(large("z1*z2", "relu", "rademacher"))
    assert nothing.floor_second == pytest.approx(1.04, rel=1e-6)
    assert "E[y z] = 0" in nothing.advice[0]


def test_advice_names_what_helps() -> None:
    found = learnable(large("z1 + (z1^2 - 1)*z2", "relu", "rademacher"))
    assert any("another activation and law: tanh with gaussian" in line for line in found.advice)
    assert json.loads(json.dumps(found.as_dict()))["best_pair"][:2] == ["tanh", "gaussian"]
    with pytest.raises(InvalidProblem, match="problem"):
        learnable("relu")  # type: ignore[arg-type]


BASE: dict[str, Any] = {
    "n": 4000,
    "d": 1000,
    "width": 2000,
    "n_step": 8000,
    "step_size": 2000**0.5,
    "ridge": 0.01,
    "noise_std": 0.2,
    "activation": "relu",
    "readout": "rademacher",
}


@pytest.mark.parametrize("changes", [{}, {"residual": "full"}, {"initial": "gaussian"}])
def test_degrees_add_up_to_the_test_error(changes: dict[str, Any]) -> None:
    found = predict(Problem(**BASE, **changes, target="z1 + z1*z2 + z2*z3/2 + 0.3"))
    degrees = found.error_by_degree()
    assert sum(degrees.values()) == pytest.approx(found.test_error, rel=1e-12)
    assert min(degrees.values()) > -1e-9
    assert degrees["rest"] > found.problem.noise_std**2
    # z2*z3 is s_2·s_3, and never learned.
    assert degrees[(0, 0, 1, 1)] == pytest.approx(0.25, rel=1e-6)


def test_learned_parts_follow_the_directions() -> None:
    p = Problem(**BASE, target="z1 + z1*z2 + z2*z3/2")
    places = np.array([-2.0, -0.5, 0.0, 1.5])
    first = predict(p)
    second = predict(p.replace(target="z3 + z3*z1 + z1*z2/2"))
    order = [0, 2, 3, 1]  # κ, then the directions in their new places
    assert second.learned_parts(places) == pytest.approx(
        first.learned_parts(places)[order], rel=1e-8, abs=1e-9
    )
    assert first.learned_parts(places)[0] == pytest.approx(first.learned(places))
    assert second.alignments == pytest.approx((0.0, 0.0, first.alignment), abs=1e-9)
    one, other = first.error_by_degree(3), second.error_by_degree(3)
    for a, b, c in itertools.product(range(2), repeat=3):
        assert other[(0, b, c, a)] == pytest.approx(one[(0, a, b, c)], abs=1e-9)


def test_parts_of_one_direction_explain_its_misfit() -> None:
    """E(y − f)² without fluctuations is below the test error, and contains what parts miss."""
    p = Problem(**BASE, target="H1 + H2/sqrt(2)")
    found = without_higher_degrees(p)
    two = predict(p.replace(target=Teacher(2, lambda z: z[:, 1] + (z[:, 1] ** 2 - 1.0) / 2**0.5)))
    one_parts, two_parts = found.learned_parts(KAPPA), two.learned_parts(KAPPA)
    size = float(WEIGHT @ one_parts[0] ** 2)
    assert WEIGHT @ (two_parts[0] - one_parts[0]) ** 2 < 1e-16 * size
    assert WEIGHT @ (two_parts[2] - one_parts[1]) ** 2 < 1e-16 * size
    assert WEIGHT @ two_parts[1] ** 2 < 1e-16 * size


def test_multi_indices_are_limited() -> None:
    found = predict(Problem(**BASE, target="z1 + z1*z2"))
    with pytest.raises(InvalidProblem, match="highest must be at most 8"):
        found.error_by_degree(9)
    assert set(found.error_by_degree(0)) == {(0, 0, 0), "higher", "rest"}


def test_the_floor_of_quadratic_functions() -> None:
    """With n and N far above d² the error is between it and the floor of n ≪ d²."""
    problem = Problem(
        n=40_000, d=30, width=6_000, n_step=60, step_size=0.0, ridge=1e-4, noise_std=0.3,
        activation="relu", target="H1 + H2/sqrt(2)",
    )  # fmt: skip
    found = learnable(problem)
    assert found.floor_quadratic == pytest.approx(problem.noise_std**2, rel=1e-9)
    assert found.floor_quadratic < predict(problem).test_error < found.floor
    assert any(f"{found.floor_quadratic:.4g}" in note for note in found.notes)
    cubic = learnable(problem.replace(target="H1 + H3/sqrt(6)"))
    assert problem.noise_std**2 < cubic.floor_quadratic < cubic.floor


def test_floors_of_endless_samples_are_zero_where_nothing_is_missed() -> None:
    """They are computed at very many samples, of which no trace is left."""
    found = learnable(
        Problem(n=2000, d=1000, width=1500, step_size=10.0, ridge=0.01, activation="relu",
                target="H1 + H2/2", readout="gaussian")
    )  # fmt: skip
    assert found.floor_many == found.class_floor_many == 0.0
    assert found.floor > 0.01
    noisy = learnable(found.problem.replace(noise_std=0.1))
    assert noisy.floor_many == pytest.approx(0.01, rel=1e-9)
