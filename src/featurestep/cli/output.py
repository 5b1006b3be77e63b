"""What the command line gives: tables, notes and strict JSON; files, whole or absent."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from ..core.checks import check_file, unwritable, write_whole
from ..core.display import LINE_WIDTH, Table, json_value
from ..core.errors import InvalidProblem
from ..core.results import Result
from ..core.types import Axes

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
