"""Spectrum of the features before the step and after steps of the first three regimes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..plots.spectra import BULK, CARRIED, OUTSIDE, degree_colour, histogram, mark_spike
from ..plots.style import PALETTE, figure_of, new_axes, styled
from ..problem import Problem
from ..simulation import SimulatedSpectrum, simulated_spectrum
from ..theory import Spectrum, spectrum
from .base import SHIFTED_SINE, TWO_COLUMNS, Claim, PaperFigure, Report, parts, sizes_of

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPONENTS = (float("-inf"), 0.15, 0.29, 0.36)  # before the step, then ℓ = 1, 2, 3
SPACINGS = 10  # eigenvalues that the bulk's cumulative count may be off by
_BINS, _POINTS, _TOP, _MOST = 40, 400, 6, 4


def base_problem(n: int) -> Problem:
    """Three spikes in reach at small n, and enough samples in the step for the theory."""
    return Problem(
        activation=SHIFTED_SINE,
        centre=True,
        target="H1",
        n=n,
        d=n // 4,
        width=n // 2,
        n_step=4 * n,
        step_scale=2.5,
        step_exponent=0.3,
        ridge=0.1,
    )


def at_exponent(problem: Problem, exponent: float) -> Problem:
    """The problem at another step; −∞ is no step."""
    if np.isinf(exponent):
        return problem.replace(step_size=0.0, step_exponent=None, step_scale=1.0)
    return problem.replace(step_exponent=exponent)


def compute(quick: bool, progress: Report) -> xarray.Dataset:
    """Singular values of F/√n, predicted and simulated, at each exponent."""
    import xarray

    base, seeds = base_problem(1600 if quick else 4000), 4 if quick else 8
    told = parts(progress, [1.0] * len(EXPONENTS))
    columns = []
    for exponent in EXPONENTS:
        problem = at_exponent(base, exponent)
        law = spectrum(problem)
        found = simulated_spectrum(problem, seeds=seeds, top=_TOP, progress=next(told))
        columns.append(_column(law, found))
    joined: xarray.Dataset = xarray.concat(columns, "exponent")
    return joined.assign_coords(exponent=list(EXPONENTS)).assign_attrs(
        **sizes_of(base), step_scale=base.step_scale
    )


def _column(law: Spectrum, found: SimulatedSpectrum) -> xarray.Dataset:
    """One exponent's numbers."""
    import xarray

    border = law.border.place
    s, density = law.curve(_POINTS)
    ends, heights = histogram(found, law.border, "trained", _BINS)
    values = found.eigenvalues()  # (seeds, N)
    spikes = [spike for spike in law.spikes if spike.resolved][:_MOST]
    padded = np.full((3, _MOST), np.nan)
    for i, spike in enumerate(spikes):
        padded[:, i] = spike.singular_value, spike.degree, spike.share
    arrays: dict[str, Any] = {
        "singular_value": ("point", np.resize(s, _POINTS)),
        "density": ("point", np.resize(density, _POINTS)),
        "bin_edge": ("bin_end", ends),
        "histogram": ("bin", heights),
        "spike": ("rank", padded[0]),
        "spike_degree": ("rank", padded[1]),
        "spike_share": ("rank", padded[2]),
        "predicted_count": ((), law.count),
        "border": ((), np.sqrt(border)),
        "largest": (("seed", "top"), found.singular_values()),
        "simulated_count": ("seed", (values > border).sum(axis=1)),
        "kolmogorov": ((), _distance(law, values, border)),
    }
    return xarray.Dataset(arrays)


def _distance(law: Spectrum, values: Any, border: float) -> float:
    """Largest difference of the cumulative distributions over the bulk, seeds together."""
    ordered = np.sort(values.ravel())
    inside = ordered[ordered <= border]
    ranks = np.arange(inside.size + 1) / ordered.size
    predicted = law.cumulative(inside)
    return float(max(np.abs(ranks[1:] - predicted).max(), np.abs(ranks[:-1] - predicted).max()))


@styled
def draw(data: xarray.Dataset) -> Figure:
    """A panel for each exponent: histogram, density, spikes named by their power of κ."""
    panels = new_axes(rows=2, columns=2, width=TWO_COLUMNS, height=4.2)
    bend = float(data["border"].max()) * 1.04
    right = 1.3 * float(data["largest"].max())
    shared = panels[0]
    shared.set_xscale("symlog", linthresh=bend, linscale=0.7)
    shared.set_xlim(0.0, right)
    for i, ax in enumerate(panels):
        column = data.isel(exponent=i)
        _panel(ax, column)
        ticks = [tick for tick in (0, 0.5, 1, 2, 3, 5, 8, 12) if tick < right]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.set_xticks([], minor=True)
        ax.axvline(bend, ymax=0.3, color="0.6", linewidth=0.6, linestyle=(0, (1, 2)), zorder=-1)
        alpha = float(column["exponent"])
        count = int(column["predicted_count"])
        name = "before the step" if np.isinf(alpha) else rf"$\alpha = {alpha:g}$, $\ell = {i}$"
        plural = "spike" if count == 1 else "spikes"
        ax.set_title(f"{name}: {count} {plural}")
        if i >= 2:
            ax.set_xlabel(r"singular value of $F/\sqrt{n}$, log beyond the bulk")
        if i % 2 == 0:
            ax.set_ylabel("density")
    panels[0].legend(loc="upper right")
    return figure_of(panels[0])


def draw_bulk(ax: Axes, column: xarray.Dataset) -> float:
    """Simulated and predicted bulk; the height of the first."""
    heights = column["histogram"].values
    ax.stairs(heights, column["bin_edge"].values, **BULK)
    ax.plot(column["singular_value"], column["density"], color=PALETTE[0], label="predicted")
    return float(heights.max())


def _panel(ax: Axes, column: xarray.Dataset) -> None:
    top = draw_bulk(ax, column)
    values = column["largest"].values
    outside = values[values > float(column["border"])]
    ax.plot(outside, np.full(outside.size, 0.02 * top), **OUTSIDE)
    for rank in range(int(column["predicted_count"])):
        spike = column.isel(rank=rank)
        colour = degree_colour(int(spike["spike_degree"]))
        text = f"{CARRIED[int(spike['spike_degree'])]}\n{float(spike['spike_share']):.2f}"
        mark_spike(ax, float(spike["spike"]), colour, text)
    ax.set_ylim(0.0, 1.2 * top)


def check(data: xarray.Dataset) -> list[Claim]:
    """As many spikes as predicted in every network, ℓ of them in regime ℓ; the bulk matches."""
    claims = []
    for i, alpha in enumerate(data["exponent"].values):
        column = data.isel(exponent=i)
        predicted = int(column["predicted_count"])
        found = column["simulated_count"].values
        where = "before the step" if np.isinf(alpha) else f"α = {alpha:g} (ℓ = {i})"
        text = f"{where}: {i} spikes published, {predicted} predicted, {_list(found)} simulated"
        claims.append(Claim(text, bool(predicted == i and np.all(found == predicted))))
    distance, bound = float(data["kolmogorov"].max()), SPACINGS / data.attrs["width"]
    text = f"Kolmogorov distance of the bulks: {distance:.4f}, below {SPACINGS}/N = {bound:.4f}"
    claims.append(Claim(text, bool(distance < bound)))
    return claims


def _list(counts: Any) -> str:
    return ", ".join(str(int(count)) for count in counts)


FIGURE = PaperFigure(
    "spectrum", "spectrum of the features before and after the step", compute, draw, check
)
