"""How problems and results are shown: in words, as tables, in colours."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .grid import Grid, as_grid
from .problem import Problem

# Okabe and Ito's palette: told apart by every kind of colour vision, and in order of contrast.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

ROOM = 240  # characters of a line where nobody watches
_GAP = "   "
_LEAST_MEANING = 30
_MAX_VALUES = 6  # values of a list that a cell spells out
_TEXT = {"", "meaning", "status", "variant", "quantity", "verdict", "method"}  # columns set left


@dataclass(frozen=True)
class Table:
    """Titles and rows of text. Titles and meanings may wrap to fit, values never do."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
        """A table whose cells are written by `cell`; names lose their underscores."""
        titles = tuple(title.replace("_", " ") for title in header)
        return Table(titles, tuple(tuple(map(cell, row)) for row in rows))

    def text(self, room: int = ROOM) -> str:
        """The table in lines of at most `room` characters, if its values allow it."""
        widths = self._widths(room)
        left = [title in _TEXT for title in self.header]
        header = _lines(self.header, widths, left, bottom=True)
        rule = " " + "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))
        body = [line for row in self.rows for line in _lines(row, widths, left)]
        return "\n".join(["", *header, rule, *body, ""])

    def html(self) -> str:
        """The table for a notebook."""
        head = "".join(f"<th>{html.escape(title)}</th>" for title in self.header)
        style = ['style="text-align:left"' if t in _TEXT else "" for t in self.header]
        body = "".join(
            "<tr>"
            + "".join(
                f"<td {s}>{html.escape(text)}</td>" for s, text in zip(style, row, strict=True)
            )
            + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _widths(self, room: int) -> list[int]:
        """Every column in full where there is room; if not, titles wrap and meanings the rest."""
        cells = [max(map(len, column), default=0) for column in self._columns()]
        full = [max(len(t), width) for t, width in zip(self.header, cells, strict=True)]
        rest = room - len(_GAP) * len(full)
        if sum(full) <= rest:
            return full
        if self.header[-1] == "meaning":
            return [*full[:-1], max(_LEAST_MEANING, rest - sum(full[:-1]))]
        words = [max(map(len, title.split(" "))) for title in self.header]
        return [max(pair) for pair in zip(words, cells, strict=True)]

    def _columns(self) -> Iterable[Sequence[str]]:
        return zip(*self.rows, strict=True) if self.rows else [()] * len(self.header)


def _lines(
    row: Sequence[str], widths: Sequence[int], left: Sequence[bool], *, bottom: bool = False
) -> list[str]:
    """One row as lines of text: as many as its longest cell needs."""
    wrapped = [
        textwrap.wrap(text, width, break_on_hyphens=False) or [""]
        for text, width in zip(row, widths, strict=True)
    ]
    height = max(map(len, wrapped))
    for i, cells in enumerate(wrapped):
        empty = [""] * (height - len(cells))
        wrapped[i] = [*empty, *cells] if bottom else [*cells, *empty]
    return [
        " "
        + _GAP.join(
            cell.ljust(width) if is_left else cell.rjust(width)
            for cell, width, is_left in zip(line, widths, left, strict=True)
        ).rstrip()
        for line in zip(*wrapped, strict=True)
    ]


def cell(value: Any) -> str:
    """A value as a table shows it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.5g}" if math.isfinite(value) else "–"
    if not isinstance(value, (list, tuple)):
        return str(value)
    shown = ", ".join(map(cell, value[:_MAX_VALUES]))
    return (shown + (", …" if len(value) > _MAX_VALUES else "")) or "–"


def plus_minus(mean: float, error: float | None) -> str:
    """A mean with its standard error, both to the error's second digit; NaN is none."""
    if not error or math.isnan(error):
        return cell(mean)
    decimals = 1 - math.floor(math.log10(error))
    if not 0 <= decimals <= 7:
        return f"{mean:.5g} ± {error:.2g}"
    return f"{mean:.{decimals}f} ± {error:.{decimals}f}"


def plain(value: Any) -> Any:
    """A value as strict JSON knows it: None for what is not finite."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    return plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def where(point: Mapping[str, Any]) -> str:
    """A grid point in words."""
    return ", ".join(f"{name} = {cell(value)}" for name, value in point.items())


def describe(problem: Problem | Grid, without: Sequence[str] = ()) -> list[str]:
    """A problem, or what a grid's points share, in a few lines of words and symbols."""
    grid = as_grid(problem)
    varied, base = {*without, *grid.varied}, grid.base
    given = {name: value for name, value in base.given.items() if name not in varied}
    told = ("activation", "target", "readout", "residual")
    words = [f"{name} {given[name]}" for name in told if name in given]
    initial = given.get("initial", "sphere")
    words += [f"initial weights {initial}"] if initial != "sphere" else []
    words += ["centred"] if given.get("centre") else []
    sizes = [
        f"{name} = {cell(getattr(base, name))}"
        for name in ("n", "d", "width", "n_step", "ridge", "noise_std")
        if name in given and not (name == "n_step" and "n" in varied)
    ]
    lines = [", ".join(words), ", ".join(sizes)]
    if not {"n", "d", "width"} & varied:
        lines[1] += f" (φ = {base.phi:.4g}, ψ = {base.psi:.4g})"
    if not {"n", "step_size", "step_exponent", "step_scale"} & varied:
        lines.append(f"step size η = {base.step_size:.5g}; {base.regime}")
    if grid.fixed:
        lines.append(f"{where(grid.fixed)} at every point")
    return [line for line in lines if line]


def shared_fields(problem: Problem | Grid) -> dict[str, Any]:
    """The same as values: a problem's fields, or those that a grid's points share."""
    grid = as_grid(problem)
    given = {n: v for n, v in grid.base.given.items() if n not in grid.varied}
    return {**given, **grid.fixed}
