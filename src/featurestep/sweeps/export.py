"""Results as files: netCDF, Parquet, CSV and strict JSON, whole or absent."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..core.checks import check_file, write_whole
from ..core.errors import InvalidProblem
from ..core.types import xarray
from .plan import Plan
from .results import Columns, described, make_dataset, make_table
from .store import Store

PARAMETER = "OUTPUT"  # as the command line calls the path
_INT32 = np.iinfo(np.int32)
_EXACT = 2**53  # whole numbers up to here are floats as well


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
            kind = float if values.max() <= _EXACT else str
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


def _typed(table: Columns) -> Columns:
    """Columns of one type: whole numbers among floats become floats, all else beside text text."""
    typed: Columns = {}
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
        rule = "needs a package for .parquet: pip install 'featurestep[parquet]'"
        raise InvalidProblem(PARAMETER, rule, ".parquet") from None


FORMATS: Mapping[str, Callable[[Plan, Store, bool], bytes]] = {
    ".nc": _netcdf,
    ".parquet": _parquet,
    ".csv": _csv,
    ".json": _json,
}
