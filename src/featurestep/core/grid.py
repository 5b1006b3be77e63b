"""Grids: all combinations of the values of some fields, the others as in one base problem."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..conventions import RATIOS
from ..functions.nonlinearity import Nonlinearity
from ..functions.readout import Law
from .checks import listed
from .errors import InvalidProblem

if TYPE_CHECKING:
    from .problem import Problem


class Grid:
    """All combinations of the values of some fields, the others as in one base problem.

    axes
        The values of each varied field, in order. A ratio (`phi`, `psi`, `phi_step`) may be varied
        like a field.
    fixed
        Ratios that have the same value at every point, given as a single number.
    """

    fixed: Mapping[str, Any] = {}

    def __init__(self, base: Problem, axes: Mapping[str, Any], known: tuple[str, ...]) -> None:
        self.fixed = {
            name: value for name, value in axes.items() if name in RATIOS and np.ndim(value) == 0
        }
        varied = {name: values for name, values in axes.items() if name not in self.fixed}
        if "step_size" in varied and ("step_exponent" in varied or "step_scale" in varied):
            raise InvalidProblem("vary", "takes step_size or step_exponent, not both", list(axes))
        self.axes: dict[str, tuple[Any, ...]] = {}
        for name, values in varied.items():
            if name not in known and name not in RATIOS:
                raise unknown_field(name, known)
            self.axes[name] = _axis(name, values)
        anchor = {"n": self.axes["n"][0]} if "phi" in self.fixed and "n" in self.axes else {}
        self.base = base.replace(**self.fixed, **anchor) if self.fixed else base

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values along each axis."""
        return tuple(len(values) for values in self.axes.values())

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the varied fields, in order."""
        return tuple(self.axes)

    @property
    def varied(self) -> tuple[str, ...]:
        """Fields that differ between points, including sizes set by a ratio that varies."""
        found = set(self.axes)
        if "phi" in found or ("phi" in self.fixed and found & {"n", "d"}):
            found.add("d" if "n" in found else "n")
        for ratio, size in (("psi", "width"), ("phi_step", "n_step")):
            if ratio in found or (ratio in self.fixed and "d" in found):
                found.add(size)
        return tuple(sorted(found))

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __iter__(self) -> Iterator[Problem]:
        made: dict[tuple[int, ...], Problem] = {}  # points that differ in their ridge alone
        others = [i for i, name in enumerate(self.axes) if name != "ridge"]
        values = list(self.axes.values())
        for place in itertools.product(*(range(size) for size in self.shape)):
            point = {name: values[i][place[i]] for i, name in enumerate(self.axes)}
            key = tuple(place[i] for i in others)
            if "ridge" in point and key in made:
                yield made[key].replace(ridge=point["ridge"])
                continue
            problem = self.base.replace(**self.fixed, **point)
            if "ridge" in point:
                made[key] = problem
            yield problem

    def points(self) -> Iterator[dict[str, Any]]:
        """Coordinates of each point, in order."""
        coordinates = self.coordinates()
        for values in itertools.product(*coordinates.values()):
            yield dict(zip(coordinates, values, strict=True))

    def coordinates(self) -> dict[str, list[Any]]:
        """The values of each axis as coordinates, with functions and laws as text."""
        return {name: [label(v) for v in values] for name, values in self.axes.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grid) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.base, self.dims, self.shape))

    def _key(self) -> tuple[Any, ...]:
        return self.base, tuple(self.axes.items()), dict(self.fixed)

    def __repr__(self) -> str:
        sizes = [f"{name}: {len(values)}" for name, values in self.axes.items()]
        held = [f"{name} = {value!r}" for name, value in self.fixed.items()]
        return f"Grid({', '.join([*sizes, *held])}; base={self.base!r})"


def as_grid(problem: Problem | Grid) -> Grid:
    """A grid itself, or a problem as a grid without axes, of one point."""
    return problem if isinstance(problem, Grid) else Grid(problem, {}, ())


def _axis(name: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InvalidProblem(name, "must be a list of values to vary over", values)
    return tuple(listed(name, values))


def label(value: Any) -> Any:
    """A field's value as a coordinate: numbers and text as they are, anything else as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return ", ".join(":".join(f"{each:g}" for each in np.atleast_1d(item)) for item in value)
    return value.name if isinstance(value, (Nonlinearity, Law)) else str(value)


def unknown_field(name: str, known: tuple[str, ...]) -> InvalidProblem:
    """The error for a name that is not a field."""
    names = ", ".join([*known, *RATIOS])
    return InvalidProblem(name, f"is not a field of Problem ({names})", name)
