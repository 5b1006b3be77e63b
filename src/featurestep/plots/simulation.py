"""Results of networks drawn: means with error bars, over the theory's curve if there is one."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.axes import axis_values
from ..core.errors import InvalidProblem
from ..core.grid import Grid, as_grid
from ..core.types import Axes, xarray
from ..meeting.comparison import Comparison, ComparisonRow
from ..simulation import FeatureGap, SimulatedSpectrum, Simulation
from ..theory import predict
from .curves import at_most, curves
from .style import (
    PALETTE,
    label,
    legend_below,
    line_colour,
    line_names,
    log_ticks,
    new_axes,
    of_loss,
    spans_decades,
    styled,
)

BAR_STANDARD_ERRORS = 2.0  # half length of an error bar, in standard errors
SIMULATED_NAME = f"simulated, ± {BAR_STANDARD_ERRORS:g} s.e."
ERRORS = ("train_loss", "test_error")
LOSSES = ("test_loss", "test_error")  # with another loss than the square
GAP = r"$\|F - F_\ell\|_{\mathrm{op}}/\sqrt{n}$"
_CURVE_POINTS = 61
BAR_STYLE: dict[str, Any] = {"markersize": 3, "elinewidth": 0.8, "capsize": 1.5, "capthick": 0.8}


@styled
def simulated(
    mean: xarray.Dataset, error: xarray.Dataset | None, variables: Sequence[str]
) -> list[Axes]:
    """Means against a grid's first field, a line for each value of the second dimension."""

    def bars(ax: Axes, variable: str) -> None:
        if error is not None:
            _add_bars(ax, mean[variable], error[variable], marker="none")

    return curves(mean, variables, also=bars)


@styled
def agreement(
    theory: xarray.Dataset, mean: xarray.Dataset, error: xarray.Dataset, variables: Sequence[str]
) -> list[Axes]:
    """The theory's curves, or dashes over categories, and the simulated points on them."""
    several = theory.sizes[theory[variables[0]].dims[0]] > 1

    def marks(ax: Axes, variable: str) -> None:
        for line in ax.lines:
            is_curve = line.get_linestyle() == "-" and several
            line.set(marker="" if is_curve else "_", markersize=14)
        if len(ax.lines) == 1:
            ax.lines[0].set_label("theory")
        _add_bars(ax, mean[variable], error[variable], marker="o")

    return curves(theory, variables, also=marks)


def _add_bars(ax: Axes, mean: xarray.DataArray, error: xarray.DataArray, *, marker: str) -> None:
    """Error bars in the colours of the lines, or beside a single line in another."""
    x = mean[mean.dims[0]].values
    means, errors = (array.values.reshape(len(x), -1) for array in (mean, error))
    count = means.shape[1]
    style: dict[str, Any] = {**BAR_STYLE, "fmt": marker, "clip_on": False, "zorder": 3}
    for i in range(count):
        colour = line_colour(i, count) if count > 1 or marker == "none" else PALETTE[1]
        ax.errorbar(x, means[:, i], yerr=BAR_STANDARD_ERRORS * errors[:, i], color=colour, **style)
    if marker != "none":
        colour = PALETTE[1] if count == 1 else "0.3"
        style["label"] = SIMULATED_NAME
        ax.errorbar(x[:1], [np.nan], yerr=[np.nan], color=colour, **style)


def points(
    ax: Axes,
    x: Any,
    mean: Any,
    error: Any,
    *,
    colour: str,
    noted: Any = False,
    name: str = "",
    marker: str = "o",
) -> None:
    """Means with error bars; open where the prediction carries a note on its validity."""
    x, mean, error, noted = np.broadcast_arrays(
        *(np.asarray(array) for array in (x, mean, error, noted))
    )
    style: dict[str, Any] = {**BAR_STYLE, "fmt": marker, "color": colour, "zorder": 3}
    for part, face in ((noted.astype(bool), "white"), (~noted.astype(bool), colour)):
        if part.any():
            bars = BAR_STANDARD_ERRORS * error[part]
            ax.errorbar(x[part], mean[part], yerr=bars, markerfacecolor=face, **style)
    if name:
        ax.errorbar([], [], yerr=[], label=name, **style)


@styled
def gaps(
    rows: Sequence[ComparisonRow], ax: Axes | None = None, *, names: Mapping[str, str] | None = None
) -> Axes:
    """How far each simulated quantity of one problem is from its prediction, in per cent.

    `names` are those by which labels say what a quantity is.
    """
    names = names or {}
    ax = new_axes(height=1.7)[0] if ax is None else ax
    known = [row for row in rows if row.predicted]
    heights = np.arange(len(known))[::-1]
    for height, row in zip(heights, known, strict=True):
        scale = 100.0 / (row.predicted or 1.0)
        bar = BAR_STANDARD_ERRORS * row.standard_error * abs(scale)
        where = (row.simulated * scale - 100.0, height)
        ax.errorbar(*where, xerr=bar, fmt="o", color=PALETTE[1], **BAR_STYLE)
    ax.axvline(0.0, color=PALETTE[0], zorder=0)
    ax.set_yticks(heights, [label(names.get(row.quantity, row.quantity)) for row in known])
    ax.set_ylim(-0.6, len(known) - 0.4)
    ax.set_xlabel(f"simulated/predicted − 1 in %, ± {BAR_STANDARD_ERRORS:g} s.e.")
    return ax


@styled
def draws(
    dataset: xarray.Dataset, ax: Axes | None = None, *, variables: Sequence[str] = ERRORS
) -> Axes:
    """Both errors of every variant of one problem: a dot for each seed, and the mean's bar."""
    names = [str(name) for name in dataset["variant"].values]
    ax = new_axes(height=1.1 + 0.4 * len(names))[0] if ax is None else ax
    seeds = dataset.sizes["seed"]
    heights = np.arange(len(names))[::-1]
    for i, quantity in enumerate(variables[::-1]):
        y = heights + 0.15 - 0.3 * i
        values = dataset[quantity].values  # (variant, seed)
        ax.plot(values.ravel(), np.repeat(y, seeds), ".", color="0.7", markersize=3, zorder=1)
        bar = BAR_STANDARD_ERRORS * values.std(axis=1, ddof=1) / seeds**0.5 if seeds > 1 else None
        style: dict[str, Any] = {**BAR_STYLE, "color": PALETTE[i], "label": label(quantity)}
        ax.errorbar(values.mean(axis=1), y, xerr=bar, fmt="o", **style)
    ax.set_yticks(heights, names)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlabel(f"error (grey: seeds; bars: mean ± {BAR_STANDARD_ERRORS:g} s.e.)")
    legend_below(ax)
    return ax


@styled
def simulated_spectrum(result: SimulatedSpectrum, ax: Axes | None = None) -> Axes:
    """Each seed's largest singular values of every variant, by rank."""
    ax = new_axes()[0] if ax is None else ax
    for i, name in enumerate(result.variants):
        values = result.singular_values(name)
        ranks = np.tile(np.arange(1, values.shape[1] + 1), len(values))
        colour = line_colour(i, len(result.variants))
        ax.plot(ranks, values.ravel(), ".", color=colour, label=name, markersize=4)
    log_ticks(ax, "y")
    ax.set_xlabel("rank")
    ax.set_ylabel("singular value")
    if len(result.variants) > 1:
        legend_below(ax)
    return ax


@styled
def gap(result: FeatureGap, ax: Axes | None = None) -> Axes:
    """The gap against the degree: a dot for each seed, and the mean."""
    ax = new_axes()[0] if ax is None else ax
    x = np.repeat(result.degrees, len(result.seeds))
    ax.plot(x, result.values.ravel(), ".", color="0.7", markersize=3)
    ax.plot(result.degrees, result.gap, "o-", color=PALETTE[0])
    ax.set_xticks(list(result.degrees))
    ax.set_xlabel(r"degree $\ell$")
    ax.set_ylabel(GAP)
    return ax


def simulation(result: Simulation, ax: Axes | None = None) -> Axes:
    """Both errors with error bars: against the first field, or each variant's on its own."""
    names = drawn(result.problem)
    if not isinstance(result.problem, Grid):
        return draws(named(result.dataset, names), ax, variables=tuple(names.values()))
    at_most(result.problem, 2 if len(result.variants) == 1 else 1)
    mean = _errors(result.mean, result.problem, names)
    several = len(result.seeds) > 1
    error = _errors(result.standard_error, result.problem, names) if several else None
    return simulated(mean, error, tuple(names.values()))[0]


def drawn(problem: Any) -> dict[str, str]:
    """The two quantities that are drawn, and the names that say what they are."""
    square = next(iter(as_grid(problem))).has_square_loss
    return {name: of_loss(name, problem) for name in (ERRORS if square else LOSSES)}


def named(results: xarray.Dataset, names: Mapping[str, str]) -> xarray.Dataset:
    """Some of the quantities, under the names that say what they are."""
    return results[list(names)].rename({old: new for old, new in names.items() if old != new})


def comparison(result: Comparison, ax: Axes | None = None) -> Axes:
    """The theory's curves with the simulated points, or the gaps of one problem."""
    if not isinstance(result.problem, Grid):
        measured = {row.quantity: of_loss(row.quantity, result.problem) for row in result.rows}
        return gaps(result.rows, ax, names=measured)
    at_most(result.problem, 2)
    found, names = result.simulation, drawn(result.problem)
    mean, error = (
        _errors(each, found.problem, names) for each in (found.mean, found.standard_error)
    )
    theory = named(predict(_refined(result.problem)).dataset, names)
    return agreement(theory, mean, error, tuple(names.values()))[0]


def _refined(grid: Grid) -> Grid:
    """The same grid with enough points for a curve along the first field, if a number."""
    name, values = next(iter(grid.axes.items()))
    if len(values) < 2 or not all(type(value) in (int, float) for value in values):
        return grid
    scale = "log" if spans_decades(name, values) else "linear"
    span = {"start": min(values), "stop": max(values), "count": _CURVE_POINTS, "scale": scale}
    return grid.base.vary(**{**grid.axes, name: axis_values(name, name, span)}, **grid.fixed)


def _errors(results: xarray.Dataset, grid: Any, names: Mapping[str, str]) -> xarray.Dataset:
    """Both errors by the fields asked for, and by variant where there are several."""
    errors = named(results, names)
    if errors.sizes["variant"] == 1:
        errors = errors.squeeze("variant", drop=True)
    return errors.transpose(*grid.dims, ...)


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
        example = f"{rest[-1]}={results[rest[-1]].values[0]}"
        rule = f"must fix all but one of {', '.join(rest)} (such as {example})"
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
