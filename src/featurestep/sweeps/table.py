"""Results as a table: one row for each unit, in the order of the plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from .plan import Plan, Unit
from .store import Row, Store

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
