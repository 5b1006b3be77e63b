"""The axes of the errors' and the spectrum's panels; the server has them without the engine.

The spectrum's axes stay where they are while the step grows. That of the singular value is linear
over the bulk and logarithmic beyond. Where it bends, where it ends and how high the density may be
come from the untrained network's bulk and from the features' mean at the largest step: so none of
them depends on the step exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core.axes import read_axis
from ..core.problem import Grid, Problem
from ..core.results import LOSS, departing
from ..core.types import FloatArray
from .state import PageState

FIELDS = {"exponent": "step_exponent", "samples": "n", "width": "width", "ridge": "ridge"}
POINTS = {"exponent": 31, "samples": 33, "width": 33, "ridge": 31}  # of a curve, by its axis
_SLOW_POINTS = 13  # where a point takes longer
_SLOWEST_POINTS = 7  # and with a continuous readout law
_DRAFT_POINTS, _SLOW_DRAFT_POINTS, _SLOWEST_DRAFT_POINTS = 9, 5, 3  # points of its draft
_PEAK_RATIOS = (0.8, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.25)  # of n over N, or N over n
_DRAFT_PEAK_RATIOS = (0.9, 1.0, 1.1)
_SIZE_FACTOR = 10  # of sizes, either way


def errors(state: PageState) -> tuple[str, str]:
    """The two numbers that the errors' panel draws, by their names in a prediction.

    `train_loss` of ridge regression is what it minimises; with another loss or an intercept the
    training error has the test error's unit, and the loss need not.
    """
    is_ridge = state.loss == "square" and not state.intercept
    return "test_error", "train_loss" if is_ridge else "train_error"


def base(state: PageState) -> Problem:
    """The problem whose one field the errors' axis varies.

    Away from the exponent the step keeps its size and its samples, as in a learning curve.
    """
    problem = state.problem
    if state.over == "exponent":
        scale = state.step_scale if state.step == "exponent" else 1.0
        return problem.replace(step_exponent=0.0, step_scale=scale)
    return problem.replace(step_size=problem.step_size, n_step=problem.n_step)


def exponents(state: PageState) -> tuple[float, float]:
    """The range of α on the errors' axis: 0 to 1/2, and on in tenths to where the step lies."""
    at = state.exponent
    if at is None:
        return 0.0, 0.5
    low, high = math.floor(10.0 * at + 1e-6) / 10.0, math.ceil(10.0 * at - 1e-6) / 10.0
    return min(0.0, low), max(0.5, high)


def axis_text(
    state: PageState, count: int | None = None, peak: Sequence[float] = _PEAK_RATIOS
) -> str:
    """The varied field and its values, as the command line's --over takes them.

    Over sizes there are points around the peak of double descent, where n meets N.
    """
    if count is None:
        count = _by_speed(state, POINTS[state.over], _SLOW_POINTS, _SLOWEST_POINTS)
    if state.over == "exponent":
        low, high = exponents(state)
        return f"step_exponent={low:g}:{high:g}:{1 + round((count - 1) * (high - low) / 0.5)}"
    if state.over == "ridge":
        return f"ridge=log:1e-06:1000:{count}"
    problem = state.problem
    unit, other = _unit(state, problem), problem.width if state.over == "samples" else problem.n
    low, high = max(1, round(unit / _SIZE_FACTOR)), round(unit * _SIZE_FACTOR)
    even = np.geomspace(low, high, count)
    near = [other * factor for factor in peak if low < other * factor < high]
    sizes = sorted({round(value) for value in (*even, *near)})
    return f"{FIELDS[state.over]}={','.join(map(str, sizes))}"


def _by_speed(state: PageState, plain: int, slow: int, slowest: int) -> int:
    """A number of points, by how long one takes."""
    if departing(state.problem).keys() <= LOSS:
        return plain
    return slow if state.readout in ("constant", "rademacher") else slowest


def _unit(state: PageState, problem: Problem) -> int:
    """What sizes are counted in on the axis."""
    return {"samples": problem.d, "width": problem.n}.get(state.over, 1)


def grid(state: PageState, count: int | None = None, *, draft: bool = False) -> Grid:
    """The problems along the errors' axis: those of the curve or its draft, or `count` of them."""
    if draft:
        count = _by_speed(state, _DRAFT_POINTS, _SLOW_DRAFT_POINTS, _SLOWEST_DRAFT_POINTS)
        text = axis_text(state, count, _DRAFT_PEAK_RATIOS)
    else:
        text = axis_text(state, count, _PEAK_RATIOS if count is None else ())
    name, values = read_axis("axis", text)
    return base(state).vary(**{name: values})


def axis(state: PageState, problems: Grid) -> FloatArray:
    """The grid's values as the axis shows them."""
    (values,) = problems.coordinates().values()
    return np.asarray(values, dtype=np.float64) / _unit(state, problems.base)


def here(state: PageState) -> float | None:
    """Where the current point lies on the axis; nowhere for the exponent of step 0."""
    if state.over == "exponent":
        return state.exponent
    problem = state.problem
    return float(getattr(problem, FIELDS[state.over]) / _unit(state, problem))


_BULK_SHARE = 0.66  # of the axis, up to the bend
_BEND_OVER_EDGE = 1.3  # of the untrained bulk, which widens as it is trained
_MAX_OVER_MEAN_DENSITY = 3.2  # mean from 0 to the edge, in a bulk of usual shape
_POLE_FACTOR = 2.5  # times that: what is higher is not shown whole
_STEPS = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)


def nice(value: float) -> float:
    """The next round number outwards: axes that stay while a curve moves are easy to read."""
    if value <= 0.0:
        return 0.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(step for step in _STEPS if step * scale >= 0.999999 * value) * scale


@dataclass(frozen=True)
class SpectrumAxes:
    """Where a singular value is drawn, from 0 to 1, and the largest density."""

    bend: float
    right: float
    top: float

    @property
    def is_bent(self) -> bool:
        """Whether anything lies beyond the linear part."""
        return self.right > self.bend

    def place(self, s: Iterable[float]) -> list[float]:
        """Positions of singular values on the axis."""
        values = np.asarray(list(s), dtype=np.float64)
        if not self.is_bent:
            return [float(x) for x in values / self.bend]
        beyond = np.log(np.maximum(values, self.bend) / self.bend) / math.log(
            self.right / self.bend
        )
        linear = _BULK_SHARE * np.minimum(values, self.bend) / self.bend
        return [float(x) for x in linear + (1.0 - _BULK_SHARE) * beyond]

    def as_dict(self) -> dict[str, float]:
        """What a script needs to put other values on this axis."""
        return {"bend": self.bend, "right": self.right, "share": _BULK_SHARE}

    def ticks(self) -> list[float]:
        """Round numbers: even steps over the bulk, then 1, 2, 5, 10, … beyond."""
        step = next(s for s in _rounds() if self.bend / s <= 6.0)
        inner = [k * step for k in range(1 + math.floor(self.bend / step + 1e-9))]
        outer = [x for x in _rounds() if 1.3 * self.bend < x <= self.right]
        return inner + outer[:: -(-len(outer) // 4) if outer else 1]

    def reaching(self, spikes: Sequence[float], density: Sequence[float]) -> SpectrumAxes:
        """The same with room for all spikes and for the density, if that has no pole at 0."""
        right = max([self.right, *(nice(1.1 * s) for s in spikes if s > self.right)])
        highest = max(density, default=0.0)
        top = nice(1.1 * highest) if highest < _POLE_FACTOR * self.top else self.top
        return replace(self, right=right, top=max(self.top, top))


def _rounds() -> list[float]:
    return [m * 10.0**k for k in range(-3, 8) for m in (1, 2, 5)]


def spectrum_axes(state: PageState) -> SpectrumAxes:
    """The axes of every step exponent up to 1/2, and of larger steps as needed."""
    from ..theory.limits import largest_mean, untrained_edge  # the engine, for workers only

    problem = state.problem
    edge = untrained_edge(problem)
    width = min(1.0, problem.n / problem.width) / edge
    bend, top = nice(_BEND_OVER_EDGE * edge), nice(1.1 * _MAX_OVER_MEAN_DENSITY * width)
    if problem.step_size == 0.0:
        return SpectrumAxes(bend, bend, top)
    scale = state.step_scale if state.step == "exponent" else 1.0
    largest = problem.replace(step_size=max(scale * problem.n**0.5, problem.step_size))
    furthest = math.hypot(largest_mean(largest), edge)
    return SpectrumAxes(bend, max(nice(1.2 * furthest), bend), top)
