"""The best ridge, step size, or both, by a bounded search that zooms on batches of the engine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..core.checks import one_of, readable
from ..core.display import cell, point_in_words
from ..core.errors import InvalidProblem, NotConverged
from ..core.problem import Grid, Problem
from ..core.results import GridResult, Progress, Result, over_grid, verb
from ..core.types import FloatArray
from .engine import solve
from .prediction import Prediction, answered
from .resolution import Effort

SEARCHABLE = ("ridge", "step_size")
MEASURES = ("test_error", "train_loss", "train_mse")
_COARSE = {1: 65, 2: 25}
_FINE = {1: 17, 2: 9}
_PRECISION = 1e-6  # of the logarithm of the location
_ROUGHLY = 0.1  # half-width of the search, in logarithms, above which fewer groups will do
_ROUGH = Effort(groups=0.6, nodes=0.8)


@dataclass(frozen=True, eq=False, repr=False)
class Optimum(Result):
    """The best point found, and whether it lies on the edge of where the search may go.

    `problem` is the one at the optimum, `prediction` has all about it, and `location` what was
    searched: `ridge`, `step_size` or both.
    """

    MEANINGS: ClassVar[Mapping[str, str]] = {
        "ridge": "ridge λ: the best one, where it was searched",
        "step_size": "step size η: the best one, where it was searched",
        **{name: f"there: {text}" for name, text in Prediction.MEANINGS.items()},
        "evaluations": "problems that the search solved",
    }
    COLUMNS: ClassVar[tuple[str, ...]] = ("ridge", "step_size", *MEASURES)

    problem: Problem
    value: float
    location: dict[str, float]
    at_boundary: tuple[str, ...]
    prediction: Prediction
    evaluations: int
    minimise: str

    @property
    def numbers(self) -> dict[str, Any]:
        """What was found, and the prediction there."""
        there = {"ridge": self.problem.ridge, "step_size": self.problem.step_size}
        return {**there, **self.prediction.numbers, "evaluations": self.evaluations}

    def __getattr__(self, name: str) -> Any:
        if name in self.MEANINGS:
            return self.numbers[name]
        raise AttributeError(name)

    @property
    def notes(self) -> tuple[str, ...]:
        """Bounds that the optimum lies on, then how far to trust the prediction there."""
        return (*self.at_boundary, *self.prediction.notes)

    def as_dict(self) -> dict[str, Any]:
        """The numbers and notes, ready for JSON."""
        asked = {"minimise": self.minimise, "value": self.value, "location": dict(self.location)}
        return {**asked, "at_boundary": list(self.at_boundary), **super().as_dict()}

    def heading(self) -> list[str]:
        """What is smallest where, then the problem there."""
        found = f"smallest {self.minimise.replace('_', ' ')}: {cell(self.value)}"
        return [f"{found}, at {point_in_words(self.location)}", *super().heading()]


@verb
def optimum(
    problem: Problem | Grid,
    *,
    over: Sequence[str] = ("ridge",),
    minimise: str = "test_error",
    bounds: Mapping[str, tuple[float, float]] | None = None,
    progress: Progress | None = None,
) -> Optimum | GridResult:
    """Minimise an error over the ridge, the step size, or both, at a problem or along a grid.

    A coarse logarithmic grid finds the basin, then finer and finer grids around its best point.
    Default bounds: ridge from 1e-6 to 100, step size from 0.01 to 4√width.
    """
    one_of("minimise", minimise, MEASURES)
    names = _checked_names(over)
    if isinstance(problem, Grid):
        _checked_bounds(problem.base, names, bounds or {})
        for name in names:
            if name in problem.varied or (name == "step_size" and "step_exponent" in problem.axes):
                raise InvalidProblem("over", "must not name what the grid varies", name)
        one = partial(optimum, over=names, minimise=minimise, bounds=bounds)
        return over_grid(Optimum, problem, one, progress)
    low, high = _checked_bounds(problem, names, bounds or {})
    search = _Search(problem, names, minimise)
    size = len(names)
    centre, spread = 0.5 * (low + high), 0.5 * (high - low)
    count = _COARSE[size]
    while True:
        axes = [
            np.linspace(max(a, c - s), min(b, c + s), count)
            for a, b, c, s in zip(low, high, centre, spread, strict=True)
        ]
        centre = search.best_of(axes, rough=bool(np.all(spread > _ROUGHLY)))
        if np.all(spread < _PRECISION):
            break
        steps = np.array([axis[1] - axis[0] for axis in axes])
        spread = np.minimum(spread / 2, 1.5 * steps)
        count = _FINE[size]
    return search.result(centre, low, high)


class _Search:
    """Evaluates grids of logarithms and remembers the best point."""

    def __init__(self, problem: Problem, names: tuple[str, ...], minimise: str) -> None:
        self.problem = problem
        self.names = names
        self.minimise = minimise
        self.evaluations = 0
        self.rough = False
        self.best = math.inf
        self.where = np.zeros(len(names))

    def at(self, logs: Sequence[float] | FloatArray) -> Problem:
        values = np.exp(np.asarray(logs))
        changes = {name: float(v) for name, v in zip(self.names, values, strict=True)}
        return self.problem.replace(**changes)

    def best_of(self, axes: list[FloatArray], *, rough: bool) -> FloatArray:
        points = list(itertools.product(*axes))
        if self.rough and not rough:  # values with fewer groups are not those to beat
            self.best = math.inf
        self.rough = rough
        effort = _ROUGH if rough else None
        outcomes = solve([self.at(point) for point in points], effort=effort)
        self.evaluations += len(points)
        for point, outcome in zip(points, outcomes, strict=True):
            if isinstance(outcome, Prediction) and getattr(outcome, self.minimise) < self.best:
                self.best = getattr(outcome, self.minimise)
                self.where = np.array(point)
        if not math.isfinite(self.best):
            raise NotConverged("no point of the search could be solved")
        return self.where

    def result(self, logs: FloatArray, low: FloatArray, high: FloatArray) -> Optimum:
        problem = self.at(logs)
        notes = []
        for name, x, a, b in zip(self.names, logs, low, high, strict=True):
            for side, end in (("lower", a), ("upper", b)):
                if abs(x - end) <= 10 * _PRECISION:
                    notes.append(
                        f"widen the bounds: {name} is at its {side} bound {math.exp(end):.6g}, and "
                        "the optimum may lie beyond"
                    )
        (outcome,) = solve([problem])
        return Optimum(
            problem=problem,
            value=self.best,
            location={n: float(v) for n, v in zip(self.names, np.exp(logs), strict=True)},
            at_boundary=tuple(notes),
            prediction=answered(outcome),
            evaluations=self.evaluations,
            minimise=self.minimise,
        )


def _checked_names(over: Sequence[str]) -> tuple[str, ...]:
    rule = f"must name one or both of {', '.join(SEARCHABLE)}"
    if not isinstance(over, (str, tuple, list)):
        raise InvalidProblem("over", rule, over)
    names = (over,) if isinstance(over, str) else tuple(over)
    if not names or any(names.count(n) > 1 or n not in SEARCHABLE for n in names):
        raise InvalidProblem("over", rule, over)
    return names


def _checked_bounds(
    problem: Problem, names: tuple[str, ...], bounds: Mapping[str, tuple[float, float]]
) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the bounds."""
    default = {"ridge": (1e-6, 1e2), "step_size": (1e-2, 4.0 * math.sqrt(problem.width))}
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
    return np.log([p[0] for p in pairs]), np.log([p[1] for p in pairs])
