"""Double descent of the untrained network in its width, at small ridge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.problem import Problem
from ..core.types import Axes, xarray
from ..plots.simulation import points
from ..plots.style import COLUMN, PALETTE, label
from . import Claim, ShareDone
from .base import as_predicted, beside, drawn, over

RIDGES = (1e-5, 1e-3, 1e-1)
RATIOS = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.35, 2.0, 4.0)  # N/n


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Test errors of the untrained network against its width."""
    n, seeds = (400, 16) if quick else (1000, 24)
    problem = Problem(n=n, d=n // 2, width=n, step_size=0.0, ridge=1e-3, noise_std=0.3)
    widths = np.unique(np.round(n * np.geomspace(0.2, 5.0, 121)).astype(int))
    grid, fine = (
        problem.vary(width=each, ridge=RIDGES)
        for each in ([round(ratio * n) for ratio in RATIOS], widths)
    )
    run: dict[str, Any] = {"seeds": seeds, "variants": ("initial",)}
    data = over(progress, lambda told: beside(grid, fine, progress=told, **run), {})
    sizes = {"n": n, "d": problem.d, "noise_std": problem.noise_std, "seeds": seeds}
    return data.drop_dims("seed").drop_vars("admitted").assign_attrs(base=repr(problem), **sizes)


@drawn(width=COLUMN, height=2.5)
def draw(data: xarray.Dataset, ax: Axes) -> None:
    """A curve and points for each ridge, over N/n."""
    n = data.attrs["n"]
    for i, ridge in enumerate(data["ridge"].values):
        curve, at = data["curve"].sel(ridge=ridge), data.sel(ridge=ridge)
        power = int(np.round(np.log10(ridge)))
        name = rf"$\lambda = 10^{{{power}}}$"
        ax.plot(curve["curve_width"] / n, curve, color=PALETTE[i], label=name)
        points(ax, at["width"] / n, at["simulated"], at["standard_error"], colour=PALETTE[i])
    line: dict[str, Any] = {"color": "0.6", "linewidth": 0.7, "linestyle": (0, (1, 2)), "zorder": 0}
    ax.axvline(1.0, **line)
    ax.set(xscale="log", yscale="log", xlabel="width over samples $N/n$")
    ax.set_xticks([0.25, 0.5, 1, 2, 4], ["1/4", "1/2", "1", "2", "4"])
    ax.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    ax.set_xticks([], minor=True)
    ax.set_yticks([], minor=True)
    ax.set_ylabel(label("test_error"))
    ax.legend(loc="upper left")


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """The peak of the smallest ridge is at N = n, and a large ridge has none."""
    n, smallest, largest = data.attrs["n"], min(RIDGES), max(RIDGES)
    curve, found = (data[name].sel(ridge=smallest) for name in ("curve", "simulated"))
    predicted, simulated = (float(each.idxmax()) / n for each in (curve, found))
    text = f"λ = {smallest:g}: the peak is at N/n = {predicted:.3f} predicted, "
    holds = abs(predicted - 1) < 0.03 and simulated == 1.0
    yield Claim(f"{text}{simulated:g} simulated", holds)
    heights = data["simulated"].sel(width=n) / data["simulated"].isel(width=0)
    peak, none = (float(heights.sel(ridge=ridge)) for ridge in (smallest, largest))
    text = f"at N = n against N = n/4: {peak:.1f} times the error at the smallest "
    text += f"ridge, {none:.2f} times at λ = {largest:g}"
    yield Claim(text, peak > 2.0 and none < 1.0)
    yield as_predicted("test error", data)
