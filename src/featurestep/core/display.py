"""How problems and results are shown: as tables, in words, in colours."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .grid import Grid, as_grid, label
from .problem import Problem

# Okabe and Ito's colours, which every kind of colour vision tells apart, in order of contrast.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

LINE_WIDTH = 240  # characters of a line when the output is not a terminal
_GAP = "   "  # between columns
_MIN_MEANING_WIDTH = 30  # characters
_MAX_VALUES = 6  # values of a list that a cell spells out
_LEFT_ALIGNED = {"", "meaning", "status", "variant", "quantity", "verdict", "method"}


@dataclass(frozen=True)
class Table:
    """A table of text. In narrow output titles and meanings wrap, values never do."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
        """A table of values, formatted by `cell`; underscores in titles become spaces."""
        titles = tuple(title.replace("_", " ") for title in header)
        return Table(titles, tuple(tuple(map(cell, row)) for row in rows))

    def text(self, line_width: int = LINE_WIDTH) -> str:
        """The table in lines of at most `line_width` characters, if its values allow it."""
        widths = self._widths(line_width)
        left = [title in _LEFT_ALIGNED for title in self.header]
        header = _lines(self.header, widths, left, bottom=True)
        rule = " " + "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))
        body = [line for row in self.rows for line in _lines(row, widths, left)]
        return "\n".join(["", *header, rule, *body, ""])

    def html(self) -> str:
        """The table for a notebook."""
        head = "".join(f"<th>{html.escape(title)}</th>" for title in self.header)
        style = ['style="text-align:left"' if t in _LEFT_ALIGNED else "" for t in self.header]
        body = "".join(
            "<tr>"
            + "".join(
                f"<td {s}>{html.escape(text)}</td>" for s, text in zip(style, row, strict=True)
            )
            + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _widths(self, line_width: int) -> list[int]:
        """Widths of the columns: unwrapped if they fit, else with meanings or titles wrapped."""
        cells = [max(map(len, column), default=0) for column in self._columns()]
        full = [max(len(t), width) for t, width in zip(self.header, cells, strict=True)]
        rest = line_width - len(_GAP) * len(full)
        if sum(full) <= rest:
            return full
        if self.header[-1] == "meaning":
            return [*full[:-1], max(_MIN_MEANING_WIDTH, rest - sum(full[:-1]))]
        words = [max(map(len, title.split(" "))) for title in self.header]
        return [max(pair) for pair in zip(words, cells, strict=True)]

    def _columns(self) -> Iterable[Sequence[str]]:
        return zip(*self.rows, strict=True) if self.rows else [()] * len(self.header)


def _lines(
    row: Sequence[str], widths: Sequence[int], left: Sequence[bool], *, bottom: bool = False
) -> list[str]:
    """One row as lines of text, as many as its longest cell needs."""
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
    """A value as text for a table."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.5g}" if math.isfinite(value) else "–"
    if not isinstance(value, (list, tuple)):
        return str(value)
    shown = ", ".join(map(cell, value[:_MAX_VALUES]))
    return (shown + (", …" if len(value) > _MAX_VALUES else "")) or "–"


def plus_minus(mean: float, error: float | None) -> str:
    """A mean ± its standard error, both to the error's second digit; no error for 0 or NaN."""
    if not error or math.isnan(error):
        return cell(mean)
    decimals = 1 - math.floor(math.log10(error))
    if not 0 <= decimals <= 7:
        return f"{mean:.5g} ± {error:.2g}"
    return f"{mean:.{decimals}f} ± {error:.{decimals}f}"


def json_value(value: Any) -> Any:
    """A value of types that strict JSON has; None for a number that is not finite."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): json_value(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    return json_value(value.tolist()) if hasattr(value, "tolist") else str(value)


def point_in_words(point: Mapping[str, Any]) -> str:
    """The coordinates of a grid point: `n = 200, ridge = 0.1`."""
    return ", ".join(f"{name} = {cell(value)}" for name, value in point.items())


def describe(problem: Problem | Grid, without: Sequence[str] = ()) -> list[str]:
    """A few lines on a problem, or on what the points of a grid have in common."""
    grid = as_grid(problem)
    varied, base = {*without, *grid.varied}, grid.base
    given = {name: value for name, value in base.given.items() if name not in varied}
    shown = ("activation", "target", "readout", "residual")
    words = [f"{name} {given[name]}" for name in shown if name in given]
    initial = given.get("initial", "sphere")
    words += [f"initial weights {initial}"] if initial != "sphere" else []
    words += ["centred"] if given.get("centre") else []
    words += [f"loss {given['loss']}"] if given.get("loss", "square") != "square" else []
    words += ["with intercept"] if given.get("intercept") else []
    words += [f"flip {cell(given['flip'])}"] if given.get("flip") else []
    words += _words_beyond(base, given)
    sizes = [
        f"{name} = {cell(getattr(base, name))}"
        for name in ("n", "d", "width", "n_step", "ridge", "noise_std")
        if name in given and not (name == "n_step" and "n" in varied)
    ]
    lines = [", ".join(words), ", ".join(sizes)]
    if not {"n", "d", "width"} & varied:
        lines[1] += f" (φ = {base.phi:.4g}, ψ = {base.psi:.4g})"
    if not {"n", "step_size", "step_exponent", "step_scale", "steps", "step_sizes"} & varied:
        lines.append(_steps_in_words(base))
    if grid.fixed:
        lines.append(f"{point_in_words(grid.fixed)} at every point")
    return [line for line in lines if line]


_ROWS = {
    "same": "the readout on the step's rows",
    "half": "half of the step's rows among the readout's",
}


def _words_beyond(base: Problem, given: Mapping[str, Any]) -> list[str]:
    """Fields that no plain problem has."""
    words = [_ROWS[given["rows"]]] if given.get("rows") in _ROWS else []
    if base.steps > 1 and given.get("batches") == "same":
        words.append("all steps on the same batch")
    if given.get("covariance") is None:
        return words
    found = f"covariance {label(given['covariance'])}"
    if base.input_covariance is not None and abs(base.input_covariance.factor - 1.0) > 1e-12:
        found += f" divided by {base.input_covariance.factor:.5g}"
    return [*words, found]


def _steps_in_words(base: Problem) -> str:
    if base.steps == 1:
        return f"step size η = {base.step_size:.5g}; {base.regime}"
    if len(set(base.step_sizes)) == 1:
        return f"{base.steps} steps of size η = {base.step_size:.5g}; {base.regime}"
    sizes = ", ".join(f"{size:.5g}" for size in base.step_sizes)
    return f"{base.steps} steps of sizes {sizes}"


def shared_fields(problem: Problem | Grid) -> dict[str, Any]:
    """The fields of a problem, or those that the points of a grid have in common."""
    grid = as_grid(problem)
    given = {n: v for n, v in grid.base.given.items() if n not in grid.varied}
    return {**given, **grid.fixed}


def gibibytes(size: float) -> str:
    """A number of bytes as text."""
    return f"{size / 2**30:.2f} GiB" if size >= 2**29 else f"{size / 2**20:.0f} MiB"
