"""What the spikes carry: overlaps of left singular vectors with the polynomials H_k(κ)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..plots.curves import shade_regimes
from ..plots.simulation import SIMULATED_NAME, points
from ..plots.spectra import degree_colour, draw_overlaps
from ..plots.style import figure_of, label, new_axes, styled
from ..simulation import simulated_spectrum
from ..theory import spectrum
from .base import TWO_COLUMNS, Claim, PaperFigure, Report, as_predicted, parts, sizes_of
from .spectra import base_problem

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPONENTS = (0.1, 0.15, 0.2, 0.25, 0.29, 0.33, 0.37)
DEGREES = (1, 2, 3)


def compute(quick: bool, progress: Report) -> xarray.Dataset:
    """Squared overlaps of the first three left vectors, predicted and simulated."""
    import xarray

    base, seeds = base_problem(1000 if quick else 4000), 8 if quick else 12
    told = parts(progress, [1.0] * len(EXPONENTS))
    arrays = []
    for exponent in EXPONENTS:
        problem = base.replace(step_exponent=exponent)
        found = simulated_spectrum(problem, seeds=seeds, top=len(DEGREES), progress=next(told))
        arrays.append(found.hermite_overlaps())  # (seeds, rank, H_0 … H_6)
    simulated = np.stack(arrays)[..., : DEGREES[-1] + 2]
    at = spectrum(base.vary(step_exponent=EXPONENTS)).dataset
    fine = spectrum(base.vary(step_exponent=np.linspace(0.02, 0.4, 39))).dataset
    axes = ("step_exponent", "rank", "hermite")
    data: dict[str, Any] = {
        "predicted": (axes, _overlaps(at)),
        "simulated": (axes, simulated.mean(axis=1)),
        "standard_error": (axes, simulated.std(axis=1, ddof=1) / seeds**0.5),
        "curve": (("curve_exponent", *axes[1:]), _overlaps(fine)),
    }
    coords = {
        "step_exponent": list(EXPONENTS),
        "curve_exponent": fine["step_exponent"].values,
        "rank": list(DEGREES),
        "hermite": list(range(simulated.shape[-1])),
    }
    return xarray.Dataset(data, coords, attrs={**sizes_of(base), "seeds": seeds})


def _overlaps(found: xarray.Dataset) -> Any:
    """Of the resolved spikes, by rank, with H_0 … H_4; NaN where there is no such spike."""
    every = np.concatenate([found["constant_overlap"].values[..., None], found["overlap"]], axis=2)
    every[~found["resolved"].values] = np.nan
    every = every[:, : len(DEGREES), : DEGREES[-1] + 2]
    out = np.full((len(every), len(DEGREES), DEGREES[-1] + 2), np.nan)
    out[:, : every.shape[1]] = every
    return out


@styled
def draw(data: xarray.Dataset) -> Figure:
    """Spike k with H_k against the exponent, and all overlaps at the largest."""
    size: dict[str, Any] = {"width": TWO_COLUMNS, "height": 2.6, "ratios": (1.25, 1.0)}
    left, right = new_axes(columns=2, sharex=False, **size)
    _curves(left, data)
    _table(right, data.isel(step_exponent=-1))
    return figure_of(left)


def _curves(ax: Axes, data: xarray.Dataset) -> None:
    ax.set_xlim(0.0, 0.4)
    ax.set_xticks([0.0, 0.1, 0.2, 0.3, 0.4])
    ax.set_ylim(0.0, 1.02)
    shade_regimes(ax)
    for k in DEGREES:
        at, colour = _carried(data, k), degree_colour(k)
        ax.plot(at["curve_exponent"], at["curve"], color=colour, label=f"spike {k} with $H_{k}$")
        mean, error = at["simulated"], at["standard_error"]
        points(ax, at["step_exponent"], mean, error, colour=colour)
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


def check(data: xarray.Dataset) -> list[Claim]:
    """Spike k carries the polynomial of degree k, as much as is predicted."""
    claims = [as_predicted(f"overlap of spike {k} with H_{k}", _carried(data, k)) for k in DEGREES]
    last = data.isel(step_exponent=-1)["simulated"].sel(hermite=slice(1, None))
    carried = [int(last["hermite"][int(row.argmax())]) for row in last.values]
    text = f"the largest overlaps of spikes 1, 2, 3 are with H_k, k = {carried}, at the last α"
    claims.append(Claim(text, carried == list(DEGREES)))
    return claims


FIGURE = PaperFigure(
    "alignment", "overlaps of the singular vectors with polynomials of κ", compute, draw, check
)
