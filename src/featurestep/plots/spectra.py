"""Spectra drawn: bulks with their spikes, tracks of spikes, what spikes carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import InvalidProblem
from ..core.spiked import Border
from ..core.types import Axes, FloatArray
from ..simulation import OF_WEIGHTS, SimulatedSpectrum
from ..theory import Spectrum, WeightSpectrum
from .style import PALETTE, new_axes, styled

# The simulated bulk, a grey behind the theory's lines, and a tick for each value beyond it.
BULK: dict[str, Any] = {"fill": True, "color": "0.72", "label": "simulated", "zorder": 0}
OUTSIDE: dict[str, Any] = {"linestyle": "none", "marker": 2, "color": "0.35", "markersize": 4}
CARRIED = ("1", r"$\kappa$", *(rf"$\kappa^{k}$" for k in range(2, 7)))
_LINEAR_EDGES = 2.5  # upper edges: spikes up to there share the bulk's linear axis
_BULK_SHARE = 0.62  # of the axis that the bulk takes where spikes lie far out
_BINS = 40
_PAIR = ("predicted", "simulated")


def degree_colour(degree: int) -> str:
    """The same colour for a degree in every figure; blue is the theory's own."""
    return (PALETTE[-1], *PALETTE[1:-1], PALETTE[0])[degree]


@styled
def features(
    theory: Spectrum, simulated: SimulatedSpectrum | None = None, ax: Axes | None = None
) -> Axes:
    """Singular values of F/√n: the predicted density and spikes over the simulated ones.

    A spike is named by the power of κ that it carries, with the squared overlap of the two. Where
    spikes lie far out, the axis is linear over the bulk and logarithmic beyond.
    """
    spikes = []
    for spike in theory.spikes:
        text = f"{CARRIED[spike.degree]}\n{spike.share:.2f}"
        spikes.append((spike.singular_value, degree_colour(spike.degree), text))
    edge = float(np.sqrt(theory.edge))
    drawn = None if simulated is None else (simulated, "trained", theory.border)
    ax = _panel(ax, theory.curve(), edge, spikes, drawn, r"$F/\sqrt{n}$")
    if theory.atom > 0.0:
        text = f"and {theory.atom:.0%} at 0"
        ax.text(0.02, 0.98, text, transform=ax.transAxes, va="top", fontsize=6.5)
    return ax


@styled
def weights(
    theory: Spectrum, simulated: SimulatedSpectrum | None = None, ax: Axes | None = None
) -> Axes:
    """Singular values of the weights W after training: their bulk and spikes."""
    law, spikes = theory.weights, []
    for spike in law.spikes:
        text = rf"$\beta$  {spike.alignment:.2f}" + "\n"
        text += rf"$\beta_{{*}}$ {spike.target_alignment:.2f}"
        spikes.append((spike.singular_value, PALETTE[1], text))
    drawn = None if simulated is None else (simulated, "weights", law.border)
    return _panel(ax, weight_curve(law), law.edges[1], spikes, drawn, "$W$")


def _panel(
    ax: Axes | None,
    curve: tuple[FloatArray, FloatArray],
    edge: float,
    spikes: Sequence[tuple[float, str, str]],
    drawn: tuple[SimulatedSpectrum, str, Border] | None,
    matrix: str,
) -> Axes:
    """A bulk and its spikes, each with colour and name, over the simulated ones, if any."""
    ax = new_axes()[0] if ax is None else ax
    s, density = curve
    top, places = _bulk_top(density), [x for x, *_ in spikes]
    if drawn is not None:
        simulated, variant, border = drawn
        ends, heights = histogram(simulated, border, variant, _BINS)
        ax.stairs(heights, ends, **BULK)
        top = max(top, _bulk_top(heights[heights > 0]))
        values = simulated.singular_values(variant)
        outside = values[values > ends[-1]]
        ax.plot(outside, np.full(outside.size, 0.02 * top), clip_on=False, **OUTSIDE)
        places += outside.tolist()
    ax.plot(s, np.minimum(density, 2.0 * top), color=PALETTE[0], label="predicted")
    _place(ax, edge, places, top)
    for rank, (x, colour, text) in enumerate(spikes):
        mark_spike(ax, x, colour, text, raised=rank % 2 == 1)
    note = ", log beyond the bulk" if ax.get_xscale() == "symlog" else ""
    ax.set_xlabel(f"singular value of {matrix}{note}")
    ax.set_ylabel("density")
    ax.legend(loc="upper right")
    return ax


def weight_curve(law: WeightSpectrum) -> tuple[FloatArray, FloatArray]:
    """Singular values of the weights' bulk, closer near its edges, and their density."""
    low, high = law.edges
    s = 0.5 * (low + high) - 0.5 * (high - low) * np.cos(np.linspace(0.0, np.pi, 300))
    return s, law.density(s)


@styled
def panels(theory: Spectrum, simulated: SimulatedSpectrum | None = None) -> list[Axes]:
    """All of one spectrum: features, what their spikes carry, weights."""
    rows = len(theory.spikes) * (1 if simulated is None else 2)
    heights = [2.2, *([0.5 + 0.19 * rows] if rows else []), 2.0]
    axes = new_axes(rows=len(heights), height=sum(heights), sharex=False, ratios=heights)
    features(theory, simulated, axes[0])
    if rows:
        overlaps(theory, simulated, axes[1])
    weights(theory, simulated, axes[-1])
    return axes


def _bulk_top(density: FloatArray) -> float:
    """The height of the bulk; a pole of the density at 0 does not set the scale."""
    return float(min(density.max(), 3.0 * np.quantile(density, 0.7)))


def histogram(
    simulated: SimulatedSpectrum, border: Border, variant: str, bins: int
) -> tuple[FloatArray, FloatArray]:
    """Ends of bins up to the border, and the density of the simulated singular values in them."""
    ends = np.linspace(0.0, np.sqrt(border.place), bins + 1)
    heights = np.diff(simulated.cumulative(ends**2, variant).mean) / np.diff(ends)
    if variant in OF_WEIGHTS:  # their law is that of the min(N, d) values that are not 0
        heights *= simulated.problem.d / min(simulated.problem.d, simulated.problem.width)
    return ends, heights


def _place(ax: Axes, edge: float, outer: Sequence[float], top: float) -> None:
    """Limits and scale of the axes: what lies far out is brought near by a logarithm."""
    furthest = max([edge, *outer])
    ax.set_ylim(0.0, 1.15 * top)
    if furthest <= _LINEAR_EDGES * edge:
        ax.set_xlim(0.0, max(1.12 * edge, 1.08 * furthest))
        return
    bend, right = 1.08 * edge, 1.3 * furthest
    decades = np.log10(right / bend) * _BULK_SHARE / (1.0 - _BULK_SHARE)
    # Of base 10: in its own units the linear part is 1/0.9 of what is asked for.
    ax.set_xscale("symlog", linthresh=bend, linscale=0.9 * decades)
    ax.set_xlim(0.0, right)
    ax.set_xticks(_ticks(bend, right))
    ax.set_xticks([], minor=True)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.axvline(bend, color="0.6", linewidth=0.6, linestyle=(0, (1, 2)), zorder=-1)


def _ticks(bend: float, right: float) -> list[float]:
    """Round numbers: even steps over the bulk, then 1, 2, 5, 10, … beyond."""
    from matplotlib.ticker import MaxNLocator

    inner = [float(x) for x in MaxNLocator(4).tick_values(0.0, bend) if 0.0 <= x < bend]
    rounds = [m * 10.0**k for k in range(-3, 7) for m in (1, 2, 5)]
    beyond = [x for x in rounds if bend * 1.25 < x < right]
    stride = -(-len(beyond) // 3)
    return inner + beyond[::-1][::stride][::-1]


def mark_spike(ax: Axes, x: float, colour: str, text: str, *, raised: bool = False) -> None:
    """A predicted spike: an arrow to its place on the axis, and its name above.

    A spike has a place and no density, so that nothing of it is measured by the vertical axis.
    `raised` lifts the name above that of a neighbour.
    """
    place: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "clip_on": False}
    ax.plot([x], [0.085], marker="v", markersize=5, color=colour, zorder=3, **place)
    words: dict[str, Any] = {"fontsize": 7, "color": colour, "linespacing": 1.1}
    words["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.3}
    offset = (0, 29 if raised else 6)
    line = {"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkB": 3} if raised else None
    ax.annotate(
        text,
        (x, 0.085),
        xycoords=ax.get_xaxis_transform(),
        xytext=offset,
        textcoords="offset points",
        ha="center",
        va="bottom",
        arrowprops=line,
        **words,
    )


@styled
def overlaps(
    theory: Spectrum, simulated: SimulatedSpectrum | None = None, ax: Axes | None = None
) -> Axes:
    """What each spike carries: squared overlaps of its left vector with H_k(κ)."""
    if not theory.spikes:
        raise InvalidProblem("theory", "must have spikes for their overlaps", theory.problem)
    rows = [np.array([[s.constant_overlap, *s.overlaps] for s in theory.spikes])]
    if simulated is not None:
        known = simulated.hermite_overlaps("trained").mean(axis=0)[: len(theory.spikes)]
        rows.append(np.full(rows[0].shape, np.nan))
        rows[1][: len(known)] = known
    table = np.stack(rows, axis=1).reshape(-1, rows[0].shape[1])  # a spike's rows together
    ax = new_axes(height=0.55 + 0.19 * len(table))[0] if ax is None else ax
    draw_overlaps(ax, table, len(theory.spikes))
    ax.set_xlabel(r"squared overlap with $H_k(\kappa)$")
    return ax


def draw_overlaps(ax: Axes, table: FloatArray, spikes: int) -> None:
    """A table of overlaps with H_k, a column for each k; one row for each spike, or a pair."""
    rows = len(table) // spikes
    ax.imshow(table, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    for (i, k), share in np.ndenumerate(table):
        if share >= 0.005:
            colour = "white" if share > 0.55 else "black"
            style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": 6.5}
            ax.text(k, i, f"{share:.2f}", color=colour, **style)
    names = [
        f"spike {rank}" if rows == 1 else f"{rank}, {kind}"
        for rank in range(1, spikes + 1)
        for kind in _PAIR[:rows]
    ]
    ax.set_yticks(range(len(names)), names)
    ax.set_xticks(range(table.shape[1]), [f"$H_{k}$" for k in range(table.shape[1])])
    ax.tick_params(length=0)
    for rank in range(1, spikes):
        ax.axhline(rank * rows - 0.5, color="0.3", linewidth=0.6)
    ax.spines[:].set_visible(True)
