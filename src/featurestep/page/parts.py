"""The panels' numbers, from the engine, as plain data: what a worker computes for a state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..cli.values import parse_axis
from ..functions.hermite import coefficients
from ..functions.quadrature import gauss_hermite
from ..functions.special import factorials
from ..problem import Grid, Problem
from ..regime import interval
from ..results import status_of
from ..theory import Limit, Prediction, baselines, limit, predict
from ..theory.engine import Outcome, Solution, solve
from ..theory.resolution import Effort
from ..theory.spike_functions import exact_spikes
from ..types import FloatArray
from .state import State

DEGREES = 6
STAIRS, ROUGH_STAIRS = 8, 4  # regimes drawn, in full and as a draft: beyond, they are narrow
POINTS = {"exponent": 31, "samples": 41, "width": 41, "ridge": 31}  # of a curve, by its axis
Data = dict[str, Any]
_ROUGH = Effort(groups=0.6, nodes=0.8)
_KAPPA = np.linspace(-3.0, 3.0, 61)
BASELINES = ("untrained", "ridge_n_tuned", "best_given_direction", "noise_floor")
_SPAN = 10  # of sizes, either way


def point(state: State) -> Data:
    """The current point: its errors, what it has learned, and how far to trust it."""
    problem = state.problem
    found = predict(problem)
    simpler = baselines(problem).as_dict()
    regime = problem.regime
    return {
        **found.numbers,
        "beta_norm": found.beta_norm,
        "notes": list(found.notes),
        "step_size": problem.step_size,
        "n": problem.n,
        "d": problem.d,
        "width": problem.width,
        "n_step": problem.n_step,
        "degree": regime.degree,
        "regime": regime.text,
        "baselines": {name: simpler[name] for name in BASELINES},
        "kappa": _KAPPA.tolist(),
        "learned": found.learned(_KAPPA).tolist(),
        "best": found.target_along(_KAPPA).tolist(),
        "degrees": _degrees(found),
    }


def _degrees(found: Prediction) -> list[Data]:
    """Of each degree: how much the target has along κ, and how much M(κ) has."""
    kappa, weight = gauss_hermite(120)
    basis = np.stack(
        [np.polynomial.hermite_e.hermeval(kappa, row) for row in np.eye(DEGREES + 1)]
    )  # (degrees, points)
    norms = np.sqrt(factorials(DEGREES + 1))
    learned = (basis * weight) @ found.learned(kappa) / norms
    target = coefficients(found.problem.sigma_star, DEGREES) * norms
    target = target * found.alignment ** np.arange(DEGREES + 1)
    return [
        {"degree": k, "target": float(target[k]), "learned": float(learned[k])}
        for k in range(1, DEGREES + 1)
    ]


def base(state: State) -> Problem:
    """The problem whose one field the errors' axis varies.

    Away from the exponent the step keeps its size and its samples, as in a learning curve.
    """
    problem = state.problem
    if state.over == "exponent":
        scale = state.step_scale if state.step == "exponent" else 1.0
        return problem.replace(step_exponent=0.0, step_scale=scale)
    return problem.replace(step_size=problem.step_size, n_step=problem.n_step)


def axis_text(state: State, count: int | None = None) -> str:
    """The varied field and its values, as the command line's --over takes them."""
    count = POINTS[state.over] if count is None else count
    if state.over == "exponent":
        return f"step_exponent=0:0.5:{count}"
    if state.over == "ridge":
        return f"ridge=log:1e-06:1000:{count}"
    problem = state.problem
    name, unit = ("n", problem.d) if state.over == "samples" else ("width", problem.n)
    low, high = max(1, round(unit / _SPAN)), round(unit * _SPAN)
    return f"{name}=log:{low}:{high}:{count}"


def grid(state: State, count: int | None = None) -> Grid:
    """The problems along the errors' axis: those of the curve, or `count` of them."""
    name, values = parse_axis(axis_text(state, count))
    return base(state).vary(**{name: values})


def axis(state: State, problems: Grid) -> FloatArray:
    """The grid's values as the axis shows them."""
    (values,) = problems.coordinates().values()
    unit = {"samples": problems.base.d, "width": problems.base.n}.get(state.over, 1)
    return np.asarray(values, dtype=np.float64) / unit


def here(state: State) -> float | None:
    """Where the current point lies on the axis; nowhere for the exponent of step 0."""
    problem = state.problem
    if state.over == "exponent":
        return state.exponent
    return {
        "samples": problem.n / problem.d,
        "width": problem.width / problem.n,
        "ridge": problem.ridge,
    }[state.over]


def curve(state: State, *, draft: bool = False) -> Data:
    """Errors along the axis at finite n; away from the exponent also without a step.

    A draft has every other point, and fewer groups of neurons than meet the eye.
    """
    problems = grid(state, (POINTS[state.over] + 1) // 2 if draft else None)
    effort = _ROUGH if draft else None
    outcomes = solve(list(problems), effort=effort)
    refused = [outcome for outcome in outcomes if not isinstance(outcome, Solution)]
    answer: Data = {
        "x": axis(state, problems).tolist(),
        "test_error": _column(outcomes, "test_error"),
        "train_loss": _column(outcomes, "train_loss"),
        "refused": status_of(refused[0]) if refused else "",
    }
    if state.over != "exponent" and problems.base.step_size > 0:
        still = [problem.replace(step_size=0.0, residual="labels") for problem in problems]
        answer["untrained"] = _column(solve(still, effort=effort), "test_error")
    return answer


def _column(outcomes: Sequence[Outcome], name: str) -> list[float | None]:
    return [float(getattr(o, name)) if isinstance(o, Solution) else None for o in outcomes]


def stairs(state: State, *, draft: bool = False) -> list[Data]:
    """The limit n → ∞ of each regime of the step exponent, with the growth of norms."""
    problem = state.problem.replace(step_exponent=0.25)
    found: dict[tuple[int, ...], Limit] = {}
    steps = []
    for degree in range(1, (ROUGH_STAIRS if draft else STAIRS) + 1):
        powers = tuple(exact_spikes(problem, degree))
        if powers not in found:  # a regime that learns nothing new has the limit before it
            found[powers] = limit(problem, degree, norm_growth=True)
        low, high = interval(degree)
        steps.append(
            {
                "degree": degree,
                "low": low,
                "high": high,
                "powers": list(powers),
                "test_error": found[powers].test_error,
                "train_loss": found[powers].train_loss,
            }
        )
    return steps
