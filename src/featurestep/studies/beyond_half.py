"""Steps beyond α = ½: does the theory still hold, and is there anything to gain there?

The published theory ends at η ~ √n. The exact weights need no such bound; whether the network
follows them is asked of the test error and of the largest singular values.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core.problem import Problem
from ..core.results import Progress
from ..core.types import Axes, xarray
from ..figures import Claim, ShareDone
from ..figures.base import close, drawn, larger, over, over_seeds, sizes_of
from ..plots.simulation import points
from ..plots.style import PALETTE, label, legend_above
from ..simulation import simulate, simulated_spectrum
from ..theory import predict

EXPONENTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
ACTIVATIONS = ("tanh", "relu")
BOUNDED, UNBOUNDED = 0.7, 0.9  # growth of the spike over that of the step


def problem(activation: str, quick: bool) -> Problem:
    """A target with a linear and a quadratic part."""
    n = 600 if quick else 2000
    return Problem(
        activation=activation,
        target="H1 + H2/sqrt(2)",
        n=n,
        d=n // 3,
        width=n // 2,
        n_step=2 * n,
        step_exponent=0.5,
        ridge=0.05,
        noise_std=0.3,
        centre=True,
    )


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Errors and the two largest singular values at every exponent."""
    seeds = 12 if quick else 16
    data = over(progress, partial(_column, quick, seeds), {"activation": ACTIVATIONS})
    return data.assign_attrs(**sizes_of(problem("tanh", quick)), seeds=seeds)


def _column(quick: bool, seeds: int, told: Progress, activation: str) -> dict[str, Any]:
    """One activation; the singular values take two thirds of the time."""
    grid = problem(activation, quick).vary(step_exponent=EXPONENTS)
    errors = simulate(grid, seeds=seeds, progress=lambda done, total: told(done, 3 * total))
    largest = simulated_spectrum(
        grid, seeds=3, top=2, progress=lambda done, total: told(total + 2 * done, 3 * total)
    )
    return {
        "draws": (("step_exponent", "seed"), errors.values["test_error"][0]),
        "predicted": predict(grid, method="exact")["test_error"],
        "singular_value": largest["singular_value"],
    }


@drawn(columns=2)
def draw(data: xarray.Dataset, left: Axes, right: Axes) -> None:
    """Errors and singular values against the exponent."""
    x = data["step_exponent"].values
    for index, activation in enumerate(ACTIVATIONS):
        at, colour = data.sel(activation=activation), PALETTE[index]
        left.plot(x, at["predicted"], color=colour, label=activation)
        points(left, x, *over_seeds(at["draws"]), colour=colour)
        for rank, style in ((1, "-"), (2, ":")):
            values = at["singular_value"].sel(rank=rank)
            right.plot(x, values, style, color=colour, label=f"{activation}, {rank}")
    left.axvline(0.5, color="0.7", linewidth=0.6)
    left.set_ylabel(label("test_error"))
    right.set_yscale("log")
    right.set_ylabel(r"singular value of $F/\sqrt{n}$")
    for ax in (left, right):
        ax.set_xlabel(label("step_exponent"))
        legend_above(ax, columns=4, fontsize=6)


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """The theory goes on holding; the best step of a ReLU lies beyond ½, and α = 1 is too far."""
    for activation in ACTIVATIONS:
        at = data.sel(activation=activation)
        yield close(f"{activation}, α = 0.3 … 1", at["predicted"], at["draws"])
    draws = data["draws"].sel(activation="relu")
    best = draws.mean("seed").idxmin("step_exponent").item()
    for other in (0.5, 1.0):
        what = f"relu: α = {other:g} is worse than α = {best:g}"
        yield larger(what, draws.sel(step_exponent=other), draws.sel(step_exponent=best))
    yield _growth(data, "tanh", most=BOUNDED)
    yield _growth(data, "relu", least=UNBOUNDED)


def _growth(
    data: xarray.Dataset, activation: str, *, least: float = 0.0, most: float = np.inf
) -> Claim:
    """How the first singular value grows from α = 0.9 to 1."""
    at = data["singular_value"].sel(activation=activation, rank=1)
    factor = float(at.sel(step_exponent=1.0) / at.sel(step_exponent=0.9))
    step = float(data.attrs["n"]) ** 0.1
    text = f"{activation}: from α = 0.9 to 1 the first spike grows by {factor:.2f}, the step by"
    return Claim(f"{text} {step:.2f}", bool(least * step <= factor <= most * step))
