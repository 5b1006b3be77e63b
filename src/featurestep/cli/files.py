"""The command line's files: whole or absent."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InvalidProblem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".png", ".pdf", ".svg")


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
    from ..plot_style import figure_of, render

    target = Path(path)
    _write(target, "--plot", render(figure_of(ax), target.suffix[1:].lower()))


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
    from ..plot_style import figure_of, render

    return write_in(folder, name, render(figure_of(ax), Path(name).suffix[1:]))


def write_in(folder: str, name: str, content: bytes) -> Path:
    """Write a file into a folder, made if need be."""
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
        raise _unwritable(option, error, path) from None
    finally:
        with suppress(OSError):
            partial.unlink()


def _unwritable(option: str, error: OSError, path: object) -> InvalidProblem:
    return InvalidProblem(option, f"must be writable ({error.strerror})", str(path))
