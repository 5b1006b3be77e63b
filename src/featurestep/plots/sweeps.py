"""Sweeps drawn: one quantity of every task against one field, a colour for each other value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidProblem
from .simulation import BAR, BAR_STYLE
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

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

_DASHED = (0, (4, 1.5))


@dataclass(frozen=True)
class _View:
    """Results cut down to two dimensions: x, and lines."""

    results: xarray.Dataset
    x: str  # a coordinate
    along: str  # its dimension
    lines: str | None

    def rows(self, values: Any) -> Any:
        """A variable as (lines, x)."""
        order = [dim for dim in (self.lines, self.along) if dim is not None]
        return values.transpose(*order).values.reshape(-1, self.results.sizes[self.along])


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
    tasks = _tasks(results, quantity)
    view = _view(results, [f"{task}_{quantity}" for task in tasks], x, dict(at or {}))
    ax = new_axes(height=2.9)[0] if ax is None else ax
    lined = [task for task in tasks if view.lines in view.results[f"{task}_{quantity}"].dims]
    for number, task in enumerate(tasks):
        _draw(ax, view, task, quantity, number, named=task in lined[:1])
    if len(tasks) > 1:
        _name_tasks(ax, view, lined, quantity)
    values = view.results[view.x].values
    if np.issubdtype(values.dtype, np.number) and spans_decades(view.x, values.min(), values.max()):
        ax.set_xscale("log")
    ax.set_xlabel(label(view.x))
    ax.set_ylabel(label(quantity))
    if len(tasks) > 1 or view.lines is not None:
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


def _view(
    results: xarray.Dataset, variables: Sequence[str], x: str | None, at: dict[str, Any]
) -> _View:
    """The results at the fixed values, with the means over seeds left to be taken."""
    for name, value in at.items():
        results = _fixed(results, name, value)
    dims = list(dict.fromkeys(str(d) for name in variables for d in results[name].dims))
    dims = [dim for dim in dims if dim != "seed"]
    single = [dim for dim in dims if results.sizes[dim] == 1]
    chosen = _coordinate(results, x, [d for d in dims if d not in single and d != "variant"])
    along = str(results[chosen].dims[0])
    results = results.squeeze([dim for dim in single if dim != along], drop=True)
    rest = [dim for dim in dims if dim not in single and dim != along]
    if len(rest) > 1:
        rule = f"must fix all but one of {', '.join(rest)}"
        raise InvalidProblem("at", rule, at or "nothing")
    return _View(results, chosen, along, rest[0] if rest else None)


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


def _draw(ax: Axes, view: _View, task: str, quantity: str, number: int, *, named: bool) -> None:
    """One task's rows: in the lines' colours, or in one of its own where it has a single row."""
    values = view.results[f"{task}_{quantity}"]
    simulated, error = "seed" in values.dims, None
    if simulated:
        if values.sizes["seed"] > 1:
            error = values.std("seed", ddof=1) / values.notnull().sum("seed") ** 0.5
        values = values.mean("seed")
    lines = view.lines if view.lines in values.dims else None
    cut = replace(view, lines=lines)
    rows = cut.rows(values)
    bars = [None] * len(rows) if error is None else cut.rows(error)
    names = line_names(lines, view.results[lines].values) if lines else [task]
    own = PALETTE[number % len(PALETTE)] if view.lines is None else "black"
    for i, (row, bar, name) in enumerate(zip(rows, bars, names, strict=True)):
        colour = line_colour(i, len(rows)) if lines else own
        told = name if named or not lines else ""
        _put(ax, view, task, row, None if bar is None else BAR * bar, colour, told, simulated)


def _put(
    ax: Axes, view: _View, task: str, row: Any, bar: Any, colour: Any, name: str, simulated: bool
) -> None:
    x = view.results[view.x].values
    if simulated:
        ax.errorbar(x, row, bar, fmt="o", color=colour, label=name, zorder=3, **BAR_STYLE)
    else:
        ax.plot(x, row, color=colour, label=name, **_line(view, task))


def _name_tasks(ax: Axes, view: _View, tasks: Sequence[str], quantity: str) -> None:
    """Which marks are whose, where colours tell the lines apart."""
    empty = np.full(view.results.sizes[view.along], np.nan)
    for task in tasks:
        simulated = "seed" in view.results[f"{task}_{quantity}"].dims
        _put(ax, view, task, empty, None, "0.4", task, simulated)


def _line(view: _View, task: str) -> dict[str, Any]:
    """Curves are joined in order; points of a design and categories are not."""
    numeric = np.issubdtype(view.results[view.x].dtype, np.number)
    if view.along == "sample" or not numeric:
        return {"linestyle": "none", "marker": "_" if task == "limit" else "."}
    return {"linestyle": _DASHED if task == "limit" else "-"}
