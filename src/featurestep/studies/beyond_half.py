"""Steps beyond α = ½: does the theory still hold, and is there anything to gain there?

The published theory ends at η ~ √n. The exact weights need no such bound; whether the network
follows them is asked of the test error and of the largest singular values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..figures.base import TWO_COLUMNS, Claim, Report, parts, sizes_of
from ..plots.simulation import points
from ..plots.style import PALETTE, figure_of, label, legend_above, new_axes, styled
from ..problem import Problem
from ..simulation import simulate, simulated_spectrum
from ..theory import predict
from .base import Study, close, larger, over_draws

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

EXPONENTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
ACTIVATIONS = ("tanh", "relu")
SHARE = 0.04  # within which the theory is asked to hold
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


def compute(quick: bool, progress: Report) -> xarray.Dataset:
    """Errors and the two largest singular values at every exponent."""
    import xarray

    seeds = 12 if quick else 16
    told = parts(progress, [1.0, 2.0] * len(ACTIVATIONS))
    errors = np.empty((len(ACTIVATIONS), len(EXPONENTS), seeds))
    predicted = np.empty(errors.shape[:2])
    top = np.empty((len(ACTIVATIONS), len(EXPONENTS), 2))
    for i, activation in enumerate(ACTIVATIONS):
        base = problem(activation, quick)
        grid = base.vary(step_exponent=EXPONENTS)
        errors[i] = simulate(grid, seeds=seeds, progress=next(told)).values["test_error"][0]
        predicted[i] = predict(grid, method="exact")["test_error"]
        tell = next(told)
        for j, exponent in enumerate(EXPONENTS):
            found = simulated_spectrum(base.replace(step_exponent=exponent), seeds=3, top=2)
            top[i, j] = found.singular_values().mean(axis=0)
            tell(j + 1, len(EXPONENTS))
    axes = ("activation", "step_exponent")
    return xarray.Dataset(
        {
            "draws": ((*axes, "seed"), errors),
            "predicted": (axes, predicted),
            "singular_value": ((*axes, "rank"), top),
        },
        {"activation": list(ACTIVATIONS), "step_exponent": list(EXPONENTS), "rank": [1, 2]},
        {**sizes_of(problem("tanh", quick)), "seeds": seeds},
    )


@styled
def draw(data: xarray.Dataset) -> Figure:
    """Errors and singular values against the exponent."""
    left, right = new_axes(columns=2, width=TWO_COLUMNS)
    x = data["step_exponent"].values
    for index, activation in enumerate(ACTIVATIONS):
        at, colour = data.sel(activation=activation), PALETTE[index]
        left.plot(x, at["predicted"], color=colour, label=activation)
        points(left, x, *over_draws(at["draws"]), colour=colour)
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
    return figure_of(left)


def check(data: xarray.Dataset) -> list[Claim]:
    """The theory goes on holding; the best step of a ReLU lies beyond ½, and α = 1 is too far."""
    claims = []
    for activation in ACTIVATIONS:
        at = data.sel(activation=activation)
        what = f"{activation}, α = 0.3 … 1"
        claims.append(close(what, at["predicted"], at["draws"], share=SHARE))
    draws = data["draws"].sel(activation="relu")
    best = draws.mean("seed").idxmin("step_exponent").item()
    kept = draws.sel(step_exponent=best)
    for other in (0.5, 1.0):
        what = f"relu: α = {other:g} is worse than α = {best:g}"
        claims.append(larger(what, draws.sel(step_exponent=other), kept))
    claims += [_growth(data, "tanh", most=BOUNDED), _growth(data, "relu", least=UNBOUNDED)]
    return claims


def _growth(
    data: xarray.Dataset, activation: str, *, least: float = 0.0, most: float = np.inf
) -> Claim:
    """How the first singular value grows from α = 0.9 to 1."""
    at = data["singular_value"].sel(activation=activation, rank=1)
    factor = float(at.sel(step_exponent=1.0) / at.sel(step_exponent=0.9))
    step = float(data.attrs["n"]) ** 0.1
    text = f"{activation}: from α = 0.9 to 1 the first spike grows by {factor:.2f}, the step by"
    return Claim(f"{text} {step:.2f}", bool(least * step <= factor <= most * step))


STUDY = Study(
    name="beyond-half",
    title="Steps larger than √n: test error and spikes for α up to 1",
    question="What happens for step exponents from ½ to 1, and does the theory hold there?",
    compute=compute,
    draw=draw,
    claims=check,
)
