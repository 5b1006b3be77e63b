"""The command line's files: whole or absent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InvalidProblem
from ..files import check_file, unwritable, write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".png", ".pdf", ".svg")


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


def save_in(folder: str, name: str, ax: Axes) -> Path:
    """Write a figure into a folder, made if need be."""
    from ..plots.style import figure_of, render

    return write_in(folder, name, render(figure_of(ax), Path(name).suffix[1:]))


def write_in(folder: str, name: str, content: bytes) -> Path:
    """Write a file into a folder, made if need be."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable("--output", error, folder) from None
    write_whole("--output", Path(folder, name), content)
    return Path(folder, name)
