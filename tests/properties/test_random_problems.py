"""Over the whole declared domain: solved or refused with a cause, never NaN or K-dependent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from featurestep import NotConverged, Prediction, Problem
from featurestep.theory.exact.fixed_point import ACCEPTED
from featurestep.theory.predict import solve
from featurestep.theory.prediction import SELF_CHECK, Outcome
from featurestep.theory.resolution import Effort
from tests.draws import random_problem
from tests.theory.perturbed import first_guess

LARGEST = 4.0  # step of the fast tests in √N: beyond, a problem may take many seconds
REFUSED = 0.002  # of slow tests: most are polynomials of three or four inputs after n_step = 1
GENTLE = 1.0  # the same for laws that are cut into groups, in tests that solve several times


def quick_problems(seed: int, count: int) -> list[Problem]:
    """Problems of the whole domain but for large steps on laws of many values."""
    rng = np.random.default_rng(seed)
    drawn: list[Problem] = []
    while len(drawn) < count:
        problem = random_problem(rng, largest=LARGEST)
        if problem.law.is_finite or problem.step_size <= GENTLE * problem.width**0.5:
            drawn.append(problem)
    return drawn


def check(outcomes: list[Outcome], allowed_share: float) -> None:
    refused = [o for o in outcomes if not isinstance(o, Prediction)]
    assert len(refused) <= allowed_share * len(outcomes), [str(o) for o in refused]
    for outcome in outcomes:
        if isinstance(outcome, Prediction):
            numbers = (
                outcome.test_error,
                outcome.train_loss,
                outcome.train_mse,
                outcome.readout_norm,
            )
            assert np.all(np.isfinite(numbers))
            assert min(numbers) >= 0
            assert outcome.solver_residual <= ACCEPTED
            assert outcome.self_check <= SELF_CHECK
        else:
            assert isinstance(outcome, NotConverged)
            assert str(outcome)


def test_random_problems_are_solved() -> None:
    rng = np.random.default_rng(2024)
    check(solve([random_problem(rng, largest=LARGEST) for _ in range(50)]), allowed_share=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_random_problems_are_solved(part: int) -> None:
    rng = np.random.default_rng([7, part])
    check(solve([random_problem(rng) for _ in range(1000)]), allowed_share=REFUSED)


def are_solved(outcomes: Sequence[Outcome]) -> bool:
    return all(isinstance(outcome, Prediction) for outcome in outcomes)


def largest_change(first: list[Outcome], second: list[Outcome]) -> float:
    worst = 0.0
    for a, b in zip(first, second, strict=True):
        assert isinstance(a, Prediction)
        assert isinstance(b, Prediction)
        for name in ("test_error", "train_loss", "train_mse"):
            worst = max(worst, abs(getattr(a, name) / getattr(b, name) - 1.0))
    return worst


def test_results_do_not_depend_on_groups_nodes_or_start() -> None:
    problems = quick_problems(11, 15)
    usual = solve(problems)
    assert largest_change(usual, solve(problems, effort=Effort(1.6, 1.6))) < 1e-6
    for start in (1e-3, 30.0):
        with pytest.MonkeyPatch.context() as patch:
            first_guess(patch, start)
            assert largest_change(usual, solve(problems)) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("part", range(15))
def test_results_do_not_depend_on_groups_and_nodes_over_many_problems(part: int) -> None:
    """1500 problems in parts of a hundred. Two are refused: polynomials of d = 3, 4, n_step = 1."""
    rng = np.random.default_rng(12)
    problems = [random_problem(rng, steep=8.0) for _ in range(1500)][100 * part : 100 * (part + 1)]
    usual, finer = solve(problems), solve(problems, effort=Effort(1.7, 1.7))
    refused = int(part in (3, 8))
    check(usual, allowed_share=refused / len(problems))
    solved = [i for i, both in enumerate(zip(usual, finer, strict=True)) if are_solved(both)]
    assert len(solved) >= len(problems) - refused
    assert largest_change([usual[i] for i in solved], [finer[i] for i in solved]) < 1e-6


def test_a_batch_equals_single_solves() -> None:
    problems = quick_problems(13, 15)
    singles = [solve([p])[0] for p in problems]
    assert largest_change(solve(problems), singles) < 1e-11
