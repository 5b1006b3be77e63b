"""Results of a plan: a table, an xarray.Dataset, or a file (netCDF, Parquet, CSV, strict JSON).

`sweep` computes what a store does not have yet, and returns everything as one dataset.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.checks import check_file, write_whole
from ..core.errors import InvalidProblem, install_command
from ..core.grid import label
from ..core.types import xarray
from .engines import refuse_importing_workers
from .plan import Plan, Watcher, current_plan, execute, make_plan, open_store
from .spec import read_sweep
from .store import Store, StoredRow
from .tasks import Part, Unit

Array = npt.NDArray[Any]
TableColumns = dict[str, list[Any]]


def sweep(
    source: Any,
    *,
    tasks: Any = None,
    store: str | Path | None = None,
    engine: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Watcher | None = None,
) -> xarray.Dataset:
    """Compute tasks at every point of a grid, and keep every result in a store.

    source
        A sweep file (TOML), a mapping of the same form, or a grid made by `vary`.
    tasks
        For a grid: names, or options by name, as `{"predict": {}, "simulate": {"seeds": 8}}`.
    store
        The SQLite file with the results. What it has is not computed again. Without one, a sweep
        file's is beside it, and a grid's results are kept in memory only.
    engine, workers, scheduler
        `processes` (the default; so many workers, one core each), `serial`, or `dask` with the
        address of a scheduler.
    progress
        Called with a `SweepProgress` as results are stored.

    The dataset has the grid's dimensions, a variable `task_quantity` for each result and a
    `task_status` for each task; simulations have the dimensions `variant` and `seed` too.

    >>> from featurestep import Problem
    >>> base = Problem(n=200, d=100, width=150, step_exponent=0.3, ridge=0.01)
    >>> found = sweep(base.vary(ridge=[0.01, 0.1]), tasks=["predict"], engine="serial")
    >>> found.predict_status.values.tolist()
    ['ok', 'ok']
    """
    refuse_importing_workers()
    asked = read_sweep(source, tasks)
    plan = make_plan(
        asked.override(store=store, engine=engine, workers=workers, scheduler=scheduler)
    )
    chosen = plan.sweep.engine.make()
    with open_store(plan.sweep) as opened:
        plan = current_plan(plan, opened)
        execute(plan, opened, chosen, watch=progress)
        return make_dataset(plan, opened)


def make_table(plan: Plan, store: Store, *, provenance: bool = False) -> TableColumns:
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
        square = plan.problems[0].has_square_loss
        meanings = task.meanings if square else task.loss_meanings
        if several:
            coordinates.update(variant=variants, seed=seeds)
        for name, column in _columns(store, units).items():
            array = np.moveaxis(column.reshape(shape), -2, 0)  # (variant, …, seed)
            arrays[f"{task.name}_{name}"] = (
                ("variant", *grid, "seed") if several else grid,
                array if several else array[0, ..., 0],
                {"long_name": meanings[name]} if name in meanings else {},
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


PARAMETER = "OUTPUT"  # as the command line calls the path
_INT32 = np.iinfo(np.int32)
_MAX_EXACT_INTEGER = 2**53  # whole numbers up to here are floats as well


def export(plan: Plan, store: Store, path: str | Path, *, provenance: bool = False) -> Path:
    """Write what is stored of a sweep, in the format of the path's ending."""
    target = Path(path)
    check_target(target)
    encode = FORMATS[target.suffix.lower()]
    write_whole(PARAMETER, target, encode(plan, store, provenance))
    return target


def check_target(target: Path) -> None:
    """Refuse a path that cannot be written, before anything is read."""
    check_file(PARAMETER, target, FORMATS)
    if target.suffix.lower() == ".parquet":
        _pyarrow()


def _netcdf(plan: Plan, store: Store, provenance: bool) -> bytes:
    """NetCDF 3, which SciPy writes: readable everywhere, and no further package needed."""
    if provenance:
        raise InvalidProblem("--provenance", "goes with .csv, .json and .parquet", ".nc")
    return bytes(_narrowed(make_dataset(plan, store)).to_netcdf(engine="scipy"))


def _narrowed(dataset: xarray.Dataset) -> xarray.Dataset:
    """Whole numbers that netCDF 3 has no room for become floats, or text beyond those."""
    changed = {}
    for name, coordinate in dataset.coords.items():
        values = coordinate.values
        if np.issubdtype(values.dtype, np.integer) and values.max() > _INT32.max:
            kind = float if values.max() <= _MAX_EXACT_INTEGER else str
            changed[name] = (coordinate.dims, values.astype(kind))
    return dataset.assign_coords(changed)


def _csv(plan: Plan, store: Store, provenance: bool) -> bytes:
    table = make_table(plan, store, provenance=provenance)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    for row in zip(*table.values(), strict=True):
        writer.writerow([str(v).lower() if isinstance(v, bool) else v for v in row])
    return text.getvalue().encode()


def _json(plan: Plan, store: Store, provenance: bool) -> bytes:
    table = make_table(plan, store, provenance=provenance)
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    content = {**described(plan), "rows": rows}
    return (json.dumps(content, allow_nan=False, ensure_ascii=False, indent=1) + "\n").encode()


def _parquet(plan: Plan, store: Store, provenance: bool) -> bytes:
    arrow = _pyarrow()
    parquet = import_module("pyarrow.parquet")
    table = _typed(make_table(plan, store, provenance=provenance))
    arrays = {
        # a column without any value is of numbers
        name: arrow.array(values, None if any(v is not None for v in values) else arrow.float64())
        for name, values in table.items()
    }
    buffer = io.BytesIO()
    parquet.write_table(arrow.table(arrays), buffer)
    return buffer.getvalue()


def _typed(table: TableColumns) -> TableColumns:
    """Columns of one type: whole numbers among floats become floats, all else beside text text."""
    typed: TableColumns = {}
    for name, values in table.items():
        kinds = {type(value) for value in values if value is not None}
        if kinds <= {int, float} and float in kinds:
            typed[name] = [None if value is None else float(value) for value in values]
        elif len(kinds) > 1:
            typed[name] = [None if value is None else str(value) for value in values]
        else:
            typed[name] = values
    return typed


def _pyarrow() -> Any:
    try:
        return import_module("pyarrow")
    except ImportError:
        rule = f"needs a package for .parquet: {install_command('parquet')}"
        raise InvalidProblem(PARAMETER, rule, ".parquet") from None


FORMATS: Mapping[str, Callable[[Plan, Store, bool], bytes]] = {
    ".nc": _netcdf,
    ".parquet": _parquet,
    ".csv": _csv,
    ".json": _json,
}
