"""The dimensions of a sweep's grid: lists, ranges, zipped fields, and designs over a box."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..axes import MAX_POINTS, NAMES, axis_values
from ..errors import InvalidProblem
from ..reading import known_keys, table
from .design import design_fields

DESIGN = "sample"  # the dimension of a design
RESERVED = (DESIGN, "seed", "variant")


@dataclass(frozen=True)
class Dimension:
    """One dimension of the grid: the fields that vary along it, value by value."""

    name: str
    fields: Mapping[str, tuple[Any, ...]]
    path: str  # of its key, for refusals

    def __len__(self) -> int:
        return len(next(iter(self.fields.values())))

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
            dimensions.append(Dimension(key, {key: axis_values(path, key, content)}, path))
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


def _zipped(path: str, name: str, value: dict[str, Any]) -> Dimension:
    """Fields that vary together, along a dimension of their own."""
    if not name.isidentifier() or name in (*NAMES, *RESERVED):
        rule = f"must be named by a word that is no field and not {', '.join(RESERVED)}"
        raise InvalidProblem(path, rule, name)
    if not value:
        raise InvalidProblem(path, "must not be empty", value)
    known_keys(path, value, NAMES)
    fields = {
        field: axis_values(f"{path}.{field}", field, each, distinct=False)
        for field, each in value.items()
    }
    lengths = {field: len(values) for field, values in fields.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidProblem(path, "must have lists of equal length", lengths)
    return Dimension(name, fields, path)
