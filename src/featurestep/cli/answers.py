"""From a request to an answer: every verb's one path to a figure, a table or JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..core.display import shared_fields
from ..core.errors import InvalidProblem
from ..core.grid import Grid, as_grid
from ..core.problem import Problem
from ..core.results import OK, Result
from .options import Request
from .output import check_path, mention, save, show, show_json
from .progress import INTERRUPTED, Advance, watched

if TYPE_CHECKING:
    from ..simulation import Estimate

_LONG = 200  # points from which a progress bar is worth its flicker
Found = TypeVar("Found", bound=Result)


def answer(
    verb: Callable[..., Found],
    request: Request,
    *,
    fields: int = 2,
    cost: Estimate | None = None,
    by_flops: bool = False,
    asked: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Found:
    """Ask a verb, draw, and only then print; interrupted before that, nothing is left.

    fields
        How many of them the figure can show.
    cost, by_flops
        Of the networks behind the answer, told before they run; whether the verb tells its
        progress in flops, not in points of a grid.
    asked
        What else was asked for, as JSON repeats it.
    """
    check_path(request.plot)
    if request.plot and len(request.over) > fields:
        raise InvalidProblem("--plot", "takes a single --over for this command", request.over)
    target = request.target
    try:
        if cost is not None:
            click.echo(f"estimate: {cost}", err=True)
        with _bar(target, cost, by_flops) as advance:
            told = {} if advance is None else {"progress": advance}
            found = verb(target, **arguments, **told)
            if request.plot:
                save(request.plot, found.plot())
    except KeyboardInterrupt:
        click.echo("interrupted: nothing was written", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    _report(found, request, asked or {})
    return found


def _bar(
    target: Problem | Grid, cost: Estimate | None, by_flops: bool
) -> AbstractContextManager[Advance | None]:
    """A bar over points or flops, when there is something to wait for."""
    if cost is not None and by_flops:
        total = cost.flops / 1e9
        return watched(cost.flops, lambda done: f"{done / 1e9:.4g} of {total:.4g} Gflop")
    points = len(as_grid(target))
    if cost is None and points < _LONG:
        return nullcontext()
    return watched(points, lambda done: "points")


def _report(found: Result, request: Request, asked: Mapping[str, Any]) -> None:
    """Print a result: its tables and notes, or JSON with what else was asked."""
    if not request.as_json:
        show(found)
        mention(request.plot)
        return
    values = found.as_dict()
    if not isinstance(found.problem, Grid):
        lost = [n for n, v in found.numbers.items() if isinstance(v, float) and not isfinite(v)]
        asked = {"status": f"not finite: {', '.join(lost)}" if lost else OK, **asked}
    show_json({"problem": shared_fields(found.problem), **asked, **values})
