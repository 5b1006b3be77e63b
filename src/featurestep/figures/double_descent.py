"""Double descent of the untrained network in its width, at small ridge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..plots.simulation import points
from ..plots.style import PALETTE, figure_of, label, new_axes, styled
from ..problem import Problem
from ..simulation import simulate
from ..theory import predict
from .base import Claim, PaperFigure, Report, as_predicted, means, parts

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

RIDGES = (1e-5, 1e-3, 1e-1)
RATIOS = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.35, 2.0, 4.0)  # N/n


def compute(quick: bool, progress: Report) -> xarray.Dataset:
    """Test errors of the untrained network against its width."""
    n, seeds = (400, 16) if quick else (1000, 24)
    problem = Problem(n=n, d=n // 2, width=n, step_size=0.0, ridge=1e-3, noise_std=0.3)
    widths = [round(ratio * n) for ratio in RATIOS]
    grid = problem.vary(width=widths, ridge=RIDGES)
    (told,) = parts(progress, [1.0])
    found = simulate(grid, seeds=seeds, variants=("initial",), progress=told)
    mean, error = means(found, "test_error", "initial")
    fine = np.unique(np.round(n * np.geomspace(0.2, 5.0, 121)).astype(int))
    curve = predict(problem.vary(width=fine, ridge=RIDGES))["test_error"]
    data: xarray.Dataset = predict(grid)[["test_error"]].rename(test_error="predicted")
    data = data.assign(
        simulated=mean, standard_error=error, curve=curve.rename(width="curve_width")
    )
    return data.assign_attrs(n=n, d=problem.d, noise_std=problem.noise_std, seeds=seeds)


@styled
def draw(data: xarray.Dataset) -> Figure:
    """A curve and points for each ridge, over N/n."""
    (ax,) = new_axes(height=2.5)
    n = data.attrs["n"]
    for i, ridge in enumerate(data["ridge"].values):
        curve, at = data["curve"].sel(ridge=ridge), data.sel(ridge=ridge)
        power = int(np.round(np.log10(ridge)))
        name = rf"$\lambda = 10^{{{power}}}$"
        ax.plot(curve["curve_width"] / n, curve, color=PALETTE[i], label=name)
        mean, error = at["simulated"], at["standard_error"]
        points(ax, at["width"] / n, mean, error, colour=PALETTE[i])
    line: dict[str, Any] = {"color": "0.6", "linewidth": 0.7, "linestyle": (0, (1, 2)), "zorder": 0}
    ax.axvline(1.0, **line)
    ax.set(xscale="log", yscale="log", xlabel="width over samples $N/n$")
    ax.set_xticks([0.25, 0.5, 1, 2, 4], ["1/4", "1/2", "1", "2", "4"])
    ax.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    ax.set_xticks([], minor=True)
    ax.set_yticks([], minor=True)
    ax.set_ylabel(label("test_error"))
    ax.legend(loc="upper left")
    return figure_of(ax)


def check(data: xarray.Dataset) -> list[Claim]:
    """The peak of the smallest ridge is at N = n, and a large ridge has none."""
    n, smallest, largest = data.attrs["n"], min(RIDGES), max(RIDGES)
    curve = data["curve"].sel(ridge=smallest)
    predicted = float(curve["curve_width"][np.argmax(curve.values)]) / n
    found = data["simulated"].sel(ridge=smallest)
    simulated = float(found["width"][np.argmax(found.values)]) / n
    text = f"λ = {smallest:g}: the peak is at N/n = {predicted:.3f} predicted, "
    peak = Claim(f"{text}{simulated:g} simulated", abs(predicted - 1) < 0.03 and simulated == 1.0)
    heights = [float(data["simulated"].sel(ridge=r, width=n)) for r in (smallest, largest)]
    lower = [float(data["simulated"].sel(ridge=r).isel(width=0)) for r in (smallest, largest)]
    text = f"at N = n against N = n/4: {heights[0] / lower[0]:.1f} times the error at the smallest "
    text += f"ridge, {heights[1] / lower[1]:.2f} times at λ = {largest:g}"
    tamed = Claim(text, heights[0] > 2.0 * lower[0] and heights[1] < lower[1])
    return [peak, tamed, as_predicted("test error", data)]


FIGURE = PaperFigure(
    "double-descent", "the untrained network against its width", compute, draw, check
)
