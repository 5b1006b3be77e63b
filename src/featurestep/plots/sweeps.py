"""Sweeps drawn: one quantity of every task against one field, a colour for each other value."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.errors import InvalidProblem
from ..core.types import Axes, xarray
from .simulation import BAR_STANDARD_ERRORS, BAR_STYLE
from .style import (
    PALETTE,
    label,
    legend_below,
    line_colour,
    line_names,
    new_axes,
    spans_decades,
    styled,
)

_DASHED = (0, (4, 1.5))


@styled
def sweep_curves(
    results: xarray.Dataset,
    quantity: str = "test_error",
    *,
    x: str | None = None,
    at: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A quantity of every task that has it, against `x`; `at` fixes other dimensions.

    Predictions are lines, limits dashed, simulations means ± 2 standard errors.
    """
    at, tasks = dict(at or {}), _tasks(results, quantity)
    for name, value in at.items():
        results = _fixed(results, name, value)
    columns = {task: results[f"{task}_{quantity}"] for task in tasks}
    places, lines = _places(results, columns, x, at)
    ax = new_axes(height=2.9)[0] if ax is None else ax
    _draw(ax, places, columns, lines)
    field = str(places.name)
    if spans_decades(field, places.values):
        ax.set_xscale("log")
    ax.set_xlabel(label(field))
    ax.set_ylabel(label(quantity))
    if len(tasks) > 1 or lines is not None:
        legend_below(ax, shared=True)
    return ax


def _tasks(results: xarray.Dataset, quantity: str) -> list[str]:
    """Tasks that have the quantity, in the order of the sweep."""
    names = [str(name) for name in results.data_vars]
    known = [name.removesuffix("_status") for name in names if name.endswith("_status")]
    numeric = [name for name in names if results[name].dtype.kind == "f"]
    found = [task for task in known if f"{task}_{quantity}" in numeric]
    if not found:
        every = {n.removeprefix(f"{t}_") for t in known for n in numeric if n.startswith(f"{t}_")}
        rule = f"must be one of {', '.join(sorted(every))}" if every else "needs results to draw"
        raise InvalidProblem("quantity", rule, quantity)
    return found


def _places(
    results: xarray.Dataset, columns: Mapping[str, Any], x: str | None, at: dict[str, Any]
) -> tuple[xarray.DataArray, str | None]:
    """The coordinate to draw against, and the dimension of the lines, if there is one."""
    dims = dict.fromkeys(str(d) for column in columns.values() for d in column.dims if d != "seed")
    several = [dim for dim in dims if results.sizes[dim] > 1]
    places = results[_coordinate(results, x, [dim for dim in several if dim != "variant"])]
    rest = [dim for dim in several if dim != places.dims[0]]
    if len(rest) > 1:
        rule = f"must fix all but one of {', '.join(rest)}"
        raise InvalidProblem("at", rule, at or "nothing")
    return places, rest[0] if rest else None


def _coordinate(results: xarray.Dataset, x: str | None, dims: Sequence[str]) -> str:
    """The coordinate to draw against: by name, or the first along the first dimension."""
    known = [
        str(c) for c in results.coords if results[c].ndim == 1 and c not in ("seed", "variant")
    ]
    if x is not None:
        if x not in known:
            raise InvalidProblem("x", f"must be one of {', '.join(known) or 'none'}", x)
        return x
    if not dims:
        raise InvalidProblem("x", "needs a dimension with at least two values", "one point")
    of_first = [name for name in known if results[name].dims[0] == dims[0]]
    return next((name for name in of_first if name != dims[0]), dims[0])


def _fixed(results: xarray.Dataset, name: str, value: Any) -> xarray.Dataset:
    if name not in results.coords or results[name].ndim != 1:
        raise InvalidProblem("at", f"must name one of {', '.join(map(str, results.coords))}", name)
    values = results[name].values.tolist()
    if value not in values:
        shown = ", ".join(map(str, values[:12])) + (", …" if len(values) > 12 else "")
        raise InvalidProblem("at", f"must give {name} one of its values ({shown})", value)
    return results.isel({results[name].dims[0]: [values.index(value)]})


def _draw(
    ax: Axes, x: xarray.DataArray, columns: Mapping[str, xarray.DataArray], lines: str | None
) -> None:
    """Rows of tasks in the lines' colours, or in one of its own where a task has a single row."""

    def put(task: str, row: Any, bar: Any, **named: Any) -> None:
        if "seed" in columns[task].dims:
            ax.errorbar(x.values, row, bar, fmt="o", zorder=3, **BAR_STYLE, **named)
        else:
            ax.plot(x.values, row, **_line(x, task), **named)

    lined = [task for task, column in columns.items() if lines in column.dims]
    for number, (task, column) in enumerate(columns.items()):
        names, colours = [task], [PALETTE[number % len(PALETTE)] if lines is None else "black"]
        if task in lined:
            names = line_names(str(lines), column[lines].values)
            colours = [line_colour(i, len(names)) for i in range(len(names))]
        rows = _rows(column, x.dims[0])
        for (row, bar), name, colour in zip(rows, names, colours, strict=True):
            put(task, row, bar, color=colour, label="" if task in lined[1:] else name)
    # Which marks are whose, where colours tell the lines apart.
    for task in lined if len(columns) > 1 else ():
        put(task, np.full(x.size, np.nan), None, color="0.4", label=task)


def _rows(values: xarray.DataArray, along: Hashable) -> list[tuple[Any, Any]]:
    """Each line over x, with error bars where it has means over several seeds."""
    shape, mean = (-1, values.sizes[along]), values
    bars: Any = itertools.repeat(None)
    if "seed" in values.dims:
        mean = values.mean("seed")
        if values.sizes["seed"] > 1:
            error = values.std("seed", ddof=1) / values.notnull().sum("seed") ** 0.5
            bars = BAR_STANDARD_ERRORS * error.transpose(..., along).values.reshape(shape)
    return list(zip(mean.transpose(..., along).values.reshape(shape), bars, strict=False))


def _line(x: xarray.DataArray, task: str) -> dict[str, Any]:
    """Curves are joined in order; points of a design and categories are not."""
    if x.dims == ("sample",) or not np.issubdtype(x.dtype, np.number):
        return {"linestyle": "none", "marker": "_" if task == "limit" else "."}
    return {"linestyle": _DASHED if task == "limit" else "-"}
