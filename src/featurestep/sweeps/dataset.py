"""Results as an xarray.Dataset: the grid's dimensions, and one variable for each quantity."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .plan import Plan
from .store import Row, Store
from .table import MISSING, label, quantities_of
from .tasks import Task

if TYPE_CHECKING:
    import xarray

Array = npt.NDArray[Any]


def make_dataset(plan: Plan, store: Store) -> xarray.Dataset:
    """Everything that is stored of a sweep; NaN where a status says why there is no number."""
    import xarray

    arrays: dict[str, Any] = {}
    coordinates = _coordinates(plan)
    for index, task in enumerate(plan.sweep.tasks):
        columns = _columns(plan, index, store)
        axes = _Axes(plan, task)
        coordinates.update(axes.coordinates)
        for name, column in columns.items():
            meaning = task.meanings.get(name)
            attributes = {"long_name": meaning} if meaning else {}
            arrays[f"{task.name}_{name}"] = (axes.dims, axes.shaped(column), attributes)
    return xarray.Dataset(arrays, coordinates, attrs=_attributes(plan))


class _Axes:
    """Dimensions of one task's variables: variant, the grid's, seed."""

    def __init__(self, plan: Plan, task: Task) -> None:
        grid = tuple(dimension.name for dimension in plan.sweep.dimensions)
        variants = list(dict.fromkeys(part.variant for part in task.parts))
        seeds = list(dict.fromkeys(part.seed for part in task.parts))
        self._shape = (*plan.sweep.shape, len(variants), len(seeds))
        self._plain = variants == [None] and seeds == [None]
        self._grid = len(grid)
        self.dims = grid if self._plain else ("variant", *grid, "seed")
        self.coordinates = {} if self._plain else {"variant": variants, "seed": seeds}

    def shaped(self, column: Array) -> Array:
        """A column in the order of the plan as an array of the dimensions."""
        if self._plain:
            return column.reshape(self._shape[: self._grid])
        return np.moveaxis(column.reshape(self._shape), self._grid, 0)


def _columns(plan: Plan, index: int, store: Store) -> dict[str, Array]:
    units = plan.units_of(index)
    status = np.full(len(units), MISSING, dtype=object)
    cells: dict[str, list[Any]] = {}
    for row in store.fetch([unit.key for unit in units]):
        status[row.place] = _status(row)
        for name, value in quantities_of(row).items():
            if name not in cells:
                cells[name] = [None] * len(units)
            cells[name][row.place] = value
    return {**{name: _column(values) for name, values in cells.items()}, "status": status}


def _status(row: Row) -> str:
    return row.status if row.status == "ok" else f"{row.status}: {row.error}"


def _column(values: list[Any]) -> Array:
    """Numbers with NaN for what is missing, or text with nothing."""
    if str in set(map(type, values)):
        words = np.empty(len(values), dtype=object)
        words[:] = ["" if value is None else str(value) for value in values]
        return words
    return np.array(values, dtype=np.float64)  # None becomes NaN


def _coordinates(plan: Plan) -> dict[str, Any]:
    coordinates: dict[str, Any] = {}
    for dimension in plan.sweep.dimensions:
        for name, values in dimension.fields.items():
            coordinates[name] = (dimension.name, [label(value) for value in values])
        if dimension.name not in dimension.fields:
            coordinates[dimension.name] = list(range(len(dimension)))
    return coordinates


def _attributes(plan: Plan) -> dict[str, Any]:
    base = {name: label(value) for name, value in plan.sweep.problem.items()}
    return {
        "sweep": plan.sweep.name,
        "problem": json.dumps(base, ensure_ascii=False),
        "numerics": json.dumps(plan.numerics),
    }
