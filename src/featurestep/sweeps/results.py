"""Results of a plan: a table with one row for each unit, or an xarray.Dataset over the grid."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.grid import label
from ..core.types import xarray
from .plan import Plan
from .store import Store, StoredRow
from .tasks import Part, Unit

Array = npt.NDArray[Any]
Columns = dict[str, list[Any]]


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
    numerics = plan.numerics
    for unit, row in store.of(plan.units):
        name = unit.task.name
        yield {
            "task": name,
            **{field: label(value) for field, value in plan.sweep.changes(unit.point).items()},
            **unit.part._asdict(),
            "status": row.status,
            "error": row.error or None,
            **({"numerics": str(numerics[name])} if provenance or not plan.is_current else {}),
            **(_traced(row) if provenance and row.origin else {}),
            **row.numbers,
        }


def _traced(row: StoredRow) -> dict[str, Any]:
    finished = datetime.fromtimestamp(row.finished, UTC).isoformat(timespec="milliseconds")
    made = {"executions": row.executions, "finished": finished, "seconds": row.seconds}
    return {**made, **json.loads(row.origin)}


def make_dataset(plan: Plan, store: Store) -> xarray.Dataset:
    """Everything that is stored of a sweep; NaN where a status says why there is no number."""
    arrays: dict[str, Any] = {}
    coordinates = _coordinates(plan)
    grid = tuple(dimension.name for dimension in plan.sweep.dimensions)
    for task, units in plan.by_task():
        variants, seeds = (list(dict.fromkeys(every)) for every in zip(*task.parts, strict=True))
        shape = (*plan.sweep.shape, len(variants), len(seeds))
        several = task.parts != (Part(),)
        if several:
            coordinates.update(variant=variants, seed=seeds)
        for name, column in _columns(store, units).items():
            array = np.moveaxis(column.reshape(shape), -2, 0)  # (variant, …, seed)
            arrays[f"{task.name}_{name}"] = (
                ("variant", *grid, "seed") if several else grid,
                array if several else array[0, ..., 0],
                {"long_name": task.meanings[name]} if name in task.meanings else {},
            )
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in described(plan).items()
    }
    return xarray.Dataset(arrays, coordinates, attrs=texts)


def _columns(store: Store, units: Sequence[Unit]) -> dict[str, Array]:
    """The quantities and the status of some units."""
    rows = [row for _, row in store.of(units)]
    found = [row.numbers for row in rows]
    names = dict.fromkeys(name for numbers in found for name in numbers)
    columns = {name: _column([numbers.get(name) for numbers in found]) for name in names}
    return {**columns, "status": _column([_status(row) for row in rows])}


def _status(row: StoredRow) -> str:
    return f"{row.status}: {row.error}" if row.error else row.status


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


def described(plan: Plan) -> dict[str, Any]:
    """What was asked, for files: the sweep's name, the fields that do not vary, the numerics."""
    base = {name: label(value) for name, value in plan.sweep.problem.items()}
    return {"sweep": plan.sweep.name, "problem": base, "numerics": plan.numerics}
