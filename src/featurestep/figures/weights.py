"""Spectrum of the weights: a bulk before the step, a bulk and one spike along β after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..plots.spectra import OUTSIDE, histogram, mark_spike, weight_curve
from ..plots.style import PALETTE, figure_of, new_axes, styled
from ..simulation import SimulatedSpectrum, simulated_spectrum
from ..theory import WeightSpectrum, spectrum
from .base import TWO_COLUMNS, Claim, PaperFigure, Report, agreement, parts, sizes_of
from .spectra import at_exponent, base_problem, draw_bulk

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPONENT = 0.15
_VARIANTS = ("initial_weights", "weights")
_BINS, _TOP = 36, 4


def compute(quick: bool, progress: Report) -> xarray.Dataset:
    """Singular values of W0 and W, and how their largest are aligned."""
    import xarray

    problem = base_problem(1200 if quick else 4000).replace(step_exponent=EXPONENT)
    laws = [spectrum(at_exponent(problem, a)).weights for a in (float("-inf"), EXPONENT)]
    (told,) = parts(progress, [1.0])
    seeds = 12 if quick else 16
    found = simulated_spectrum(problem, seeds=seeds, variants=_VARIANTS, top=_TOP, progress=told)
    columns = [_column(law, found, name) for law, name in zip(laws, _VARIANTS, strict=True)]
    joined: xarray.Dataset = xarray.concat(columns, "variant").assign_coords(
        variant=list(_VARIANTS)
    )
    return joined.assign_attrs(**sizes_of(problem), step_exponent=EXPONENT)


def _column(law: WeightSpectrum, found: SimulatedSpectrum, variant: str) -> xarray.Dataset:
    import xarray

    s, density = weight_curve(law)
    border = float(np.sqrt(law.border.place))
    ends, heights = histogram(found, law.border, variant, _BINS)
    spike = law.spike
    overlaps = found.direction_overlaps(variant)
    nothing = (np.nan, np.nan, np.nan)
    place, beta, target = nothing if spike is None else (
        spike.singular_value, spike.alignment, spike.target_alignment
    )  # fmt: skip
    arrays: dict[str, Any] = {
        "singular_value": ("point", s),
        "density": ("point", density),
        "bin_edge": ("bin_end", ends),
        "histogram": ("bin", heights),
        "border": ((), border),
        "spike": ((), place),
        "spike_beta": ((), beta),
        "spike_target": ((), target),
        "largest": (("seed", "top"), found.singular_values(variant)),
        "beta": ("seed", overlaps["beta"][:, 0]),
        "target": ("seed", overlaps["target"][:, 0]),
        "simulated_count": ("seed", (found.eigenvalues(variant) > border**2).sum(axis=1)),
    }
    return xarray.Dataset(arrays)


@styled
def draw(data: xarray.Dataset) -> Figure:
    """W0 and W side by side over the same axis."""
    panels = new_axes(columns=2, width=TWO_COLUMNS, height=2.3)
    right = 1.1 * float(data["largest"].max())
    titles = ("$W_0$, before the step", rf"$W$, after a step with $\alpha = {EXPONENT:g}$")
    for i, ax in enumerate(panels):
        _panel(ax, data.isel(variant=i))
        ax.set_xlim(0.0, right)
        ax.set_title(titles[i])
        ax.set_xlabel("singular value of the weights")
    panels[0].set_ylabel("density")
    panels[0].legend(loc="upper right")
    return figure_of(panels[0])


def _panel(ax: Axes, column: xarray.Dataset) -> None:
    top = draw_bulk(ax, column)
    ax.set_ylim(0.0, 1.15 * top)
    x = float(column["spike"])
    if np.isnan(x):
        return
    largest = column["largest"].values[:, 0]
    ax.plot(largest, np.full(largest.size, 0.02 * top), **OUTSIDE)
    text = rf"$\cos^2$ with $\beta$: {float(column['spike_beta']):.2f}"
    text += "\n" + rf"with $\beta_{{*}}$: {float(column['spike_target']):.2f}"
    mark_spike(ax, x, PALETTE[1], text)


def check(data: xarray.Dataset) -> list[Claim]:
    """One spike after the step, none before, where and along what is predicted."""
    before, after = (data["simulated_count"].isel(variant=i).values for i in (0, 1))
    counts = f"at most {before.max():g} outliers before, {after.min():g} to {after.max():g} after"
    one = Claim(
        f"one spike in each of {after.size} networks, none before the step: {counts}",
        bool(np.all(before == 0) and np.all(after == 1)),
    )
    trained = data.isel(variant=1)
    claims = [one]
    for words, predicted, name in (
        ("place of the spike", "spike", "largest"),
        ("squared overlap with β", "spike_beta", "beta"),
        ("squared overlap with β⋆", "spike_target", "target"),
    ):
        values = trained[name].values
        values = values[:, 0] if values.ndim == 2 else values
        mean, error = values.mean(), values.std(ddof=1) / values.size**0.5
        words += f", {float(trained[predicted]):.4f} predicted and {mean:.4f} simulated"
        claims.append(agreement(words, trained[predicted], mean, error))
    return claims


FIGURE = PaperFigure("weights", "spectrum of the weights with its one spike", compute, draw, check)
