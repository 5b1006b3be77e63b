"""The figures of results for which networks were run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidProblem
from ..grid import Grid
from ..results import GridResult
from ..theory import predict
from .curves import curve
from .simulation import agreement, draws, gaps, simulated
from .style import PALETTE, legend_below, line_colour, log_ticks, new_axes, spans_decades, styled

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

    from ..meeting.comparison import Comparison
    from ..simulation import FeatureGap, SimulatedSpectrum, Simulation

ERRORS = ("train_loss", "test_error")
GAP = r"$\|F - F_\ell\|_{\mathrm{op}}/\sqrt{n}$"
_CURVE_POINTS = 61


def at_most(grid: Grid, fields: int) -> None:
    """Refuse a grid over more fields than the figure can show."""
    if len(grid.dims) > fields:
        rule = f"takes grids over {'one field' if fields == 1 else 'one or two fields'}"
        raise InvalidProblem("plot", rule, grid.dims)


@styled
def simulated_spectrum(result: SimulatedSpectrum, ax: Axes | None = None) -> Axes:
    """Each seed's largest singular values of every variant, by rank."""
    ax = new_axes()[0] if ax is None else ax
    for i, name in enumerate(result.variants):
        values = result.singular_values(name)
        ranks = np.tile(np.arange(1, values.shape[1] + 1), len(values))
        colour = line_colour(i, len(result.variants))
        ax.plot(ranks, values.ravel(), ".", color=colour, label=name, markersize=4)
    log_ticks(ax, "y")
    ax.set_xlabel("rank")
    ax.set_ylabel("singular value")
    if len(result.variants) > 1:
        legend_below(ax)
    return ax


@styled
def gap(result: FeatureGap, ax: Axes | None = None) -> Axes:
    """The gap against the degree: a dot for each seed, and the mean."""
    ax = new_axes()[0] if ax is None else ax
    x = np.repeat(result.degrees, len(result.seeds))
    ax.plot(x, result.values.ravel(), ".", color="0.7", markersize=3)
    ax.plot(result.degrees, result.gap, "o-", color=PALETTE[0])
    ax.set_xticks(list(result.degrees))
    ax.set_xlabel(r"degree $\ell$")
    ax.set_ylabel(GAP)
    return ax


def simulation(result: Simulation, ax: Axes | None = None) -> Axes:
    """Both errors with error bars: against the first field, or each variant's on its own."""
    if not isinstance(result.problem, Grid):
        return draws(result.dataset, ax)
    at_most(result.problem, 2 if len(result.variants) == 1 else 1)
    mean = _errors(result.mean, result.problem)
    several = len(result.seeds) > 1
    error = _errors(result.standard_error, result.problem) if several else None
    return simulated(mean, error, ERRORS)[0]


def comparison(result: Comparison, ax: Axes | None = None) -> Axes:
    """The theory's curves with the simulated points, or the gaps of one problem."""
    if not isinstance(result.problem, Grid):
        return gaps(result.rows, ax)
    at_most(result.problem, 2)
    found = result.simulation
    mean, error = (_errors(each, found.problem) for each in (found.mean, found.standard_error))
    return agreement(predict(_refined(result.problem)).dataset, mean, error, ERRORS)[0]


def _refined(grid: Grid) -> Grid:
    """The same grid with enough points for a curve along the first field, if a number."""
    name, values = next(iter(grid.axes.items()))
    if len(values) < 2 or not all(type(value) in (int, float) for value in values):
        return grid
    low, high = min(values), max(values)
    spaced = np.geomspace if spans_decades(name, low, high) else np.linspace
    dense: Sequence[Any] = [float(f"{x:.12g}") for x in spaced(low, high, _CURVE_POINTS)]
    if all(type(value) is int for value in values):
        dense = list(dict.fromkeys(round(x) for x in dense))
    return grid.base.vary(**{**grid.axes, name: dense}, **grid.fixed)


def _errors(results: xarray.Dataset, grid: Any) -> xarray.Dataset:
    """Both errors by the fields asked for, and by variant where there are several."""
    errors = results[list(ERRORS)]
    if errors.sizes["variant"] == 1:
        errors = errors.squeeze("variant", drop=True)
    return errors.transpose(*grid.dims, ...)


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
