"""From a request to an answer: one result or a curve, its figure first, then table or JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol

import click
import numpy as np

from ..errors import FeaturestepError, InvalidProblem
from ..problem import Grid, Problem
from .files import check_path, mention, save
from .options import Request
from .output import (
    describe,
    fixed_fields,
    grid_notes,
    joined,
    points,
    show_grid,
    show_json,
    show_notes,
    show_result,
    shown_problem,
)
from .progress import Advance, shifted, watched

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

Report = Callable[[int, int], None]
_LONG = 200  # points from which a progress bar is worth its flicker


class Result(Protocol):
    """What every verb returns for one problem."""

    @property
    def problem(self) -> Problem:
        """The problem it answers."""

    def as_dict(self) -> Mapping[str, Any]:
        """Its numbers."""


@dataclass(frozen=True)
class Verb:
    """How a command computes, names and draws its results."""

    meanings: Mapping[str, str]  # of one result's numbers
    columns: Sequence[str]  # of a curve's table
    one: Callable[[Problem], Result]
    draw_many: Callable[[Request, xarray.Dataset], Axes]
    many: Callable[[Grid, Report | None], xarray.Dataset] | None = None  # `one` for each if None
    draw_one: Callable[[Any], Axes] | None = None


def answer(verb: Verb, request: Request, *, as_json: bool, plot: str | None) -> None:
    """Compute, write the figure, and only then print."""
    check_path(plot)
    if request.over:
        _answer_curve(verb, request, as_json, plot)
        return
    if plot and verb.draw_one is None:
        raise InvalidProblem("--plot", "needs --over for this command", plot)
    found = verb.one(request.problem)
    if plot and verb.draw_one is not None:
        save(plot, verb.draw_one(found))
    report(found, verb.meanings, as_json=as_json, plot=plot)


def report(found: Result, meanings: Mapping[str, str], *, as_json: bool, plot: str | None) -> None:
    """Print one result."""
    values = found.as_dict()
    if as_json:
        lost = [name for name, v in values.items() if isinstance(v, float) and not isfinite(v)]
        status = f"not finite: {', '.join(lost)}" if lost else "ok"
        show_json({"problem": dict(found.problem.given), "status": status, **values})
        return
    click.echo("\n".join(describe(found.problem)))
    show_result(values, meanings)
    show_notes(values.get("validity", ()))
    mention(plot)


def _answer_curve(verb: Verb, request: Request, as_json: bool, plot: str | None) -> None:
    results = _sweep(request.grids, verb.many or (lambda grid, told: _each(grid, verb, told)))
    if plot:
        save(plot, verb.draw_many(request, results))
    report_curve(request, results, verb.columns, as_json=as_json, plot=plot)


def report_curve(
    request: Request,
    results: xarray.Dataset,
    columns: Sequence[str],
    *,
    as_json: bool,
    plot: str | None,
    shown: xarray.Dataset | None = None,
    **asked: Any,
) -> None:
    """Print the points of a grid: a table with its notes, or JSON with what else was asked.

    `shown` takes the place of the results in the table.
    """
    base = request.grids[0].base
    if as_json:
        fixed = {"problem": fixed_fields(base, request), "over": dict(request.axes)}
        show_json({**fixed, **asked, "points": points(results)})
        return
    click.echo(shown_problem(base, request))
    show_grid(results if shown is None else shown, columns)
    show_notes(grid_notes(results))
    mention(plot)


def _sweep(
    grids: Sequence[Grid], evaluate: Callable[[Grid, Report | None], xarray.Dataset]
) -> xarray.Dataset:
    """The results of all grids as one, with a progress bar on a terminal."""
    parts: list[xarray.Dataset] = []
    with _progress(sum(map(len, grids))) as advance:
        for i, grid in enumerate(grids):
            before = sum(map(len, grids[:i]))
            parts.append(evaluate(grid, shifted(advance, before)))
    return joined(parts).transpose(*grids[0].dims)


def _each(grid: Grid, verb: Verb, told: Report | None) -> xarray.Dataset:
    """One row of values for each problem of a grid; a refusal becomes the point's status."""
    import xarray

    rows: list[dict[str, Any]] = []
    for problem in list(grid):
        try:
            rows.append({**verb.one(problem).as_dict(), "status": "ok"})
        except FeaturestepError as error:
            rows.append({"status": str(error)})
        if told is not None:
            told(len(rows), len(grid))
    names = dict.fromkeys([*verb.columns, *(name for row in rows for name in row)])
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    return xarray.Dataset(
        {name: (grid.dims, column.reshape(grid.shape)) for name, column in columns.items()},
        coords=grid.coordinates(),
    )


def _column(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Numbers with NaN for what is missing; anything else as it is."""
    if all(value is None or isinstance(value, float) for value in values):
        return np.array([np.nan if value is None else value for value in values])
    column = np.empty(len(values), dtype=object)
    column[:] = [tuple(value) if isinstance(value, list) else value for value in values]
    return column


def _progress(total: int) -> AbstractContextManager[Advance | None]:
    """A bar when there is something to wait for."""
    return watched(total, lambda done: "points") if total >= _LONG else nullcontext()
