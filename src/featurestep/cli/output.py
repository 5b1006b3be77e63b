"""The command line's answers: tables, notes and strict JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..problem import Problem
from .options import Request

if TYPE_CHECKING:
    import xarray

_PIPED_WIDTH = 240
_DIVIDER = 3
_LEAST_MEANING = 30
_MOST_REASONS = 10
_TEXT = ("", "meaning", "status", "variant", "quantity", "verdict", "method")  # columns set left


def show_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout: titles and meanings may wrap to fit a terminal, values never do."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    lines = list(rows)
    titles = [title.replace("_", " ") for title in header]
    console = Console(file=sys.stdout, highlight=False)
    room = console.width if console.is_terminal else _PIPED_WIDTH
    widths = _column_widths(titles, lines, room)
    console.width = sum(widths) + _DIVIDER * len(widths)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for title, width in zip(titles, widths, strict=True):
        is_text = title in _TEXT
        table.add_column(title, justify="left" if is_text else "right", width=width)
    for line in lines:
        table.add_row(*line)
    with console.capture() as text:
        console.print(table)
    for printed in text.get().splitlines():
        click.echo(printed.rstrip())


def _column_widths(titles: Sequence[str], lines: Sequence[Sequence[str]], room: int) -> list[int]:
    """Every column in full where there is room; if not, titles wrap and meanings take the rest."""
    cells = [max(map(len, column)) for column in zip(*lines, strict=True)]
    full = [max(len(title), width) for title, width in zip(titles, cells, strict=True)]
    rest = room - _DIVIDER * len(titles)
    if sum(full) <= rest:
        return full
    if titles[-1] == "meaning":
        return [*full[:-1], max(_LEAST_MEANING, rest - sum(full[:-1]))]
    words = [max(map(len, title.split(" "))) for title in titles]
    return [max(pair) for pair in zip(words, cells, strict=True)]


def show_result(values: Mapping[str, Any], meanings: Mapping[str, str]) -> None:
    """One result: name, value and meaning of each number."""
    rows = [
        (name.replace("_", " "), cell(values[name]), meaning) for name, meaning in meanings.items()
    ]
    show_table(("", "value", "meaning"), rows)


def show_grid(results: xarray.Dataset, columns: Sequence[str]) -> None:
    """One row for each point; where some point has no number, a status and the reasons below."""
    rows = points(results)
    shown = [*fields_of(results), *columns]
    refused = [row for row in rows if row["status"] != "ok"]
    reasons = [f"no number at {_where(results, row)}: {row['status']}" for row in refused]
    if refused:
        shown.append("status")
        rows = [row if row["status"] == "ok" else {**row, "status": "see below"} for row in rows]
    show_table(shown, [[cell(row[name]) for name in shown] for row in rows])
    show_notes(reasons[:_MOST_REASONS])
    if len(reasons) > _MOST_REASONS:
        show_notes([f"{len(reasons) - _MOST_REASONS} more points have no number; --json has all"])


def show_notes(notes: Iterable[str]) -> None:
    """Notes as plain sentences."""
    for note in notes:
        click.echo(f"Note: {note}.")


def grid_notes(results: xarray.Dataset) -> list[str]:
    """How many points carry a validity note, and the last of them in full."""
    noted = [row for row in points(results) if row.get("validity")]
    if not noted:
        return []
    last = noted[-1]
    where = _where(results, last)
    count = f"{len(noted)} of {results['validity'].size} points"
    reasons = "; ".join(last["validity"])
    return [f"{count} leave the range of an approximation; the last, at {where}: {reasons}"]


def _where(results: xarray.Dataset, row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {cell(row[name])}" for name in fields_of(results))


def cell(value: Any) -> str:
    """A value as the table shows it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.5g}" if math.isfinite(value) else "–"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def fields_of(results: xarray.Dataset) -> tuple[str, ...]:
    """The varied fields, in the order asked for."""
    return tuple(map(str, results["status"].dims))


def points(results: xarray.Dataset) -> list[dict[str, Any]]:
    """A grid's points as rows of plain values, None where there is no number."""
    flat = results.stack(point=fields_of(results)).reset_index("point")
    names = [*fields_of(results), *map(str, results.data_vars)]
    columns = {name: flat[name].values.tolist() for name in names}
    if "validity" in columns:
        columns["validity"] = [text.split("\n") if text else [] for text in columns["validity"]]
    return [
        {name: plain(column[i]) for name, column in columns.items()}
        for i in range(flat.sizes["point"])
    ]


def joined(parts: Sequence[xarray.Dataset]) -> xarray.Dataset:
    """The results of one grid, or of one for each n."""
    import xarray

    return parts[0] if len(parts) == 1 else xarray.concat(parts, dim="n", data_vars="all")


def plain(value: Any) -> Any:
    """A value as strict JSON knows it: None for what is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def show_json(values: Mapping[str, Any]) -> None:
    """Strict JSON on stdout."""
    click.echo(json.dumps(plain(values), allow_nan=False, indent=2, ensure_ascii=False))


def describe(problem: Problem, varied: Sequence[str] = ()) -> list[str]:
    """The problem in a few lines of words and symbols, without the varied fields."""
    given = {name: value for name, value in problem.given.items() if name not in varied}
    words = [
        f"{name} {given[name]}" for name in ("activation", "target", "readout") if name in given
    ]
    words += [f"residual {given['residual']}"] if "residual" in given else []
    initial = given.get("initial", "sphere")
    words += [f"initial weights {initial}"] if initial != "sphere" else []
    words += ["centred"] if given.get("centre") else []
    sizes = [
        f"{name} = {cell(getattr(problem, name))}"
        for name in ("n", "d", "width", "n_step", "ridge", "noise_std")
        if name in given and not (name == "n_step" and "n" in varied)
    ]
    lines = [", ".join(words), ", ".join(sizes)]
    if not {"n", "d", "width"} & set(varied):
        lines[1] += f" (φ = {problem.phi:.4g}, ψ = {problem.psi:.4g})"
    if not {"n", "step_size", "step_exponent", "step_scale"} & set(varied):
        lines.append(f"step size η = {problem.step_size:.5g}; {problem.regime}")
    return [line for line in lines if line]


def shown_problem(problem: Problem, request: Request) -> str:
    """The part of a problem that is the same at every point, in words."""
    lines = describe(problem, request.varied)
    ratios = ", ".join(f"{name} = {cell(value)}" for name, value in request.ratios.items())
    return "\n".join([*lines, f"{ratios} at every n"] if ratios else lines)


def fixed_fields(problem: Problem, request: Request) -> dict[str, Any]:
    """The same as values."""
    given = {name: value for name, value in problem.given.items() if name not in request.varied}
    return {**given, **request.ratios}
