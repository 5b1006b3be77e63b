"""What the spikes carry: overlaps of left singular vectors with the polynomials H_k(κ)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.results import Progress
from ..core.types import Axes, xarray
from ..plots.curves import shade_regimes
from ..plots.simulation import SIMULATED_NAME, points
from ..plots.spectra import degree_colour, draw_overlaps
from ..plots.style import label
from ..simulation import simulated_spectrum
from ..theory import spectrum
from . import Claim, ShareDone
from .base import as_predicted, drawn, over, over_seeds, sizes_of
from .spectra import base_problem

EXPONENTS = (0.1, 0.15, 0.2, 0.25, 0.29, 0.33, 0.37)
DEGREES = (1, 2, 3)
_MOST = DEGREES[-1] + 2  # polynomials, from H_0 on


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Squared overlaps of the first three left vectors, predicted and simulated."""
    base, seeds = base_problem(1000 if quick else 4000), 8 if quick else 12

    def one(told: Progress, exponent: float) -> dict[str, Any]:
        problem = base.replace(step_exponent=exponent)
        found = simulated_spectrum(problem, seeds=seeds, top=len(DEGREES), progress=told)
        return {"simulated": (("seed", "rank", "hermite"), found.hermite_overlaps()[..., :_MOST])}

    mean, error = over_seeds(over(progress, one, {"step_exponent": EXPONENTS})["simulated"])
    at, fine = (
        _overlaps(spectrum(base.vary(step_exponent=each)).dataset)
        for each in (EXPONENTS, np.linspace(0.02, 0.4, 39))
    )
    data: xarray.Dataset = at.to_dataset(name="predicted").assign(
        simulated=mean, standard_error=error, curve=fine.rename(step_exponent="curve_exponent")
    )
    return data.assign_attrs(**sizes_of(base), seeds=seeds)


def _overlaps(found: xarray.Dataset) -> xarray.DataArray:
    """Of the resolved spikes, by rank, with H_0 … H_4; NaN where there is no such spike."""
    carried = found["overlap"].reindex(hermite_degree=range(_MOST))
    carried = carried.fillna(found["constant_overlap"]).where(found["resolved"])
    return carried.reindex(spike=list(DEGREES)).rename(spike="rank", hermite_degree="hermite")


@drawn(columns=2, height=2.6, sharex=False, ratios=(1.25, 1.0))
def draw(data: xarray.Dataset, left: Axes, right: Axes) -> None:
    """Spike k with H_k against the exponent, and all overlaps at the largest."""
    _curves(left, data)
    _table(right, data.isel(step_exponent=-1))


def _curves(ax: Axes, data: xarray.Dataset) -> None:
    ax.set_xlim(0.0, 0.4)
    ax.set_xticks([0.0, 0.1, 0.2, 0.3, 0.4])
    ax.set_ylim(0.0, 1.02)
    shade_regimes(ax)
    for k in DEGREES:
        at, colour = _carried(data, k), degree_colour(k)
        ax.plot(at["curve_exponent"], at["curve"], color=colour, label=f"spike {k} with $H_{k}$")
        points(ax, at["step_exponent"], at["simulated"], at["standard_error"], colour=colour)
    ax.set_xlabel(label("step_exponent"))
    ax.set_ylabel(r"squared overlap with $H_k(\kappa)$")
    ax.set_title(f"lines: theory; points: {SIMULATED_NAME}", pad=14)
    ax.legend(loc="lower left")


def _carried(data: xarray.Dataset, k: int) -> xarray.Dataset:
    """Of spike k with H_k, where there is such a spike."""
    at = data.sel(rank=k, hermite=k)
    return at.isel(step_exponent=np.isfinite(at["predicted"].values))


def _table(ax: Axes, at: xarray.Dataset) -> None:
    """Rows in pairs: each spike predicted, then simulated."""
    table = np.stack([at["predicted"], at["simulated"]], axis=1).reshape(2 * len(DEGREES), -1)
    draw_overlaps(ax, np.nan_to_num(table), len(DEGREES))
    ax.set_title(rf"all overlaps at $\alpha = {float(at['step_exponent']):g}$", pad=14)


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """Spike k carries the polynomial of degree k, as much as is predicted."""
    for k in DEGREES:
        yield as_predicted(f"overlap of spike {k} with H_{k}", _carried(data, k))
    last = data.isel(step_exponent=-1)["simulated"].sel(hermite=slice(1, None))
    carried = [int(last["hermite"][int(row.argmax())]) for row in last.values]
    text = f"the largest overlaps of spikes 1, 2, 3 are with H_k, k = {carried}, at the last α"
    yield Claim(text, carried == list(DEGREES))
