"""Grids: all combinations of some fields' values around one base problem."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InvalidProblem
from .functions.nonlinearity import Nonlinearity
from .functions.readout import Law

if TYPE_CHECKING:
    from .problem import Problem


class Grid:
    """All combinations of some fields' values around one base problem."""

    def __init__(
        self, base: Problem, axes: Mapping[str, Iterable[Any]], known: tuple[str, ...]
    ) -> None:
        if not axes:
            raise InvalidProblem("vary", "needs at least one field", "none")
        if "step_size" in axes and ("step_exponent" in axes or "step_scale" in axes):
            raise InvalidProblem("vary", "takes step_size or step_exponent, not both", list(axes))
        self.base = base
        self.axes: dict[str, tuple[Any, ...]] = {}
        for name, values in axes.items():
            if name not in known:
                raise unknown_field(name, known)
            self.axes[name] = _axis(name, values)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values along each axis."""
        return tuple(len(values) for values in self.axes.values())

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the varied fields, in order."""
        return tuple(self.axes)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __iter__(self) -> Iterator[Problem]:
        names = list(self.axes)
        for combination in itertools.product(*self.axes.values()):
            yield self.base.replace(**dict(zip(names, combination, strict=True)))

    def coordinates(self) -> dict[str, list[Any]]:
        """Axis values as labels: numbers stay numbers, functions and laws become text."""
        return {name: [_label(v) for v in values] for name, values in self.axes.items()}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {len(values)}" for name, values in self.axes.items())
        return f"Grid({sizes}; base={self.base!r})"


def _axis(name: str, values: Any) -> tuple[Any, ...]:
    rule = "must be a list of values to vary over"
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidProblem(name, rule, values)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InvalidProblem(name, rule, values)
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if not listed:
        raise InvalidProblem(name, "must have at least one value to vary over", values)
    return tuple(listed)


def _label(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str)):
        return value
    return value.name if isinstance(value, (Nonlinearity, Law)) else str(value)


def unknown_field(name: str, known: tuple[str, ...]) -> InvalidProblem:
    """The refusal of a name that is not a field."""
    return InvalidProblem(name, f"is not a field of Problem ({', '.join(known)})", name)
