"""Results of a plan: a table with one row for each unit, or an xarray.Dataset over the grid."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .plan import Plan, Unit
from .store import Row, Store
from .tasks import Task

if TYPE_CHECKING:
    import xarray

Array = npt.NDArray[Any]
Columns = dict[str, list[Any]]
MISSING = "missing"


def make_table(plan: Plan, store: Store, *, provenance: bool = False) -> Columns:
    """Columns of equal length: task, fields, status, quantities; None where there is nothing.

    `provenance` adds when and how long each unit was computed, how often, where and by what;
    numerics that are not today's are always told.
    """
    rows = list(_rows(plan, store, provenance))
    names = dict.fromkeys(name for row in rows for name in row)
    for name in ("variant", "seed"):
        if all(row[name] is None for row in rows):
            del names[name]
    return {name: [row.get(name) for row in rows] for name in names}


def _rows(plan: Plan, store: Store, provenance: bool) -> Iterator[dict[str, Any]]:
    origins = store.origins() if provenance else {}
    numerics = list(plan.numerics.values())
    stored = {row.place: row for row in store.fetch([unit.key for unit in plan.units])}
    for place, unit in enumerate(plan.units):
        row = stored.get(place)
        yield {
            **_where(plan, unit),
            "status": MISSING if row is None else row.status,
            "error": row.error if row is not None and row.error else None,
            **({"numerics": str(numerics[unit.task])} if provenance or plan.earlier else {}),
            **(_traced(row, origins) if provenance else {}),
            **quantities_of(row),
        }


def _where(plan: Plan, unit: Unit) -> dict[str, Any]:
    fields = {name: label(value) for name, value in plan.sweep.changes(unit.point).items()}
    task = plan.sweep.tasks[unit.task].name
    return {"task": task, **fields, "variant": unit.part.variant, "seed": unit.part.seed}


def quantities_of(row: Row | None) -> dict[str, Any]:
    """The numbers of a stored result, if it has any."""
    if row is None or row.quantities is None:
        return {}
    found = json.loads(row.quantities)
    assert isinstance(found, dict)
    return found


def _traced(row: Row | None, origins: Mapping[int, Mapping[str, str]]) -> dict[str, Any]:
    if row is None:
        return {}
    finished = datetime.fromtimestamp(row.finished, UTC).isoformat(timespec="milliseconds")
    return {
        "executions": row.executions,
        "finished": finished,
        "seconds": row.seconds,
        **origins[row.origin],
    }


def label(value: Any) -> Any:
    """A field's value as a coordinate: numbers and words as they are, laws as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return ", ".join(":".join(f"{number:g}" for number in pair) for pair in value)
    name = getattr(value, "name", None)
    return str(name if name is not None else value)


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
