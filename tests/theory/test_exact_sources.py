"""Errors as derivatives of the training loss by sources (30), on both weight sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from featurestep import InvalidProblem, Prediction, Problem, predict
from featurestep.functions.quadrature import stretched_normal
from featurestep.theory.exact.dyson import covariance
from featurestep.theory.exact.fixed_point import Samples, solve
from featurestep.theory.exact.regression import fit
from featurestep.theory.exact.solve import BlockSolution
from tests.theory.roads import Literal, arrays_of, exact_answer, groups_of, isotropic_answer

BASE: dict[str, Any] = {
    "n": 1200, "d": 700, "width": 900, "n_step": 1500, "ridge": 0.03, "noise_std": 0.2,
}  # fmt: skip
THREE = ((-1.5, 0.2), (0.0, 0.35), (1.1055415967851332, 0.45))
CASES: dict[str, dict[str, Any]] = {
    "constant": {"target": "tanh", "readout": "constant", "step_size": 40.0},
    "rademacher": {
        "activation": "relu",
        "target": "H1 + H2/sqrt(2)",
        "readout": "rademacher",
        "step_size": 30.0,
    },
    "three values": {
        "activation": "gelu",
        "target": "H0/2 + H1",
        "readout": THREE,
        "step_size": 20.0,
    },
}
EXACT = {
    **CASES,
    "full": {**CASES["rademacher"], "centre": True, "residual": "full"},
    "gaussian rows": {**CASES["rademacher"], "initial": "gaussian"},
    "full, gaussian rows": {
        "target": "H0/2 + H1",
        "readout": THREE,
        "step_size": 20.0,
        "residual": "full",
        "initial": "gaussian",
    },
}


def measures(kappa: np.ndarray, chi: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "test": np.ones_like(kappa),
        "train": (1.0 + chi) ** -2,
        "band": (kappa > 0.5) * 1.0,
        "smooth": np.exp(-((kappa - 1.0) ** 2)),
    }


@pytest.mark.parametrize("case", CASES)
def test_isotropic_errors_are_derivatives_of_the_loss(case: str) -> None:
    """The adjoint pass against complex steps through (7)–(11) as they stand."""
    problem = Problem(**{**BASE, **CASES[case]})
    arrays = arrays_of(problem)
    found = isotropic_answer(problem, groups_of(problem), (arrays.kappa, arrays.weight))
    literal = Literal(arrays)
    for measure in measures(arrays.kappa, found.solution.at.state.chi[0]).values():
        expected = literal.error(measure)
        given = found.errors.by_kappa[0] @ (arrays.weight * measure)
        assert given == pytest.approx(expected, rel=1e-10)
    numbers = literal.numbers()
    assert found.fitted.train_loss[0] == pytest.approx(numbers.train_loss, rel=1e-10)
    assert found.errors.readout_squares[0].sum() == pytest.approx(numbers.norm_squared, rel=1e-10)


def loss(found: BlockSolution, *, source: np.ndarray | float = 0.0, ridge: float = 0.0) -> float:
    """The training loss with 1/(1+χ) + source for 1/(1+χ), to first order, and with more ridge.

    χ is that of the solution without source: its own change is of second order in w(1 + ς(1+χ)ω).
    """
    samples, state = found.solution.at.samples, found.solution.at.state
    weight = samples.weight * (1.0 + source * (1.0 + state.chi[0]))
    step = replace(found.step, ridge=found.step.ridge + ridge)
    at = solve(Samples(step, samples.columns, samples.kappa, weight)).at
    fields = covariance(step, at.state.xi, at.class_whole, at.average)
    across = found.fitted.across
    beside = None if across is None else across.labels
    return float(fit(at, found.labels, fields, beside).train_loss[0])


def slope(found: BlockSolution, size: float, **direction: Any) -> float:
    """The derivative of the loss by central differences, the first error term removed."""

    def difference(h: float) -> float:
        up, down = (
            loss(found, **{name: sign * h * value for name, value in direction.items()})
            for sign in (1, -1)
        )
        return (up - down) / (2 * h)

    return (4 * difference(size / 2) - difference(size)) / 3


@pytest.mark.parametrize("radial", [False, True])
@pytest.mark.parametrize("case", EXACT)
def test_exact_errors_are_derivatives_of_the_loss(case: str, radial: bool) -> None:
    """The adjoint of `sources` against differences of the loss, without and with higher degrees."""
    sizes = {"d": 70, "n_step": 300} if radial else {}
    problem = Problem(**{**BASE, **EXACT[case], **sizes})
    found = exact_answer(problem, higher=radial)
    at, errors = found.solution.at, found.errors
    weight, kappa = at.samples.weight, at.samples.kappa
    for measure in measures(kappa, at.state.chi[0]).values():
        expected = slope(found, 1e-3, source=measure)
        # A further sample costs E[(y − f)²/(1 + χ)], χ to first order in s² − 1 (152): the mean of
        # the errors on test samples and on training samples over their 1/(1 + χ)².
        seen = errors.train_by_kappa[0] * (1.0 + at.state.chi[0]) ** 2
        given = 0.5 * (errors.by_kappa[0] + seen) @ (weight * measure)
        assert given == pytest.approx(expected, rel=1e-7)
    expected = slope(found, 1e-3 * problem.ridge, ridge=1.0)
    assert errors.readout_squares[0].sum() == pytest.approx(expected, rel=1e-7)


def prediction(case: str) -> Prediction:
    if case == "isotropic":
        return predict(Problem(**{**BASE, **CASES["rademacher"]}), method="isotropic")
    if case == "offset":
        uncentred = {"activation": "relu", "readout": "rademacher", "residual": "full"}
        return predict(Problem(**{**BASE, **uncentred, "step_size": 20.0}))
    if case == "gaussian law":
        return predict(Problem(**{**BASE, **CASES["rademacher"], "readout": "gaussian"}))
    return predict(Problem(**{**BASE, **EXACT[case]}), method="exact")


PREDICTIONS = ("isotropic", "constant", "rademacher", "full, gaussian rows", "offset")


@pytest.mark.parametrize("case", [*PREDICTIONS, "gaussian law"])
def test_the_error_given_kappa_has_the_test_error_as_its_mean(case: str) -> None:
    found = prediction(case)
    kappa, weight = stretched_normal(((0.0, 0.2),), 1.0, 0.1, 9.0)
    error = found.error_given(kappa)
    assert weight @ error == pytest.approx(found.test_error, rel=1e-8)
    assert np.all(error > found.problem.noise_std**2)
    assert found.error_given(0.3).shape == ()
    assert found.error_given([[0.1, 0.2]]).shape == (1, 2)
    missed = found.target_along(kappa) - found.learned(kappa)
    assert np.all(error > missed**2)


def test_added_nodes_change_nothing_of_the_isotropic_error() -> None:
    found = prediction("isotropic")
    one, many = np.array([0.7]), np.linspace(-3.0, 3.0, 61)
    alone = found.network.error(one)
    together = np.interp(0.7, many, found.network.error(many))
    assert alone[0] == pytest.approx(together, rel=1e-10)


@pytest.mark.parametrize("case", PREDICTIONS)
@pytest.mark.parametrize("highest", [0, 1, 6])
def test_errors_by_degree_add_up(case: str, highest: int) -> None:
    found = prediction(case)
    parts = found.error_by_degree(highest)
    assert list(parts) == [*range(highest + 1), "higher", "rest"]
    assert sum(parts.values()) == pytest.approx(found.test_error, rel=1e-12)
    assert min(parts.values()) >= 0.0
    assert parts["rest"] > found.problem.noise_std**2
    more = found.error_by_degree(highest + 2)
    assert all(more[k] == pytest.approx(parts[k], rel=1e-12) for k in range(highest + 1))
    assert more["higher"] <= parts["higher"]


def test_learned_degrees_cost_less() -> None:
    """Beyond the second threshold little of degree 2 along κ is missed."""
    target = {"activation": "relu", "centre": True, "target": "H1 + H2/sqrt(2)"}
    sizes = {"n": 20000, "d": 2000, "width": 10000, "n_step": 100_000}
    base = Problem(**{**BASE, **target, **sizes, "step_size": 0.5})
    small, large = (predict(base.replace(step_size=s)).error_by_degree() for s in (0.5, 100.0))
    assert large[1] < 0.1 * small[1]
    assert large[2] < 0.1 * small[2]


@pytest.mark.parametrize("highest", [-1, 2.5, "3"])
def test_degrees_are_whole_numbers(highest: Any) -> None:
    with pytest.raises(InvalidProblem, match="highest"):
        prediction("constant").error_by_degree(highest)
