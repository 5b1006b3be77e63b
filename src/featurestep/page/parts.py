"""The panels' numbers, from the engine, as plain data: what a worker computes for a state."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..axes import read_axis
from ..errors import InvalidProblem
from ..functions.nonlinearity import normalised_hermite
from ..functions.quadrature import gauss_hermite
from ..problem import Grid, Problem
from ..regime import interval
from ..results import status_of
from ..theory import Limit, Prediction, limit
from ..theory.baselines import beside, kernel_error, tuned_ridge, untrained
from ..theory.engine import Outcome, Solution, solve
from ..theory.predict import prediction
from ..theory.resolution import Effort
from ..theory.spike_functions import exact_spikes, published_spikes
from ..types import FloatArray
from .state import State

DEGREES = 6
STAIRS, ROUGH_STAIRS = 8, 3  # regimes drawn, in full and as a draft: beyond, they are narrow
POINTS = {"exponent": 31, "samples": 33, "width": 33, "ridge": 31}  # of a curve, by its axis
_DRAFTED = 9  # points of its draft
_NEAR_PEAK = (0.8, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.25)  # of n over N, or N over n
_DRAFTED_PEAK = (0.9, 1.0, 1.1)
Data = dict[str, Any]
_CLOSE = Effort(groups=0.75, nodes=0.8, slack=1e6)  # errors of 1e-6: the digits shown are the same
_ROUGH = Effort(groups=0.4, nodes=0.6, slack=1e8, residuals=0.72, alike=True)  # of up to 0.4 %
_KAPPA = np.linspace(-3.0, 3.0, 61)
BASELINES = ("untrained", "ridge_n_tuned", "best_given_direction", "noise_floor")
_SPAN = 10  # of sizes, either way


def point(state: State, *, draft: bool = False) -> Data:
    """The current point: its errors, what it has learned, and how far to trust it."""
    problem, effort = state.problem, _CLOSE if draft else None
    found, still = (_predicted(each, effort) for each in (problem, untrained(problem)))
    simpler = beside(problem, still.test_error).as_dict()
    regime = problem.regime
    nodes, weight = gauss_hermite(120)
    learned = found.learned(np.concatenate([_KAPPA, nodes]))  # once: most of it is not per point
    return {
        **found.numbers,
        "beta_norm": found.beta_norm,
        "notes": list(found.notes),
        **{name: getattr(problem, name) for name in ("step_size", "n", "d", "width", "n_step")},
        "degree": regime.degree,
        "regime": regime.text,
        "baselines": {name: simpler[name] for name in BASELINES},
        "kappa": _KAPPA.tolist(),
        "learned": learned[: _KAPPA.size].tolist(),
        "best": found.target_along(_KAPPA).tolist(),
        "degrees": _degrees(found, nodes, weight, learned[_KAPPA.size :]),
    }


@lru_cache(maxsize=16)
def _predicted(problem: Problem, effort: Effort | None) -> Prediction:
    """Kept: what has no step is the same while the step moves."""
    (outcome,) = solve([problem], effort=effort)
    return prediction(problem, outcome)


def _degrees(
    found: Prediction, kappa: FloatArray, weight: FloatArray, learned: FloatArray
) -> list[Data]:
    """Of each degree: how much E[y|κ] has, and how much M(κ), given on nodes."""
    basis = normalised_hermite(DEGREES, kappa) * weight  # (degrees, nodes)
    target, learned = basis @ found.target_along(kappa), basis @ learned
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


def exponents(state: State) -> tuple[float, float]:
    """The range of α on the errors' axis: 0 to 1/2, and on in tenths to where the step lies."""
    at = state.exponent
    if at is None:
        return 0.0, 0.5
    low, high = math.floor(10.0 * at + 1e-6) / 10.0, math.ceil(10.0 * at - 1e-6) / 10.0
    return min(0.0, low), max(0.5, high)


def axis_text(state: State, count: int | None = None, peak: Sequence[float] = _NEAR_PEAK) -> str:
    """The varied field and its values, as the command line's --over takes them.

    Over sizes there are points around the peak of double descent, where n meets N.
    """
    count = POINTS[state.over] if count is None else count
    if state.over == "exponent":
        low, high = exponents(state)
        return f"step_exponent={low:g}:{high:g}:{1 + round((count - 1) * (high - low) / 0.5)}"
    if state.over == "ridge":
        return f"ridge=log:1e-06:1000:{count}"
    problem = state.problem
    name, unit, other = "n", problem.d, problem.width
    if state.over == "width":
        name, unit, other = "width", problem.n, problem.n
    low, high = max(1, round(unit / _SPAN)), round(unit * _SPAN)
    even = np.geomspace(low, high, count)
    near = [other * factor for factor in peak if low < other * factor < high]
    sizes = sorted({round(value) for value in (*even, *near)})
    return f"{name}={','.join(map(str, sizes))}"


def grid(state: State, count: int | None = None, *, draft: bool = False) -> Grid:
    """The problems along the errors' axis: those of the curve or its draft, or `count` of them."""
    if draft:
        text = axis_text(state, _DRAFTED, _DRAFTED_PEAK)
    else:
        text = axis_text(state, count, _NEAR_PEAK if count is None else ())
    name, values = read_axis("axis", text)
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
    """Errors along the axis at finite n; away from the exponent also those of simpler predictors.

    A draft has a third of the points, and fewer groups of neurons than meet the eye.
    """
    problems = grid(state, draft=draft)
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
        still = [untrained(problem) for problem in problems]
        answer["untrained"] = _column(solve(still, effort=effort), "test_error")
    if state.over == "samples":
        answer |= _linear(list(problems))
    return answer


def _linear(problems: Sequence[Problem]) -> Data:
    """Test errors of the linear methods of a learning curve: their n are those of the curve."""
    rows: Data = {"ridge_n_tuned": [tuned_ridge(problem) for problem in problems]}
    with contextlib.suppress(InvalidProblem):  # the kernel's formula is for centred activations
        rows["kernel"] = [kernel_error(problem) for problem in problems]
    return rows


def _column(outcomes: Sequence[Outcome], name: str) -> list[float | None]:
    return [float(getattr(o, name)) if isinstance(o, Solution) else None for o in outcomes]


def stairs(state: State, *, draft: bool = False) -> list[Data]:
    """The limits n → ∞ of each regime of the step exponent, as published and with norm growth."""
    problem = state.problem.replace(step_exponent=0.25)
    found: dict[tuple[bool, tuple[int, ...]], Limit] = {}
    steps = []
    for degree in range(1, (ROUGH_STAIRS if draft else STAIRS) + 1):
        low, high = interval(degree)
        step: Data = {"degree": degree, "low": low, "high": high}
        for growth, spikes, prefix in (
            (True, exact_spikes, ""),
            (False, published_spikes, "published_"),
        ):
            powers = tuple(spikes(problem, degree))
            if (growth, powers) not in found:  # what learns nothing new has the limit before it
                found[growth, powers] = limit(problem, degree, norm_growth=growth)
            for name in ("test_error", "train_loss"):
                step[prefix + name] = getattr(found[growth, powers], name)
        steps.append(step)
    return steps
