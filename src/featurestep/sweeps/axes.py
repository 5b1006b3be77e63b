"""The dimensions of a sweep's grid: lists, ranges, zipped fields, and designs over a box."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.axes import (
    MAX_POINTS,
    NAMES,
    SCALES,
    axis_values,
    check_log_ends,
    field_values,
    finite,
    point_count,
)
from ..core.checks import filled_table, known_keys, listed, one_of, table
from ..core.errors import InvalidProblem
from ..core.types import FloatArray

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
    dimensions: list[Dimension] = []
    for key, content in filled_table("grid", value).items():
        if key == "zip":
            for name, fields in filled_table("grid.zip", content).items():
                dimensions.append(_zipped(f"grid.zip.{name}", name, fields))
        elif key == "design":
            dimensions.append(_design("grid.design", table("grid.design", content)))
        else:
            known_keys("grid", {key: content}, (*NAMES, "zip", "design"))
            path = f"grid.{key}"
            dimensions.append(Dimension(key, {key: axis_values(path, key, content)}, path))
    return _checked(tuple(dimensions))


def _checked(dimensions: tuple[Dimension, ...]) -> tuple[Dimension, ...]:
    """Refuse a field varied twice, rivals, and grids beyond measure."""
    paths: dict[str, str] = {}
    for dimension in dimensions:
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


def _zipped(path: str, name: str, value: Any) -> Dimension:
    """Fields that vary together, along a dimension of their own."""
    if not name.isidentifier() or name in (*NAMES, *RESERVED):
        rule = f"must be named by a word that is no field and not {', '.join(RESERVED)}"
        raise InvalidProblem(path, rule, name)
    lists = filled_table(path, value)
    known_keys(path, lists, NAMES)
    fields = {
        field: axis_values(f"{path}.{field}", field, each, distinct=False)
        for field, each in lists.items()
    }
    lengths = {field: len(values) for field, values in fields.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidProblem(path, "must have lists of equal length", lengths)
    return Dimension(name, fields, path)


def _design(path: str, value: dict[str, Any]) -> Dimension:
    """Random or Sobol points of a box; a longer design begins with the shorter one."""
    known_keys(path, value, ("kind", "points", "seed", "box"))
    kind = one_of(f"{path}.kind", value.get("kind"), ("sobol", "random"))
    count = point_count(f"{path}.points", value.get("points"))
    seed = value.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InvalidProblem(f"{path}.seed", "must be a whole number >= 0", seed)
    box = filled_table(f"{path}.box", value.get("box"))
    known_keys(f"{path}.box", box, NAMES)
    unit = _sobol(len(box), count, seed) if kind == "sobol" else _random(len(box), count, seed)
    fields = {
        field: field_values(field, _along(f"{path}.box.{field}", side, column))
        for (field, side), column in zip(box.items(), unit.T, strict=True)
    }
    return Dimension(DESIGN, fields, f"{path}.box")


def _along(path: str, value: Any, unit: FloatArray) -> FloatArray:
    """Numbers in [0, 1] on one side of a design's box: [low, high], or a table with a scale."""
    if not isinstance(value, Mapping):
        ends = listed(path, value)
        if len(ends) != 2:
            raise InvalidProblem(path, "must be [low, high]", ends)
        value = {"low": ends[0], "high": ends[1]}
    side = table(path, value)
    known_keys(path, side, ("low", "high", "scale"))
    low, high = (finite(f"{path}.{end}", side.get(end)) for end in ("low", "high"))
    if not low < high:
        raise InvalidProblem(path, "must have low < high", [low, high])
    if one_of(f"{path}.scale", side.get("scale", "linear"), SCALES) == "linear":
        return low + (high - low) * unit
    check_log_ends(path, low, high)
    return np.asarray(low * (high / low) ** unit)


def _sobol(sides: int, count: int, seed: int) -> FloatArray:
    from scipy.stats import qmc

    # Whole powers of two keep the sequence balanced, and a longer design extends a shorter one.
    power = max(0, math.ceil(math.log2(count)))
    sequence = qmc.Sobol(sides, scramble=True, seed=seed)
    return np.asarray(sequence.random_base2(power)[:count], dtype=np.float64)


def _random(sides: int, count: int, seed: int) -> FloatArray:
    return np.random.default_rng(seed).random((count, sides))
