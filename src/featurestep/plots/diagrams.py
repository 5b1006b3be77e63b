"""Spikes drawn over the step: where they are, how many, and which degrees they carry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.problem import interval
from ..core.types import Axes, FloatArray, xarray
from ..theory import CriticalStep
from .curves import shade_regimes
from .spectra import CARRIED, degree_colour
from .style import figure_of, label, legend_below, log_ticks, new_axes, short, spans_decades, styled

PANELS = {
    "published": r"published limit $n \to \infty$",
    "predicted": "predicted at finite $n$",
    "simulated": "simulated",
}
MAX_COLOURED_SPIKES = 5  # spikes that have a colour of their own
_REFUSED = "0.8"


@styled
def tracks(
    results: xarray.Dataset,
    critical: Iterable[CriticalStep] = (),
    simulated: Sequence[Sequence[float]] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Predicted spikes of a grid over one field, above the bulk and its edge.

    `results` is what `spectrum` gives for a grid, and `critical` what `critical_steps` gives: over
    the step exponent each degree's first spike is marked where it leaves the bulk. `simulated`
    has some singular values for each point.
    """
    ax = new_axes(height=2.7)[0] if ax is None else ax
    (field,) = map(str, results["status"].dims)
    x = results[field].values
    numeric = bool(np.issubdtype(x.dtype, np.number)) and len(x) > 1
    edge = np.sqrt(results["edge"].values)
    _bulk(ax, x, edge, numeric)
    over_exponent = field == "step_exponent" and numeric
    starts = _where_they_leave(critical, x, edge) if over_exponent else {}
    for degree, again, values in _lines(results):
        track = (
            (x, values) if again or degree not in starts else _from_edge(x, values, starts[degree])
        )
        style: dict[str, Any] = {
            "color": degree_colour(degree),
            "linestyle": "--" if again else "-",
        }
        if not numeric or np.isfinite(track[1]).sum() == 1:
            style.update(linestyle="none", marker="o", clip_on=False)
        ax.plot(*track, label="" if again else CARRIED[degree], **style)
    if simulated is not None:
        _dots(ax, x, simulated)
    _scales(ax, field, x, numeric)
    if over_exponent:
        shade_regimes(ax)
    for degree, place in starts.items():
        _mark_leaving(ax, degree, place)
    ax.set_xlabel(label(field))
    ax.set_ylabel(r"singular value of $F/\sqrt{n}$")
    legend_below(ax, title="spike carries", title_fontsize=7, ncols=5)
    return ax


def _bulk(ax: Axes, x: FloatArray, edge: FloatArray, numeric: bool) -> None:
    if not numeric:
        ax.plot(x, edge, color="0.35", linestyle="none", marker="_", markersize=14, label="edge")
        return
    ax.plot(x, edge, color="0.35", linewidth=1.0)
    ax.fill_between(x, 0.0, edge, color="0.88", linewidth=0, zorder=0.5)
    ax.text(0.98, 0.03, "bulk", transform=ax.transAxes, ha="right", color="0.35", fontsize=7)


def _dots(ax: Axes, x: FloatArray, simulated: Sequence[Sequence[float]]) -> None:
    """Every simulated value, with one name for all."""
    places = np.repeat(x, [len(values) for values in simulated])
    values = np.concatenate([np.asarray(values, dtype=float) for values in simulated])
    style: dict[str, Any] = {"linestyle": "none", "marker": "x", "color": "0.15", "markersize": 3.5}
    ax.plot(places, values, label="simulated", zorder=4, clip_on=False, **style)


def _scales(ax: Axes, field: str, x: FloatArray, numeric: bool) -> None:
    """A log axis for singular values, and for a field over decades, with plain numbers."""
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in ax.lines])
    ax.set_ylim(0.6 * np.nanmin(drawn), 1.3 * np.nanmax(drawn))
    log_ticks(ax, "y")
    if numeric:
        ax.set_xlim(x.min(), x.max())
        if spans_decades(field, x):
            log_ticks(ax, "x")


def _lines(results: xarray.Dataset) -> Iterator[tuple[int, int, FloatArray]]:
    """Degree, how many larger spikes have the same one, and the singular values over the grid."""
    degrees, location = results["degree"].values, results["location"].values
    found: dict[tuple[int, int], FloatArray] = {}
    for row, listed in enumerate(degrees):
        for rank, degree in enumerate(listed):
            if degree >= 0:
                key = (int(degree), int((listed[:rank] == degree).sum()))
                line = found.setdefault(key, np.full(len(degrees), np.nan))
                line[row] = np.sqrt(location[row, rank])
    for (degree, again), values in sorted(found.items()):
        yield degree, again, values


def _where_they_leave(
    critical: Iterable[CriticalStep], x: FloatArray, edge: FloatArray
) -> dict[int, tuple[float, float]]:
    """Exponent and edge at which each degree's first spike leaves the bulk, where in view."""
    known = {step.degree: step.spike_exponent for step in critical}
    return {
        degree: (at, float(np.interp(at, x, edge)))
        for degree, at in known.items()
        if at is not None and x.min() <= at <= x.max()
    }


def _from_edge(
    x: FloatArray, values: FloatArray, place: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """A track that starts where its spike leaves the bulk, between two points of the grid."""
    at = int(np.searchsorted(x, place[0]))
    return np.insert(x, at, place[0]), np.insert(values, at, place[1])


def _mark_leaving(ax: Axes, degree: int, place: tuple[float, float]) -> None:
    colour = degree_colour(degree)
    style: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": colour}
    ax.plot(*place, marker="o", markersize=4, linestyle="none", zorder=4, **style)
    offset: dict[str, Any] = {"xytext": (0, -9), "textcoords": "offset points", "ha": "center"}
    ax.annotate(f"{place[0]:.3f}", place, fontsize=6.5, color=colour, **offset)


@styled
def phase(results: xarray.Dataset, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """A phase diagram in panels: the published limit, the prediction and, if any, the simulation.

    `results` is the dataset of a `PhaseDiagram`. Colour is the number of spikes over the exponent
    and the second field; without a second field, whether a spike carries a degree.
    """
    kinds = [kind for kind in PANELS if f"{kind}_count" in results]
    if axes is None:
        axes = new_axes(rows=len(kinds), height=0.75 + 1.25 * len(kinds))
    fields = [str(name) for name in results["status"].dims if name != "step_exponent"]
    image, line = None, "white" if fields else "0.4"
    for ax, kind in zip(axes, kinds, strict=True):
        table, names = _table(results, kind, fields)
        image = _mesh(ax, results["step_exponent"].values, table, line, _scale(bool(fields)))
        _rows(ax, fields, names)
        ax.set_title(PANELS[kind], pad=3)
    assert image is not None
    axes[-1].set_xlabel(label("step_exponent"))
    bar = figure_of(axes[0]).colorbar(image, ax=list(axes), pad=0.02, aspect=30)
    if fields:
        simulated = ", simulated: mean" if "simulated" in kinds else ""
        bar.set_label(f"number of spikes{simulated}")
        bar.ax.tick_params(length=0)
        bar.set_ticks(
            range(MAX_COLOURED_SPIKES + 1),
            labels=[*map(str, range(MAX_COLOURED_SPIKES)), f"≥ {MAX_COLOURED_SPIKES}"],
        )
    else:
        bar.set_label("learned (share of seeds)" if "simulated" in kinds else "learned")
        bar.set_ticks([0, 1], labels=["no", "yes"] if "simulated" not in kinds else ["0", "1"])
    return list(axes)


def _scale(counts: bool) -> dict[str, Any]:
    """Colours of counts, one for each and one for all beyond, or of shares; grey is unknown."""
    from matplotlib import colormaps

    low, high = (-0.5, MAX_COLOURED_SPIKES + 0.5) if counts else (0, 1)
    colours = (
        colormaps["viridis"].resampled(MAX_COLOURED_SPIKES + 1) if counts else colormaps["Blues"]
    )
    return {"cmap": colours.with_extremes(bad=_REFUSED), "vmin": low, "vmax": high}


def _table(
    results: xarray.Dataset, kind: str, fields: Sequence[str]
) -> tuple[FloatArray, list[str]]:
    """Rows of a panel from below, and their names."""
    if fields:
        table = results[f"{kind}_count"].transpose(*fields, "step_exponent").values
        return table, [short(value) for value in results[fields[0]].values]
    learned = results[f"{kind}_learned"].transpose("degree", "step_exponent")
    first = 0 if np.any(results["published_learned"].sel(degree=0).values > 0) else 1
    shown = learned.sel(degree=slice(first, None))
    return shown.values, [CARRIED[int(k)] for k in shown["degree"].values]


def _mesh(ax: Axes, x: FloatArray, table: FloatArray, line: str, scale: dict[str, Any]) -> Any:
    """Cells around the points, with a line at each published end of an interval."""
    ends = _ends(x)
    rows = np.arange(len(table) + 1) - 0.5
    image = ax.pcolormesh(ends, rows, np.ma.masked_invalid(table), rasterized=True, **scale)
    for degree in range(2, 6):
        low = interval(degree)[0]
        if ends[0] < low < ends[-1]:
            ax.axvline(low, color=line, linewidth=0.7, linestyle=(0, (3, 2)))
    ax.set_xlim(ends[0], ends[-1])
    ax.spines[:].set_visible(True)
    return image


def _ends(x: FloatArray) -> FloatArray:
    """Ends of cells around ascending points."""
    if len(x) == 1:
        return np.array([x[0] - 0.01, x[0] + 0.01])
    middle = 0.5 * (x[1:] + x[:-1])
    return np.concatenate([[2 * x[0] - middle[0]], middle, [2 * x[-1] - middle[-1]]])


def _rows(ax: Axes, fields: Sequence[str], names: Sequence[str]) -> None:
    stride = -(-len(names) // 8)
    ax.set_yticks(range(0, len(names), stride), names[::stride])
    ax.set_ylabel(label(fields[0]) if fields else "spike carries")
    ax.tick_params(axis="y", length=0)
