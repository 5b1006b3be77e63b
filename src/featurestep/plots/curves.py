"""Results drawn: each function takes results and Axes, or makes its own, and returns the Axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import InvalidProblem
from ..core.grid import Grid
from ..core.problem import interval
from ..core.results import GridResult
from ..core.types import Axes, xarray
from ..theory import Limit, LossPrediction, Prediction
from .style import (
    PALETTE,
    label,
    legend_below,
    line_colour,
    line_names,
    new_axes,
    spans_decades,
    styled,
)

LIMIT_NAME = "published limit"
GROWN_NAME = "limit with norm growth"
_MEAN = r"$E[y\,|\,\kappa]$"
_BEST = {"logistic": r"log-odds given $\kappa$", "hinge": f"sign of {_MEAN}"}
_MIN_REGIME_WIDTH = 0.01  # of the axis: regimes thinner than that are not shaded


@styled
def learned(prediction: Prediction | LossPrediction, ax: Axes | None = None) -> Axes:
    """What the network computes along the learned direction, M(κ), over the best output."""
    ax = new_axes()[0] if ax is None else ax
    kappa = np.linspace(-3.0, 3.0, 241)
    best, found = prediction.best_along(kappa), prediction.learned(kappa)
    name = f"best, {_BEST.get(prediction.problem.loss, _MEAN)}"
    ax.plot(kappa, best, color="0.45", linestyle=(0, (4, 1.5)), label=name)
    ax.plot(kappa, found, color=PALETTE[0], label=r"learned, $M(\kappa)$")
    ax.set_xlabel(r"input along the learned direction $\kappa$")
    ax.set_ylabel("output")
    ax.set_title(rf"alignment $\gamma$ = {prediction.alignment:.3f}")
    legend_below(ax)
    return ax


@styled
def curve(results: xarray.Dataset, variable: str, ax: Axes | None = None) -> Axes:
    """A variable of a grid's results against its first field, one line for each of its second."""
    ax = new_axes()[0] if ax is None else ax
    field, *second = map(str, results[variable].dims)
    x = results[field].values
    numeric = np.issubdtype(x.dtype, np.number)
    values = results[variable].values.reshape(len(x), -1)
    names = line_names(second[0], results[second[0]].values) if second else [""]
    style: dict[str, Any] = {
        "marker": "o" if len(x) <= 15 else "",
        "linestyle": "-" if numeric else "none",
    }
    for i, (column, name) in enumerate(zip(values.T, names, strict=True)):
        ax.plot(x, column, color=line_colour(i, len(names)), label=name, **style)
    if spans_decades(field, x):
        ax.set_xscale("log")
    if values.dtype.kind == "f" and not np.isfinite(values).any():
        words: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7, "color": "0.35"}
        ax.text(0.5, 0.5, "no answer at any point: see the status", transform=ax.transAxes, **words)
    ax.set_xlabel(label(field))
    ax.set_ylabel(label(variable))
    return ax


@styled
def staircase(
    limits: Sequence[Limit],
    variable: str,
    ax: Axes,
    *,
    colour: Any = "black",
    name: str = "",
    second: bool = False,
) -> Axes:
    """The limit n → ∞ of each regime as a step over its interval of exponents.

    The dashes of a `second` staircase fall into the gaps of the first, where the two coincide.
    """
    inside = ax.get_xlim()
    steps = []
    for limit in sorted(limits, key=lambda limit: limit.degree or 0):
        low, high = np.clip(interval(limit.degree or 0), *inside)
        if low < high:
            steps.append((low, high, getattr(limit, variable)))
    if steps:
        edges = [steps[0][0], *(high for _, high, _ in steps)]
        style: dict[str, Any] = {"color": colour, "linewidth": 0.9, "linestyle": dashes(second)}
        ax.stairs([v for *_, v in steps], edges, baseline=None, label=name, **style)
    ax.set_xlim(inside)
    return ax


def dashes(second: bool = False) -> tuple[float, tuple[float, float]]:
    """A line style whose gaps the same style of a second line fills."""
    return (4.0 if second else 0.0, (4.0, 4.0))


@styled
def shade_regimes(ax: Axes, *, names: bool = True) -> Axes:
    """Tint every other regime of the step exponent and write its degree ℓ above."""
    left, right = inside = ax.get_xlim()
    for degree in range(1, int(1 / _MIN_REGIME_WIDTH)):
        low, high = np.clip(interval(degree), left, right)
        share = (high - low) / (right - left)
        if share < _MIN_REGIME_WIDTH:
            continue
        if degree % 2 == 0:
            ax.axvspan(low, high, color="0.93", linewidth=0, zorder=-1)
        if names and share > 0.04:
            text = rf"$\ell = {degree}$" if share > 0.12 else f"${degree}$"
            where = ((low + high) / 2, 1.02)
            ax.text(*where, text, transform=ax.get_xaxis_transform(), ha="center", fontsize=6.5)
    ax.set_xlim(inside)
    return ax


@styled
def curves(
    results: xarray.Dataset,
    variables: Sequence[str],
    stairs: Sequence[Sequence[Limit]] = (),
    *,
    finite: bool = True,
    also: Callable[[Axes, str], None] | None = None,
) -> list[Axes]:
    """Panels under each other, one for each variable, over a field they share.

    `stairs` has the limits for each line; without `finite` only they are drawn. `also` puts more
    on the panel of a variable.
    """
    field = str(results[variables[0]].dims[0])
    panels = new_axes(rows=len(variables), height=0.6 + 1.8 * len(variables))
    for row, (ax, variable) in enumerate(zip(panels, variables, strict=True)):
        curve(results, variable, ax)
        if field == "step_exponent":
            ax.set_xlim(*_span(results[field].values))
            shade_regimes(ax, names=row == 0)
        _add_stairs(ax, variable, stairs, keep_lines=finite)
        if also is not None:
            also(ax, variable)
        if row < len(variables) - 1:
            ax.set_xlabel("")
    legend_below(panels[0], shared=True)  # below the panels, where it hides no line
    return panels


def _add_stairs(
    ax: Axes, variable: str, stairs: Sequence[Sequence[Limit]], *, keep_lines: bool
) -> None:
    lines = list(ax.lines)
    for line, limits in zip(lines, stairs, strict=bool(stairs)):
        colour = line.get_color() if len(lines) > 1 else "black"
        name = LIMIT_NAME if line is lines[-1] else ""
        staircase(limits, variable, ax, colour=colour, name=name)
        if not keep_lines:
            line.set(linestyle="none", marker="o")
    if stairs and len(lines) == 1:
        lines[0].set_label("finite $n$" if keep_lines else "asked for")


def _span(values: Any) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return (low, high) if low < high else (low - 0.05, high + 0.05)


@styled
def compare(
    results: xarray.Dataset, variables: Sequence[str], title: str, ax: Axes | None = None
) -> Axes:
    """Several results of a kind against a grid's one field, in one panel with one title."""
    ax = new_axes(height=3.6)[0] if ax is None else ax
    for i, variable in enumerate(variables):
        curve(results, variable, ax)
        line = ax.lines[-1]
        line.set(color=line_colour(i, len(variables)), label=label(variable))
    ax.set_ylabel(title)
    legend_below(ax, fontsize=6.5)
    return ax


@styled
def by_entry(result: GridResult, ax: Axes | None = None, *, name: str, title: str) -> Axes:
    """A number that is an array, a line for each of its entries, against the one field."""
    at_most(result.problem, 1)
    ax = new_axes()[0] if ax is None else ax
    (entry,) = (dim for dim in result.dataset[name].dims if dim not in result.problem.dims)
    curve(result.dataset.dropna(entry, how="all", subset=[name]), name, ax)
    ax.set_ylabel(title)
    legend_below(ax)
    return ax


def at_most(grid: Grid, fields: int) -> None:
    """Refuse a grid over more fields than the figure can show."""
    if len(grid.dims) > fields:
        rule = f"takes grids over {'one field' if fields == 1 else 'one or two fields'}"
        raise InvalidProblem("plot", rule, grid.dims)
