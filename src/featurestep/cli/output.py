"""From a request to an answer: every verb's one path to tables, JSON or figures; progress bars."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..core.checks import check_file, unwritable, write_whole
from ..core.display import LINE_WIDTH, Table, json_value, shared_fields
from ..core.errors import InvalidProblem, install_command
from ..core.grid import Grid, as_grid
from ..core.problem import Problem
from ..core.results import OK, Result
from ..core.types import Axes
from . import INTERRUPTED
from .options import Request

if TYPE_CHECKING:
    from ..simulation import Estimate


class _MissingExtra(click.ClickException):
    """Packages are not installed; the message says how to install them."""

    exit_code = 2


def require_extra(what: str, extra: str, *modules: str) -> None:
    """Refuse in one line, which says how to install them, where packages are missing."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        names = ", ".join(missing).replace("sklearn", "scikit-learn")
        raise _MissingExtra(f"{what} needs {names}: {install_command(extra)}")


FORMATS = (".png", ".pdf", ".svg")


def show(found: Result) -> None:
    """The problem, the tables, the notes, and what it took."""
    click.echo("\n".join(found.heading()))
    for table in found.tables():
        show_table(table)
    show_notes(found.notes)
    for line in found.closing():
        click.echo(line)


def show_table(table: Table) -> None:
    """A table on stdout, as wide as a terminal allows."""
    watched = sys.stdout.isatty()
    click.echo(table.text(shutil.get_terminal_size().columns if watched else LINE_WIDTH))


def show_notes(notes: Iterable[str]) -> None:
    """Notes as plain sentences."""
    for note in notes:
        click.echo(f"Note: {note}.")


def show_json(values: Mapping[str, Any]) -> None:
    """Strict JSON on stdout."""
    click.echo(json.dumps(json_value(values), allow_nan=False, indent=2, ensure_ascii=False))


def check_path(path: str | None) -> None:
    """Refuse a figure's path before anything is computed."""
    if path is not None:
        check_file("--plot", path, FORMATS)


def save(path: str, ax: Axes) -> None:
    """Write the figure that holds some axes, in the format of the path's ending."""
    from ..plots.style import figure_of, render

    target = Path(path)
    write_whole("--plot", target, render(figure_of(ax), target.suffix[1:].lower()))


def mention(path: str | None) -> None:
    """Say where the figure is, if there is one."""
    if path:
        click.echo(f"Figure: {path}")


def check_folder(folder: str) -> None:
    """Refuse a folder that cannot be one before anything is computed."""
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise InvalidProblem("--output", "must be a directory", folder)


def write_in(folder: str, name: str, content: bytes) -> Path:
    """Write a file into a folder, made if need be."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable("--output", error, folder) from None
    write_whole("--output", Path(folder, name), content)
    return Path(folder, name)


Advance = Callable[[int, int], None]  # how much is done, and of how much, as verbs tell it
_BAR_STEPS = 1000  # steps of a bar over shares


@contextmanager
def watched(total: int, describe: Callable[[int], str]) -> Iterator[Advance | None]:
    """A bar on stderr with the time left, or None when nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(describe(0), total=total)
        yield lambda done, _: bar.update(task, completed=done, description=describe(done))


@contextmanager
def watched_share(words: str) -> Iterator[Callable[[float], None]]:
    """The same bar for work that tells the share of it that is done."""
    with watched(_BAR_STEPS, lambda done: words) as advance:

        def told(share: float) -> None:
            if advance is not None:
                advance(int(_BAR_STEPS * share), _BAR_STEPS)

        yield told


_MIN_WATCHED_POINTS = 200  # points from which a progress bar is worth its flicker
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
    if cost is None and points < _MIN_WATCHED_POINTS:
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
