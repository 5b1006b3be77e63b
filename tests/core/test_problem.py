"""The problem: derived quantities, conversions, grids, identity."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from featurestep import InvalidProblem, Problem, function
from featurestep.core.problem import interval

BASE = Problem(n=1000, d=500, width=750, step_exponent=0.3, ridge=0.01)


def test_derived_quantities() -> None:
    assert (BASE.phi, BASE.psi, BASE.phi_step) == (0.5, 500 / 750, 0.5)
    assert BASE.n_step == 1000
    assert BASE.step_size == pytest.approx(1000**0.3)
    assert BASE.replace(step_scale=2.5).step_size == pytest.approx(2.5 * 1000**0.3)
    assert BASE.replace(n_step=2000).phi_step == 0.25


@pytest.mark.parametrize("degree", range(1, 12))
def test_degree_inside_and_at_the_ends_of_each_interval(degree: int) -> None:
    low, high = interval(degree)
    inside = BASE.replace(step_exponent=0.5 * (low + high))
    assert inside.degree == degree
    assert BASE.replace(step_exponent=low + 1e-6).degree == degree
    at_end = BASE.replace(step_exponent=high)
    assert at_end.degree is None
    assert f"between degree {degree} and degree {degree + 1}" in at_end.regime.text


def test_degree_outside_the_intervals() -> None:
    assert BASE.replace(step_exponent=-0.1).degree == 0
    assert BASE.replace(step_size=0.0).degree == 0
    for exponent, words in ((0.5, "maximal step"), (0.7, "beyond")):
        problem = BASE.replace(step_exponent=exponent)
        assert problem.degree is None
        assert words in problem.regime.text
    assert BASE.replace(step_exponent=0.0).degree is None


def test_step_size_given_outright_has_an_exponent_at_this_size() -> None:
    problem = BASE.replace(step_size=1000**0.3)
    assert problem.step_exponent is None
    assert problem.degree == 2
    assert "n = 1000" in problem.regime.text


def test_from_ratios() -> None:
    problem = Problem.from_ratios(
        phi=0.5, psi=0.8, n=2000, phi_step=0.25, step_exponent=0.1, ridge=1.0
    )
    assert (problem.n, problem.d, problem.width, problem.n_step) == (2000, 1000, 1250, 4000)


def test_from_cui() -> None:
    """η a_j = η̃ for the constant law, and the ridge objective is theirs divided by n."""
    problem = Problem.from_cui(
        alpha=3.0, alpha0=1.5, width_ratio=0.5, eta_tilde=1.3, lambda_=0.2, d=1000
    )
    assert (problem.n, problem.n_step, problem.width) == (3000, 1500, 500)
    assert problem.readout == "constant"
    assert problem.step_size / math.sqrt(problem.width) == pytest.approx(1.3)
    assert problem.ridge == pytest.approx(0.2 * 500 / 3000)


def test_cui_ridge_gives_the_same_predictor() -> None:
    rng = np.random.default_rng(0)
    F, y, lam = rng.standard_normal((30, 12)), rng.standard_normal(30), 0.7
    theirs = F / np.sqrt(12)
    w = np.linalg.solve(theirs.T @ theirs + lam * np.eye(12), theirs.T @ y)
    ridge = Problem.from_cui(
        alpha=3.0, alpha0=1.0, width_ratio=1.2, eta_tilde=0.0, lambda_=lam, d=10
    ).ridge
    a = np.linalg.solve(F.T @ F / 30 + ridge * np.eye(12), F.T @ y / 30)
    assert F @ a == pytest.approx(theirs @ w)


def test_replace_switches_between_ways_to_give_the_step() -> None:
    given = BASE.replace(step_size=3.0)
    assert given.step_size == 3.0
    back = given.replace(step_exponent=0.3)
    assert back == BASE
    assert BASE.replace(n=2000).step_size == pytest.approx(2000**0.3)
    assert BASE.replace(n=2000).n_step == 2000


def test_grid_is_the_product_in_order() -> None:
    grid = BASE.vary(ridge=[0.1, 1.0], step_exponent=np.linspace(0, 0.4, 3))
    assert grid.shape == (2, 3)
    assert grid.dims == ("ridge", "step_exponent")
    assert len(grid) == 6
    problems = list(grid)
    assert [p.ridge for p in problems] == [0.1] * 3 + [1.0] * 3
    assert [p.step_exponent for p in problems[:3]] == pytest.approx([0, 0.2, 0.4])
    assert problems[0].n == BASE.n


def test_grid_over_functions_and_laws_has_labels() -> None:
    shifted = function(lambda s: np.tanh(s + 0.5), name="shifted_tanh")
    grid = BASE.vary(activation=["relu", shifted], readout=["constant", ((1.0, 1.0),)])
    assert grid.coordinates()["activation"] == ["relu", "shifted_tanh"]
    assert grid.coordinates()["readout"] == ["constant", "1:1"]
    assert BASE.vary(n=[np.int64(60), 120]).coordinates()["n"] == [60, 120]


def test_problems_are_values() -> None:
    twin = Problem(n=1000, d=500, width=750, step_exponent=0.3, ridge=0.01)
    assert twin == BASE
    assert hash(twin) == hash(BASE)
    assert BASE.replace(ridge=0.02) != BASE
    assert pickle.loads(pickle.dumps(BASE)) == BASE
    assert eval(repr(BASE), {"Problem": Problem}) == BASE
    with pytest.raises(AttributeError):
        BASE.ridge = 2.0  # type: ignore[misc]


def test_the_first_layer_starts_on_the_sphere_unless_told() -> None:
    assert BASE.initial == "sphere"
    assert "initial" not in repr(BASE)
    gaussian = BASE.replace(initial="gaussian")
    assert gaussian != BASE
    assert repr(gaussian).endswith("initial='gaussian')")
    assert eval(repr(gaussian), {"Problem": Problem}) == gaussian
    assert pickle.loads(pickle.dumps(gaussian)) == gaussian
    grid = BASE.vary(initial=["sphere", "gaussian"], ridge=[0.1, 1.0])
    assert [p.initial for p in grid] == ["sphere"] * 2 + ["gaussian"] * 2
    assert grid.coordinates()["initial"] == ["sphere", "gaussian"]


def test_whole_numbers_may_come_as_floats() -> None:
    assert BASE.replace(n=1e6).n == 10**6
    with pytest.raises(InvalidProblem, match="whole number"):
        BASE.replace(n=10.5)
