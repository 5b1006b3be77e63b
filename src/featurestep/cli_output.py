"""The command line's answers: tables, strict JSON, and files that are whole or absent."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .errors import InvalidProblem
from .problem import Problem

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

FORMATS = (".png", ".pdf", ".svg")
_PIPED_WIDTH = 240
_DIVIDER = 3
_LEAST_MEANING = 30
_MOST_REASONS = 10


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
        is_text = title in ("", "meaning", "status")
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
        lines.append(f"step size η = {problem.eta:.5g}; {problem.regime}")
    return [line for line in lines if line]


def check_path(path: str | None) -> None:
    """Refuse a figure's path before anything is computed."""
    if path is None:
        return
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise InvalidProblem("--plot", f"must end in {', '.join(FORMATS)}", path)
    if not os.path.isdir(target.parent):
        raise InvalidProblem("--plot", "must be in a directory that exists", path)
    if os.path.isdir(target):
        raise InvalidProblem("--plot", "must be a file, not a directory", path)


def save(path: str, ax: Axes) -> None:
    """Write the figure that holds some axes, in the format of the path's ending."""
    from .plot_style import figure_of, render

    target = Path(path)
    _write(target, "--plot", render(figure_of(ax), target.suffix[1:].lower()))


def save_in(folder: str, name: str, ax: Axes) -> Path:
    """Write a figure into a folder, made if need be."""
    from .plot_style import figure_of, render

    content = render(figure_of(ax), Path(name).suffix[1:])
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable("--output", error, folder) from None
    _write(Path(folder, name), "--output", content)
    return Path(folder, name)


def _write(path: Path, option: str, content: bytes) -> None:
    """Write a file whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        os.replace(partial, path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise _unwritable(option, error, path) from None


def _unwritable(option: str, error: OSError, path: object) -> InvalidProblem:
    return InvalidProblem(option, f"must be writable ({error.strerror})", str(path))
