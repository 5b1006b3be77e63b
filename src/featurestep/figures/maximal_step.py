"""Test error at steps of order √N: the network, the exact theory and spiked random features."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core.problem import Problem
from ..core.results import Progress
from ..core.types import Axes, xarray
from ..functions.nonlinearity import Nonlinearity
from ..plots.simulation import SIMULATED_NAME, points
from ..plots.style import PALETTE, label, legend_below
from ..simulation import simulate
from ..theory import predict
from . import Claim, ShareDone
from .base import SHIFTED_SINE, drawn, over, over_seeds

RATIOS = (2, 8, 32)  # n0/d
STEPS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # η/√N
METHODS = ("exact", "isotropic")
CLOSE_ERRORS, CLOSE_SHARE = 3.0, 0.02  # a point agrees within either
MIN_MISS = 0.3  # share by which spiked random features are off somewhere
_DASHES = (0, (3.5, 1.5))
_CURVE = STEPS[-1] * np.linspace(0.0, 1.0, 51) ** 1.5  # the curves bend most at small steps


class StepCase(NamedTuple):
    """An activation and a readout law, and how the panel calls the two."""

    name: str
    activation: str | Nonlinearity
    readout: str
    title: str


CASES = (
    StepCase("relu", "relu", "constant", r"$\sigma = \mathrm{ReLU}$, constant readout"),
    StepCase("sine", SHIFTED_SINE, "rademacher", r"$\sigma = \sin(z + 0.6)$, Rademacher readout"),
)
JUDGED_CASE = ("relu", 32)  # where spiked random features must miss


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Test errors of the network and of both theories for each case, n0/d and η/√N."""
    n, seeds = (1000, 12) if quick else (2000, 16)
    axes = {"case": {case.name: case for case in CASES}, "ratio": RATIOS}
    data = over(progress, partial(_column, n, seeds), axes, lambda case, ratio: 8.0 + ratio)
    data = data.rename(step_size="step").assign_coords(step=list(STEPS), curve_step=_CURVE)
    return data.assign_attrs(n=n, d=n // 2, width=3 * n // 4, seeds=seeds)


def _column(n: int, seeds: int, told: Progress, case: StepCase, ratio: int) -> dict[str, Any]:
    """One n0/d: simulated means, the theories there, and their curves."""
    problem = Problem(
        activation=case.activation,
        target="H1 + H2/sqrt(2)",
        n=n,
        d=n // 2,
        width=3 * n // 4,
        n_step=ratio * (n // 2),
        step_size=0.0,
        ridge=0.01,
        noise_std=0.2,
        readout=case.readout,
    )
    grid, fine = (
        problem.vary(step_size=[float(step) * problem.width**0.5 for step in steps])
        for steps in (STEPS, _CURVE)
    )
    draws = simulate(grid, seeds=seeds, progress=told).dataset["test_error"]
    data: dict[str, Any] = {}
    data["simulated"], data["standard_error"] = over_seeds(draws.isel(variant=0, drop=True))
    for method in METHODS:
        data[method] = predict(grid, method=method)["test_error"]
        curve = predict(fine, method=method)["test_error"]
        data[f"curve_{method}"] = curve.rename(step_size="curve_step")
    return data


@drawn(columns=len(CASES), height=2.9)
def draw(data: xarray.Dataset, *panels: Axes) -> None:
    """A panel for each case; a colour for each n0/d; solid exact, dashed spiked features."""
    for ax, case in zip(panels, CASES, strict=True):
        _panel(ax, data.sel(case=case.name))
        ax.set_title(case.title)
        ax.set_xlabel(r"step size $\eta/\sqrt{N}$")
    panels[0].set_ylabel(label("test_error"))
    legend_below(panels[0], shared=True, ncols=6)


def _panel(ax: Axes, data: xarray.Dataset) -> None:
    for i, ratio in enumerate(RATIOS):
        at, colour = data.sel(ratio=ratio), PALETTE[i]
        x = at["curve_step"]
        ax.plot(x, at["curve_exact"], color=colour, label=f"$n_0/d = {ratio}$")
        ax.plot(x, at["curve_isotropic"], color=colour, linewidth=1.0, linestyle=_DASHES)
        style = {"colour": colour, "marker": "os^"[i]}
        points(ax, at["step"], at["simulated"], at["standard_error"], **style)
    ax.plot([], [], color="0.3", label="exact theory")
    ax.plot([], [], color="0.3", linewidth=1.0, linestyle=_DASHES, label="spiked random features")
    points(ax, [], [], [], colour="0.3", name=f"network, {SIMULATED_NAME}")
    ax.set_xlim(-0.1, STEPS[-1] + 0.1)
    ax.set_xticks(range(int(STEPS[-1]) + 1))


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """The network is where the exact theory says; spiked random features are not."""
    yield from (_close(data.sel(case=case.name), case) for case in CASES)
    yield _missed(data)


def _close(data: xarray.Dataset, case: StepCase) -> Claim:
    """Every point within so many standard errors, or within a small share, of the exact theory."""
    value, error, exact, other = (
        data[name].values for name in ("simulated", "standard_error", *METHODS)
    )
    apart = np.abs(value - exact)
    holds = np.all(apart <= np.maximum(CLOSE_ERRORS * error, CLOSE_SHARE * exact))  # not for NaN
    text = (
        f"{case.name}: network within {CLOSE_ERRORS:g} s.e. or {CLOSE_SHARE:.0%} of the exact "
        f"theory at {apart.size} points (largest gaps {(apart / exact).max():.1%} and "
        f"{(apart / error).max():.1f} s.e.); spiked random features are off by up to "
        f"{np.abs(other / value - 1.0).max():.0%}"
    )
    return Claim(text, bool(holds))


def _missed(data: xarray.Dataset) -> Claim:
    """What spiked random features make of the judged case."""
    name, ratio = JUDGED_CASE
    at = data.sel(case=name, ratio=ratio)
    gap = np.abs(at["isotropic"].values / at["simulated"].values - 1.0)
    worst = int(np.argmax(gap))
    text = (
        f"{name}, n0/d = {ratio}: spiked random features are off by {gap[worst]:.0%} of the "
        f"network's error at η = {STEPS[worst]:g}√N (more than {MIN_MISS:.0%})"
    )
    return Claim(text, bool(gap[worst] > MIN_MISS))
