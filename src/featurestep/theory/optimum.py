"""`optimum`: the best ridge, the best step size, both, or the best sizes of several steps.

One coordinate is searched by a grid and Brent's method, ridge and step size by finer and finer
grids, sizes of several steps by the Nelder–Mead method from the best of equal sizes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..core.checks import one_of, readable
from ..core.display import cell, point_in_words
from ..core.errors import InvalidProblem, NotConverged
from ..core.problem import Grid, Problem
from ..core.results import LOSS, GridResult, Progress, Result, has_other_loss, over_grid, verb
from ..core.types import FloatArray, optimize
from .predict import solve
from .prediction import LearnedFunction, LossPrediction, Prediction, answered, answered_loss

SEARCHABLE = ("ridge", "step_size", "step_sizes")
MEASURES = ("test_error", "train_loss", "train_mse")
LOSS_MEASURES = ("test_error", "test_loss", "train_error", "train_loss", "train_objective")
_GRID = 65  # points along one coordinate, before Brent's method
_SPACING = 0.14  # and no closer than that, in logarithms
_COARSE = 25  # points along each of two coordinates of the first grid
_FINE = 9  # and of the following ones
_PRECISION = 1e-6  # of the logarithm of the location
_AT_BOUND = 1e-5  # and what is closer to a bound is at it
_EQUAL_SIZES = 17  # points of the first search of `step_sizes`, all equal, and with shared rows
_SIMPLEX = 0.5  # its size, in logarithms
_SIMPLEX_PRECISION = 1e-4  # of logarithms of sizes, at which it ends


def _meanings(prediction: type[Result]) -> dict[str, str]:
    """Meanings of an optimum's numbers: the place, and the prediction there."""
    return {
        "ridge": "ridge λ: the best one, where it was searched",
        "step_size": "step size η: the best one, where it was searched; of several the first",
        **{name: f"there: {text}" for name, text in prediction.MEANINGS.items()},
        "evaluations": "number of problems that the search solved",
    }


@dataclass(frozen=True, eq=False, repr=False)
class Optimum(Result):
    """The best point found, and which of the search's bounds it lies at.

    `problem` is the one at the optimum, `prediction` the prediction there, and `location` the
    values of what was searched: `ridge`, `step_size` or both, or `step_sizes`.
    """

    MEANINGS: ClassVar[Mapping[str, str]] = _meanings(Prediction)
    COLUMNS: ClassVar[tuple[str, ...]] = ("ridge", "step_size", *MEASURES)

    problem: Problem
    value: float
    location: dict[str, Any]
    at_boundary: tuple[str, ...]
    prediction: Any  # a Prediction or a LossPrediction, by the loss
    evaluations: int
    minimise: str

    @property
    def numbers(self) -> dict[str, Any]:
        """The ridge and the step size at the optimum, and the prediction there."""
        there = {"ridge": self.problem.ridge, "step_size": self.problem.step_size}
        return {**there, **self.prediction.numbers, "evaluations": self.evaluations}

    def __getattr__(self, name: str) -> Any:
        if name in self.MEANINGS:
            return self.numbers[name]
        raise AttributeError(name)

    @property
    def notes(self) -> tuple[str, ...]:
        """Bounds that the optimum lies at, then the notes of the prediction there."""
        return (*self.at_boundary, *self.prediction.notes)

    def as_dict(self) -> dict[str, Any]:
        """The numbers and notes, ready for JSON."""
        asked = {"minimise": self.minimise, "value": self.value, "location": dict(self.location)}
        return {**asked, "at_boundary": list(self.at_boundary), **super().as_dict()}

    def heading(self) -> list[str]:
        """What is smallest where, then the problem there."""
        found = f"smallest {self.minimise.replace('_', ' ')}: {cell(self.value)}"
        return [f"{found}, at {point_in_words(self.location)}", *super().heading()]


@dataclass(frozen=True, eq=False, repr=False)
class LossOptimum(Optimum):
    """The same with any loss, or with an intercept."""

    MEANINGS: ClassVar[Mapping[str, str]] = _meanings(LossPrediction)
    COLUMNS: ClassVar[tuple[str, ...]] = ("ridge", "step_size", "test_error", "test_loss")


@verb(LOSS, {"steps"}, {"covariance"}, {"rows", "intercept"})
def optimum(
    problem: Problem | Grid,
    *,
    over: Sequence[str] = ("ridge",),
    minimise: str = "test_error",
    bounds: Mapping[str, tuple[float, float]] | None = None,
    progress: Progress | None = None,
) -> Optimum | GridResult:
    """Minimise an error over the ridge, the step size, or both, at a problem or along a grid.

    A coarse logarithmic grid, one call of the engine, finds the lowest region; then Brent's method,
    or for ridge and step size finer and finer grids, its minimum. `step_sizes` is the best
    schedule: the size of every step of a problem of several, alone or with the ridge, by the
    Nelder–Mead method from the best of equal sizes, as ridge and step size with rows of the step.
    Default bounds: ridge from 1e-6 to 100, from 1e-4 with another loss than the square; step sizes
    from 0.01 to 4√width.
    """
    any_loss = has_other_loss(problem)
    one_of("minimise", minimise, LOSS_MEASURES if any_loss else MEASURES)
    names = _checked_names(over)
    if isinstance(problem, Grid):
        _checked_bounds(problem.base, names, bounds or {})
        for name in names:
            if name in problem.varied or (name == "step_size" and "step_exponent" in problem.axes):
                raise InvalidProblem("over", "must not name what the grid varies", name)
        kind = LossOptimum if any_loss else Optimum
        one = partial(_search, kind=kind, names=names, minimise=minimise, bounds=bounds)
        return over_grid(kind, problem, one, progress)
    return _search(problem, LossOptimum if any_loss else Optimum, names, minimise, bounds)


def _search(
    problem: Problem,
    kind: type[Optimum],
    names: tuple[str, ...],
    minimise: str,
    bounds: Mapping[str, tuple[float, float]] | None,
) -> Optimum:
    """The optimum of one problem; of a `LossOptimum` by section 31 whatever the loss."""
    any_loss = kind is LossOptimum
    low, high = _checked_bounds(problem, names, bounds or {})
    slow = "step_sizes" in names or problem.shared_rows > 0
    values = partial(_values, problem, names, minimise, any_loss)
    if low.size == 1:
        found = _along_one(values, low, high, _EQUAL_SIZES if slow else _GRID)
    else:
        found = (_by_simplex if slow else _by_grids)(values, low, high)
    if not math.isfinite(found.value):
        raise NotConverged("no point of the search could be solved")
    (there,) = _moved(problem, names, found.place[None])
    (outcome,) = solve([there], any_loss=any_loss)
    return kind(
        problem=there,
        value=found.value,
        location={name: getattr(there, name) for name in names},
        at_boundary=_at_boundary(_coordinates(problem, names), found.place, low, high),
        prediction=answered_loss(outcome) if any_loss else answered(outcome),
        evaluations=found.evaluations,
        minimise=minimise,
    )


class _Found(NamedTuple):
    """The lowest value of a search, where it is, in logarithms, and what it took."""

    value: float
    place: FloatArray
    evaluations: int


_Values = Callable[[FloatArray], FloatArray]  # (points, coordinates) ↦ (points,)


def _along_one(values: _Values, low: FloatArray, high: FloatArray, count: int) -> _Found:
    """Search along one coordinate: a grid, then Brent's method beside its best point."""
    count = min(count, 2 + int((high - low).item() / _SPACING))
    points = np.linspace(low, high, count)
    there = values(points)
    best = int(there.argmin())
    lowest, place = float(there[best]), points[best]
    if not math.isfinite(lowest):
        return _Found(math.inf, place, count)

    def value(x: float) -> float:
        return float(values(np.array([[x]]))[0])

    if best in (0, count - 1):
        inward = _AT_BOUND if best == 0 else -_AT_BOUND
        count += 1
        if value(float(place[0]) + inward) >= lowest:
            return _Found(lowest, place, count)
    found = optimize.minimize_scalar(
        value,
        method="bounded",
        bounds=(points[max(best - 1, 0), 0], points[min(best + 1, len(points) - 1), 0]),
        options={"xatol": _PRECISION},
    )
    if found.fun < lowest:
        lowest, place = float(found.fun), np.array([found.x])
    return _Found(lowest, place, count + int(found.nfev))


def _by_grids(values: _Values, low: FloatArray, high: FloatArray) -> _Found:
    """Search along two coordinates, on finer and finer grids."""
    centre, spread, count = 0.5 * (low + high), 0.5 * (high - low), _COARSE
    best, evaluations = math.inf, 0
    while True:
        axes = [
            np.linspace(max(a, c - s), min(b, c + s), count)
            for a, b, c, s in zip(low, high, centre, spread, strict=True)
        ]
        points = np.array(list(itertools.product(*axes)))
        there = values(points)
        evaluations += len(points)
        if there.min() < best:
            best, centre = float(there.min()), points[there.argmin()]
        if not math.isfinite(best) or np.all(spread < _PRECISION):
            return _Found(best, centre, evaluations)
        steps = np.array([axis[1] - axis[0] for axis in axes])
        spread, count = np.minimum(spread / 2, 1.5 * steps), _FINE


def _by_simplex(values: _Values, low: FloatArray, high: FloatArray) -> _Found:
    """Search from the best point between the corners, where all coordinates are in proportion."""
    share = np.linspace(0.0, 1.0, _EQUAL_SIZES)[:, None]
    points = np.clip(low + share * (high - low), low, high)
    there = values(points)
    start = points[there.argmin()]
    if not math.isfinite(there.min()):
        return _Found(math.inf, start, len(points))
    inward = np.where(start + _SIMPLEX <= high, _SIMPLEX, -_SIMPLEX)
    options: Any = {
        "initial_simplex": np.vstack([start, start + np.diag(inward)]),
        "xatol": _SIMPLEX_PRECISION,
        "fatol": 1e-9 * float(there.min()),
    }

    def value(place: FloatArray, *_: Any, **__: Any) -> float:
        return float(values(place[None])[0])

    found = optimize.minimize(
        value,
        start,
        method="Nelder-Mead",
        bounds=optimize.Bounds(low, high),
        options=options,
    )
    return _Found(float(found.fun), np.asarray(found.x), len(points) + int(found.nfev))


def _coordinates(problem: Problem, names: tuple[str, ...]) -> tuple[str, ...]:
    """The name of every coordinate: `step_sizes` has one for each step."""
    return tuple(
        each for name in names for each in [name] * (problem.steps if name == "step_sizes" else 1)
    )


def _moved(problem: Problem, names: tuple[str, ...], logs: FloatArray) -> list[Problem]:
    """The problem at other values of some fields, whose logarithms are given.

    logs: (points, coordinates).
    """
    found = []
    for row in np.exp(logs).tolist():
        values = iter(row)
        changes: dict[str, Any] = {
            name: tuple(itertools.islice(values, problem.steps))
            if name == "step_sizes"
            else next(values)
            for name in names
        }
        found.append(problem.replace(**changes))
    return found


def _values(
    problem: Problem, names: tuple[str, ...], minimise: str, any_loss: bool, logs: FloatArray
) -> FloatArray:
    """What is minimised, at each point; infinite where it is refused."""
    outcomes = solve(_moved(problem, names, logs), any_loss=any_loss)
    return np.array(
        [getattr(o, minimise) if isinstance(o, LearnedFunction) else math.inf for o in outcomes]
    )


def _at_boundary(
    names: tuple[str, ...], logs: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[str, ...]:
    """A note for each field that is at a bound."""
    notes = (
        f"widen the bounds: {name} is at its {side} bound {math.exp(end):.6g}, and the optimum may "
        "lie beyond"
        for name, x, *ends in zip(names, logs, low, high, strict=True)
        for side, end in zip(("lower", "upper"), ends, strict=True)
        if abs(x - end) <= _AT_BOUND
    )
    return tuple(dict.fromkeys(notes))


def _checked_names(over: Sequence[str]) -> tuple[str, ...]:
    rule = "must name ridge, step_size or both, or step_sizes, alone or with ridge"
    if not isinstance(over, (str, tuple, list)):
        raise InvalidProblem("over", rule, over)
    names = (over,) if isinstance(over, str) else tuple(over)
    wrong = any(names.count(n) > 1 or n not in SEARCHABLE for n in names)
    if not names or wrong or {"step_size", "step_sizes"} <= set(names):
        raise InvalidProblem("over", rule, over)
    return names


def _checked_bounds(
    problem: Problem, names: tuple[str, ...], bounds: Mapping[str, tuple[float, float]]
) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the bounds."""
    least = 1e-6 if problem.has_square_loss else 1e-4
    sizes = (1e-2, 4.0 * math.sqrt(problem.width))
    default = {"ridge": (least, 1e2), "step_size": sizes, "step_sizes": sizes}
    if not isinstance(bounds, Mapping):
        raise InvalidProblem("bounds", "must map names to (low, high)", bounds)
    for name in bounds:
        if name not in names:
            raise InvalidProblem("bounds", f"must only name what is searched ({names})", name)
    pairs = [bounds.get(name, default[name]) for name in names]
    for name, pair in zip(names, pairs, strict=True):
        rule = f"of {name} must be two numbers 0 < low < high"
        with readable("bounds", rule, pair):
            low, high = (float(v) for v in pair)
        if not (0 < low < high < math.inf):
            raise InvalidProblem("bounds", rule, pair)
    found = dict(zip(names, pairs, strict=True))
    every = np.array([found[name] for name in _coordinates(problem, names)])
    return np.log(every[:, 0]), np.log(every[:, 1])
