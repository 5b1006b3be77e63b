"""The axis of the errors' panel and the problems along it: the server has it without the engine."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.axes import read_axis
from ..core.extensions import LOSS, departing
from ..core.problem import Grid, Problem
from ..core.types import FloatArray
from .state import State

FIELDS = {"exponent": "step_exponent", "samples": "n", "width": "width", "ridge": "ridge"}
POINTS = {"exponent": 31, "samples": 33, "width": 33, "ridge": 31}  # of a curve, by its axis
_SLOW, _SLOWEST = 13, 7  # where a point takes longer, and with a continuous readout law
_DRAFTED, _DRAFTED_SLOW, _DRAFTED_SLOWEST = 9, 5, 3  # points of its draft
_NEAR_PEAK = (0.8, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.25)  # of n over N, or N over n
_DRAFTED_PEAK = (0.9, 1.0, 1.1)
_SPAN = 10  # of sizes, either way


def errors(state: State) -> tuple[str, str]:
    """The two numbers that the errors' panel draws, by their names in a prediction.

    `train_loss` of ridge regression is what it minimises; with another loss or an intercept the
    training error has the test error's unit, and the loss need not.
    """
    is_ridge = state.loss == "square" and not state.intercept
    return "test_error", "train_loss" if is_ridge else "train_error"


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
    count = _by_speed(state, POINTS[state.over], _SLOW, _SLOWEST) if count is None else count
    if state.over == "exponent":
        low, high = exponents(state)
        return f"step_exponent={low:g}:{high:g}:{1 + round((count - 1) * (high - low) / 0.5)}"
    if state.over == "ridge":
        return f"ridge=log:1e-06:1000:{count}"
    problem = state.problem
    unit, other = _unit(state, problem), problem.width if state.over == "samples" else problem.n
    low, high = max(1, round(unit / _SPAN)), round(unit * _SPAN)
    even = np.geomspace(low, high, count)
    near = [other * factor for factor in peak if low < other * factor < high]
    sizes = sorted({round(value) for value in (*even, *near)})
    return f"{FIELDS[state.over]}={','.join(map(str, sizes))}"


def _by_speed(state: State, plain: int, slow: int, slowest: int) -> int:
    """A number of points, by how long one takes."""
    if departing(state.problem).keys() <= LOSS:
        return plain
    return slow if state.readout in ("constant", "rademacher") else slowest


def _unit(state: State, problem: Problem) -> int:
    """What sizes are counted in on the axis."""
    return {"samples": problem.d, "width": problem.n}.get(state.over, 1)


def grid(state: State, count: int | None = None, *, draft: bool = False) -> Grid:
    """The problems along the errors' axis: those of the curve or its draft, or `count` of them."""
    if draft:
        count = _by_speed(state, _DRAFTED, _DRAFTED_SLOW, _DRAFTED_SLOWEST)
        text = axis_text(state, count, _DRAFTED_PEAK)
    else:
        text = axis_text(state, count, _NEAR_PEAK if count is None else ())
    name, values = read_axis("axis", text)
    return base(state).vary(**{name: values})


def axis(state: State, problems: Grid) -> FloatArray:
    """The grid's values as the axis shows them."""
    (values,) = problems.coordinates().values()
    return np.asarray(values, dtype=np.float64) / _unit(state, problems.base)


def here(state: State) -> float | None:
    """Where the current point lies on the axis; nowhere for the exponent of step 0."""
    if state.over == "exponent":
        return state.exponent
    problem = state.problem
    return float(getattr(problem, FIELDS[state.over]) / _unit(state, problem))
