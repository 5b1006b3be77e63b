"""From a request to an answer: every verb's one path to a figure, a table or JSON."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import isfinite
from typing import Any, TypeVar

from ..errors import InvalidProblem
from ..grid import Grid
from ..results import OK, Result, shared_fields
from .options import Request
from .output import check_path, mention, save, show, show_json
from .progress import Advance, all_or_nothing, watched

_LONG = 200  # points from which a progress bar is worth its flicker
Found = TypeVar("Found", bound=Result)


def answer(
    verb: Callable[..., Result], request: Request, *, fields: int = 2, **arguments: Any
) -> None:
    """Ask a verb that needs the theory alone, draw, and only then print.

    `fields` is how many of them the figure can show.
    """
    check_plot(request, fields)
    target, plot = request.target, request.plot
    if isinstance(target, Grid):
        with _bar(len(target)) as advance:
            found = drawn(lambda: verb(target, **arguments, progress=advance), plot)
    else:
        found = drawn(lambda: verb(target, **arguments), plot)
    report(found, request)


def check_plot(request: Request, fields: int) -> None:
    """Refuse a figure before anything is computed: its path, or too many fields."""
    check_path(request.plot)
    if request.plot and len(request.over) > fields:
        raise InvalidProblem("--plot", "takes a single --over for this command", request.over)


def drawn(compute: Callable[[], Found], plot: str | None) -> Found:
    """Compute and write the figure; interrupted before that, nothing is left."""
    with all_or_nothing():
        found = compute()
        if plot:
            save(plot, found.plot())
    return found


def report(found: Result, request: Request, **asked: Any) -> None:
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


def _bar(total: int) -> AbstractContextManager[Advance | None]:
    """A bar when there is something to wait for."""
    return watched(total, lambda done: "points") if total >= _LONG else nullcontext()
