"""The dimensions of a sweep's grid: lists, ranges, zipped fields, and designs over a box."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidProblem
from ..problem import FIELDS
from ..types import FloatArray
from .design import design_fields
from .reading import known_keys, listed, one_of, table
from .scales import MAX_POINTS, SCALES, count_of, finite, placed, positive_ends

RATIOS = ("phi", "psi", "phi_step")
NAMES = (*FIELDS, *RATIOS)  # what a problem's table and a grid may set
DESIGN = "sample"  # the dimension of a design
RESERVED = (DESIGN, "seed", "variant")
_RANGE = ("start", "stop", "count", "step", "scale")


@dataclass(frozen=True)
class Dimension:
    """One dimension of the grid: the fields that vary along it, value by value."""

    name: str
    fields: Mapping[str, tuple[Any, ...]]
    path: str  # of its key, for refusals

    def __len__(self) -> int:
        return len(next(iter(self.fields.values())))

    def at(self, index: int) -> dict[str, Any]:
        """What the fields are at one place."""
        return {name: values[index] for name, values in self.fields.items()}

    def path_of(self, field: str) -> str:
        """The path of one of its fields."""
        return self.path if self.name == field else f"{self.path}.{field}"


def read_grid(value: Any) -> tuple[Dimension, ...]:
    """The dimensions of a `grid` table, in the order written."""
    grid = table("grid", value)
    if not grid:
        raise InvalidProblem("grid", "must not be empty", grid)
    dimensions: list[Dimension] = []
    for key, content in grid.items():
        if key == "zip":
            for name, fields in _tables("grid.zip", content).items():
                dimensions.append(_zipped(f"grid.zip.{name}", name, fields))
        elif key == "design":
            fields = design_fields("grid.design", table("grid.design", content), NAMES)
            dimensions.append(Dimension(DESIGN, fields, "grid.design.box"))
        else:
            known_keys("grid", {key: content}, (*NAMES, "zip", "design"))
            path = f"grid.{key}"
            dimensions.append(Dimension(key, {key: axis(path, key, content)}, path))
    return checked(tuple(dimensions))


def checked(dimensions: tuple[Dimension, ...]) -> tuple[Dimension, ...]:
    """Refuse a field varied twice, rivals, equal names, and grids beyond measure."""
    paths: dict[str, str] = {}
    names = [dimension.name for dimension in dimensions]
    for dimension in dimensions:
        if names.count(dimension.name) > 1:
            rule = "must not be the name of two dimensions"
            raise InvalidProblem(dimension.path, rule, dimension.name)
        for name, values in dimension.fields.items():
            where = dimension.path_of(name)
            if name in paths:
                rule = f"must not be varied twice (also in {paths[name]})"
                raise InvalidProblem(where, rule, list(values))
            paths[name] = where
    for name, rivals in _RIVALS.items():
        for rival in rivals:
            if name in paths and rival in paths:
                rule = f"must not be varied together with {paths[rival]}"
                raise InvalidProblem(paths[name], rule, f"both {name} and {rival}")
    size = math.prod(len(dimension) for dimension in dimensions)
    if size > MAX_POINTS:
        raise InvalidProblem("grid", f"must have at most {MAX_POINTS:.0e} points", size)
    return dimensions


_RIVALS = {
    "step_size": ("step_exponent", "step_scale"),
    "phi": ("d",),
    "psi": ("width",),
    "phi_step": ("n_step",),
}


def _tables(path: str, value: Any) -> dict[str, dict[str, Any]]:
    found = table(path, value)
    if not found:
        raise InvalidProblem(path, "must not be empty", found)
    return {name: table(f"{path}.{name}", content) for name, content in found.items()}


def axis(path: str, field: str, value: Any) -> tuple[Any, ...]:
    """The values of one field: a list, or the table of a range."""
    if isinstance(value, Mapping):
        points = _range(path, table(path, value))
        return tuple(dict.fromkeys(placed(field, points)))  # rounding may have made some equal
    values = listed(path, value)
    if _repeats(values):
        raise InvalidProblem(path, "must have distinct values", values)
    return tuple(values)


def _repeats(values: list[Any]) -> bool:
    try:
        return len(set(values)) < len(values)
    except TypeError:  # laws as lists of pairs
        return len(set(map(repr, values))) < len(values)


def _range(path: str, value: dict[str, Any]) -> FloatArray:
    """{start, stop, count}, on a log scale if asked, or {start, stop, step}."""
    known_keys(path, value, _RANGE)
    start, stop = (finite(f"{path}.{end}", value.get(end)) for end in ("start", "stop"))
    scale = one_of(f"{path}.scale", value.get("scale", "linear"), SCALES)
    if ("count" in value) == ("step" in value):
        raise InvalidProblem(path, "must have either count or step", value)
    if "step" in value:
        if scale == "log":
            raise InvalidProblem(f"{path}.step", "goes with a linear scale", value["step"])
        return _stepped(path, start, stop, finite(f"{path}.step", value["step"]))
    count = count_of(f"{path}.count", value["count"])
    if scale == "linear":
        return np.linspace(start, stop, count)
    positive_ends(path, start, stop)
    return np.geomspace(start, stop, count)


def _stepped(path: str, start: float, stop: float, step: float) -> FloatArray:
    if step == 0 or (stop - start) / step < 0:
        raise InvalidProblem(f"{path}.step", "must lead from start to stop", step)
    steps = (stop - start) / step
    if steps > MAX_POINTS:
        raise InvalidProblem(f"{path}.step", f"must give at most {MAX_POINTS:.0e} values", step)
    return start + step * np.arange(math.floor(steps + 1e-9) + 1, dtype=np.float64)


def _zipped(path: str, name: str, value: dict[str, Any]) -> Dimension:
    """Fields that vary together, along a dimension of their own."""
    if not name.isidentifier() or name in (*NAMES, *RESERVED):
        rule = f"must be named by a word that is no field and not {', '.join(RESERVED)}"
        raise InvalidProblem(path, rule, name)
    if not value:
        raise InvalidProblem(path, "must not be empty", value)
    known_keys(path, value, NAMES)
    fields = {field: _column(f"{path}.{field}", field, each) for field, each in value.items()}
    lengths = {field: len(values) for field, values in fields.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidProblem(path, "must have lists of equal length", lengths)
    return Dimension(name, fields, path)


def _column(path: str, field: str, value: Any) -> tuple[Any, ...]:
    """Values of a zipped field, which may repeat."""
    if isinstance(value, Mapping):
        return placed(field, _range(path, table(path, value)))
    return tuple(listed(path, value))
