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
_PIPED_WIDTH = 1000


def show_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout: as wide as it needs when piped, never coloured then."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(
        file=sys.stdout, width=None if sys.stdout.isatty() else _PIPED_WIDTH, highlight=False
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    lines = list(rows)
    for title, *column in zip(header, *lines, strict=True):
        is_text = title in ("", "meaning", "status")
        table.add_column(
            title.replace("_", " "),
            justify="left" if is_text else "right",
            min_width=0 if is_text and title else max(map(len, column)),
        )
    for line in lines:
        table.add_row(*line)
    with console.capture() as text:
        console.print(table)
    for line in text.get().splitlines():
        click.echo(line.rstrip())


def show_result(values: Mapping[str, Any], meanings: Mapping[str, str]) -> None:
    """One result: name, value and meaning of each number."""
    rows = [
        (name.replace("_", " "), cell(values[name]), meaning) for name, meaning in meanings.items()
    ]
    show_table(("", "value", "meaning"), rows)


def show_grid(results: xarray.Dataset, columns: Sequence[str]) -> None:
    """One row for each point; the status only where some point has no number."""
    rows = points(results)
    shown = [*fields_of(results), *columns]
    if any(row["status"] != "ok" for row in rows):
        shown.append("status")
    show_table(shown, [[cell(row[name]) for name in shown] for row in rows])


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
    where = ", ".join(f"{name} = {cell(last[name])}" for name in fields_of(results))
    count = f"{len(noted)} of {results['validity'].size} points"
    return [
        f"{count} leave the range of an approximation; the last, at {where}: {last['validity']}"
    ]


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
