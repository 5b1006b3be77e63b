"""The command line's answers: tables, notes and strict JSON."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click

from ..results import Result, Table, plain
from ..results.tables import ROOM


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
    click.echo(table.text(shutil.get_terminal_size().columns if watched else ROOM))


def show_notes(notes: Iterable[str]) -> None:
    """Notes as plain sentences."""
    for note in notes:
        click.echo(f"Note: {note}.")


def show_json(values: Mapping[str, Any]) -> None:
    """Strict JSON on stdout."""
    click.echo(json.dumps(plain(values), allow_nan=False, indent=2, ensure_ascii=False))
