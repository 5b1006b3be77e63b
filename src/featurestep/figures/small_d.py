"""Random features with n of the order of d²: they learn quadratic functions in all directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.problem import Problem
from ..core.types import Axes, xarray
from ..plots.simulation import points
from ..plots.style import COLUMN, PALETTE, label
from ..theory.limits import limit
from . import Claim, ShareDone
from .base import as_predicted, beside, drawn, over

RATIOS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.4, 2.0)  # n/d²
WIDTH = 1.6  # N/d²


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Test errors of an untrained ReLU network against n, and the theory of its limit d → ∞."""
    d, seeds = (24, 12) if quick else (50, 4)
    problem = Problem(
        n=d**2, d=d, width=round(WIDTH * d**2), n_step=d, step_size=0.0, ridge=1e-3, noise_std=0.5,
        activation="relu", target="H1 + H2/sqrt(2)",
    )  # fmt: skip
    samples = np.unique(np.round(d**2 * np.geomspace(0.04, 2.2, 61)).astype(int))
    grid, fine = (
        problem.vary(n=each) for each in ([round(ratio * d**2) for ratio in RATIOS], samples)
    )
    run: dict[str, Any] = {"seeds": seeds, "variants": ("initial",)}
    data = over(progress, lambda told: beside(grid, fine, progress=told, **run), {})
    data["limit"] = ("curve_n", [limit(each, 0).test_error for each in fine])
    sizes = {"d": d, "width": problem.width, "noise_std": problem.noise_std, "seeds": seeds}
    return data.drop_dims("seed").drop_vars("admitted").assign_attrs(base=repr(problem), **sizes)


@drawn(width=COLUMN, height=2.5)
def draw(data: xarray.Dataset, ax: Axes) -> None:
    """Networks, the theory and its limit over n/d²."""
    square = data.attrs["d"] ** 2
    ax.plot(data["curve_n"] / square, data["curve"], color=PALETTE[0], label="theory")
    ax.plot(
        data["curve_n"] / square, data["limit"], color=PALETTE[1], linestyle="--",
        label=r"limit $d \to \infty$",
    )  # fmt: skip
    points(ax, data["n"] / square, data["simulated"], data["standard_error"], colour=PALETTE[0])
    line: dict[str, Any] = {"color": "0.6", "linewidth": 0.7, "linestyle": (0, (1, 2)), "zorder": 0}
    for place in (0.5, WIDTH):
        ax.axvline(place, **line)
    ax.set(xscale="log", xlabel="samples over $d^2$")
    ax.set_xticks([0.05, 0.1, 0.2, 0.5, 1, 2], ["0.05", "0.1", "0.2", "0.5", "1", "2"])
    ax.set_xticks([], minor=True)
    ax.set_ylabel(label("test_error"))
    ax.legend(loc="best")


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """The error falls again beyond n = d²/2, as predicted and far below the limit of large d."""
    d = data.attrs["d"]
    half, most = round(0.5 * d**2), round(RATIOS[-1] * d**2)
    seen = data["simulated"]
    fall = float(seen.sel(n=most) / seen.sel(n=half))
    yield Claim(f"the error falls by {1 - fall:.0%} from n = d²/2 to n = 2d²", fall < 0.85)
    old = float(np.interp(most, data["curve_n"], data["limit"]))
    missed = float(seen.sel(n=most)) / old
    yield Claim(f"at n = 2d² it is {missed:.2f} of what the limit of large d says", missed < 0.8)
    yield as_predicted("test error", data)
