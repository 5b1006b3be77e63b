"""Spectrum of the features before the step and after steps of the first three regimes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core.problem import Problem
from ..core.results import Progress
from ..core.spiked import Border
from ..core.types import Axes, FloatArray, xarray
from ..plots.spectra import BULK, CARRIED, OUTSIDE, degree_colour, histogram, mark_spike
from ..plots.style import PALETTE
from ..simulation import SimulatedSpectrum, simulated_spectrum
from ..theory import Spectrum, spectrum
from . import Claim, ShareDone
from .base import SHIFTED_SINE, drawn, over, sizes_of

EXPONENTS = (float("-inf"), 0.15, 0.29, 0.36)  # before the step, then ℓ = 1, 2, 3
MAX_SPACINGS = 10  # eigenvalues that the bulk's cumulative count may be off by
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


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Singular values of F/√n, predicted and simulated, at each exponent."""
    base, seeds = base_problem(1600 if quick else 4000), 4 if quick else 8
    data = over(progress, partial(_column, base, seeds), {"exponent": EXPONENTS})
    sizes = sizes_of(base)
    shown = f"n = {base.n}, d = {base.d}, N = {base.width}, n₀ = {base.n_step}"
    setting = (
        f"{shown}; η = {base.step_scale:g}·n^α, a factor chosen so that the published counts (of "
        "the limit n → ∞) are met at this n"
    )
    return data.assign_attrs(**sizes, step_scale=base.step_scale, setting=setting)


def _column(base: Problem, seeds: int, told: Progress, exponent: float) -> dict[str, Any]:
    """One exponent's numbers."""
    problem = at_exponent(base, exponent)
    law = spectrum(problem)
    found = simulated_spectrum(problem, seeds=seeds, top=_TOP, progress=told)
    padded = np.full((3, _MOST), np.nan)
    for i, spike in enumerate([spike for spike in law.spikes if spike.resolved][:_MOST]):
        padded[:, i] = spike.singular_value, spike.degree, spike.share
    s, density = (np.resize(values, _POINTS) for values in law.curve(_POINTS))
    return {
        **bulk_of(s, density, found, law.border, "trained", _BINS),
        "spike": ("rank", padded[0]),
        "spike_degree": ("rank", padded[1]),
        "spike_share": ("rank", padded[2]),
        "predicted_count": law.count,
        "count_without_factor": spectrum(problem.replace(step_scale=1.0)).count,
        "kolmogorov": _distance(law, found.eigenvalues(), law.border.place),
    }


def bulk_of(
    s: FloatArray,
    density: FloatArray,
    found: SimulatedSpectrum,
    border: Border,
    variant: str,
    bins: int,
) -> dict[str, Any]:
    """A predicted density, the simulated bulk, and what lies beyond its border."""
    ends, heights = histogram(found, border, variant, bins)
    return {
        "singular_value": ("point", s),
        "density": ("point", density),
        "bin_edge": ("bin_end", ends),
        "histogram": ("bin", heights),
        "border": np.sqrt(border.place),
        "largest": (("seed", "top"), found.singular_values(variant)),
        "simulated_count": ("seed", (found.eigenvalues(variant) > border.place).sum(axis=1)),
    }


def _distance(law: Spectrum, values: Any, border: float) -> float:
    """Largest difference of the cumulative distributions over the bulk, seeds together."""
    ordered = np.sort(values.ravel())
    inside = ordered[ordered <= border]
    ranks = np.arange(inside.size + 1) / ordered.size
    predicted = law.cumulative(inside)
    return float(max(np.abs(ranks[1:] - predicted).max(), np.abs(ranks[:-1] - predicted).max()))


@drawn(rows=2, columns=2, height=4.2)
def draw(data: xarray.Dataset, *panels: Axes) -> None:
    """A panel for each exponent: histogram, density, spikes named by their power of κ."""
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


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """As many spikes as predicted in every network, ℓ of them in regime ℓ; the bulk matches."""
    for i, alpha in enumerate(data["exponent"].values):
        column = data.isel(exponent=i)
        predicted = int(column["predicted_count"])
        found = column["simulated_count"].values
        where = "before the step" if np.isinf(alpha) else f"α = {alpha:g} (ℓ = {i})"
        counts = ", ".join(f"{count:.0f}" for count in found)
        text = f"{where}: {i} spikes published, {predicted} predicted, {counts} simulated"
        if not np.isinf(alpha):
            text += f" (with η = n^α: {int(column['count_without_factor'])} predicted)"
        yield Claim(text, bool(predicted == i and np.all(found == predicted)))
    distance, bound = float(data["kolmogorov"].max()), MAX_SPACINGS / data.attrs["width"]
    text = f"Kolmogorov distance of the bulks: {distance:.4f}, below {MAX_SPACINGS}/N = {bound:.4f}"
    yield Claim(text, bool(distance < bound))
