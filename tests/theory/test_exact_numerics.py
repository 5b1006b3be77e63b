"""Exact weights: results do not depend on how they were computed, nor does `auto` show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from featurestep import LossPrediction, Prediction, Problem
from featurestep.core.spiked import spiked_weights
from featurestep.theory.exact.dyson import inverted
from featurestep.theory.isotropic import left_out
from featurestep.theory.predict import solve
from featurestep.theory.prediction import ACCEPTED, SELF_CHECK, Outcome
from featurestep.theory.resolution import Effort
from tests.draws import log_uniform, random_problem
from tests.theory.perturbed import first_guess
from tests.theory.roads import without_higher_degrees

NAMES = ("test_error", "train_loss", "train_mse", "readout_norm")


def solutions(outcomes: list[Outcome]) -> list[Prediction]:
    assert [o for o in outcomes if not isinstance(o, Prediction)] == []
    return [o for o in outcomes if isinstance(o, Prediction)]


def values(outcomes: list[Outcome], names: tuple[str, ...] = NAMES) -> np.ndarray:
    """The numbers, with the norm's square, which the equations give."""
    found = np.array([[getattr(s, name) for name in names] for s in solutions(outcomes)])
    return found ** [2 if name == "readout_norm" else 1 for name in names]


@pytest.fixture(scope="module")
def problems() -> list[Problem]:
    rng = np.random.default_rng(31)
    return [random_problem(rng, largest=4.0) for _ in range(24)]


@pytest.fixture(scope="module")
def usual(problems: list[Problem]) -> list[Outcome]:
    return solve(problems, method="exact")


def test_every_result_passes_its_checks(usual: list[Outcome]) -> None:
    for found in solutions(usual):
        assert found.method == "exact"
        assert found.solver_residual <= ACCEPTED
        assert found.self_check <= SELF_CHECK


# Each on a half of the problems: slow tests vary groups and nodes on thousands.
@pytest.mark.parametrize(
    ("first", "effort"), [(0, Effort(1.5, 1.0)), (1, Effort(1.0, 1.7))], ids=["groups", "nodes"]
)
def test_groups_and_nodes_do_not_show(
    problems: list[Problem], usual: list[Outcome], first: int, effort: Effort
) -> None:
    finer = solve(problems[first::2], method="exact", effort=effort)
    assert values(finer) == pytest.approx(values(usual[first::2]), rel=1e-6)


@pytest.mark.parametrize(("first", "start"), [(0, 30.0), (1, 1e-2)])
def test_the_start_does_not_show(
    problems: list[Problem],
    usual: list[Outcome],
    first: int,
    start: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first_guess(monkeypatch, start)
    elsewhere = solve(problems[first::2], method="exact")
    assert values(elsewhere) == pytest.approx(values(usual[first::2]), rel=1e-6)


def test_a_batch_equals_single_solves(problems: list[Problem], usual: list[Outcome]) -> None:
    alone = [solve([p], method="exact")[0] for p in problems[::3]]
    assert values(alone) == pytest.approx(values(usual[::3]), rel=1e-9)


def test_a_singular_matrix_spoils_no_other() -> None:
    matrices = np.stack([2.0 * np.eye(3), np.zeros((3, 3)), np.eye(3)])
    found = inverted(matrices)
    assert np.array_equal(found[[0, 2]], np.stack([0.5 * np.eye(3), np.eye(3)]))
    assert np.isnan(found[1]).all()
    with np.errstate(all="ignore"):
        assert np.isnan(inverted(np.zeros((2, 2), dtype=complex))).all()


def test_isotropic_weights_are_right_where_little_is_left_out() -> None:
    """Steps of every size: where section 16 says that nothing is lost, the two methods agree.

    Terms of higher degrees have their own treatment of the step (sections 50–53).
    """
    rng = np.random.default_rng(32)
    drawn: list[Problem] = []
    while len(drawn) < 40:
        problem = random_problem(rng, steep=8.0)
        size = float(rng.random() < 0.8) * log_uniform(rng, 1e-6, 3.0)
        if problem.step_size == 0.0:  # the only step its activation allows
            size = 0.0
        problem = problem.replace(step_size=size * problem.width**0.5)
        if problem.law.is_finite and left_out(problem, spiked_weights(problem)) < 5e-5:
            drawn.append(problem)
    isotropic, exact = (
        [without_higher_degrees(problem, method=method) for problem in drawn]
        for method in ("isotropic", "exact")
    )
    errors = ("test_error", "train_loss")
    assert values(isotropic, errors) == pytest.approx(values(exact, errors), rel=1e-4)


def test_neurons_that_are_turned_round_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """An odd activation needs groups of |g| only; results tell of g and −g."""
    rng = np.random.default_rng(33)
    drawn: list[Problem] = []
    while len(drawn) < 30:
        problem = random_problem(rng, largest=2.0)
        if problem.sigma.is_odd and problem.law.name != "constant":
            drawn.append(problem)
    sizes = Problem(
        n=400, d=200, width=300, step_exponent=0.5, ridge=0.1, activation="tanh", target="relu"
    )
    drawn.append(sizes.replace(loss="logistic", target="H1"))
    drawn.append(sizes.replace(rows="same", readout="rademacher"))
    parts = [drawn[:-2], drawn[-2:-1], drawn[-1:]]  # those with another loss are solved otherwise
    folded = [found for part in parts for found in solve(part)]
    for kind in {type(problem.sigma) for problem in drawn}:
        monkeypatch.setattr(kind, "is_odd", property(lambda _: False))
    whole = [found for part in parts for found in solve(part)]
    for one, other in zip(folded, whole, strict=True):
        assert isinstance(one, (Prediction, LossPrediction))
        assert isinstance(other, (Prediction, LossPrediction))
        assert one.test_error == pytest.approx(other.test_error, rel=1e-8)
        assert one.train_loss == pytest.approx(other.train_loss, rel=1e-8)
        assert one.groups.g.tolist() == other.groups.g.tolist()
        readout = ("use", "along", "across")
        size = max(float(np.abs(getattr(other.groups, name)).max()) for name in readout)
        for name in ("neurons", "shift", "norm", *readout):
            own, expected = getattr(one.groups, name), getattr(other.groups, name)
            assert own == pytest.approx(expected, rel=1e-7, abs=1e-8 * size + 1e-10)


# Functions of κ with kinks made these converge algebraically, up to 1e-4 off.
KINKED = (
    {
        "activation": "erf", "target": "H1 + H2/2 - 0.2*H4", "n": 227, "d": 9, "width": 275,
        "n_step": 88, "step_exponent": 0.664, "ridge": 5.4e-5, "noise_std": 1.0,
    },
    {
        "activation": "H1 + H2/2 - 0.2*H4", "target": "sin", "n": 357, "d": 11, "width": 167,
        "n_step": 10, "step_exponent": 0.4775, "ridge": 0.56, "noise_std": 0.1,
        "residual": "full", "initial": "gaussian",
    },
)  # fmt: skip


@pytest.mark.parametrize("fields", KINKED, ids=["erf", "quartic"])
def test_tables_of_small_d_are_smooth(fields: dict[str, Any]) -> None:
    problem = Problem(readout="rademacher", **fields)
    finer = solve([problem], effort=Effort(1.0, 1.7))
    assert values(finer) == pytest.approx(values(solve([problem])), rel=1e-6)


def test_directions_that_are_learned_almost_exactly_lose_no_digits() -> None:
    """Two expressions for the training loss, where G nearly vanishes on the fitted directions."""
    problem = Problem(
        activation="softplus", target="H2", n=278, d=10, width=453, n_step=341, step_size=2.1,
        ridge=5e-5, noise_std=0.1, readout=((1.5, 0.4), (-((0.1 / 0.6) ** 0.5), 0.6)),
    )  # fmt: skip
    (found,) = solutions(solve([problem]))
    assert found.self_check < 5e-10
