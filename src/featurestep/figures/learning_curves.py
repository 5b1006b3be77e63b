"""Learning curves at the maximal step, in the setting of Cui et al., against linear methods."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core.grid import Grid
from ..core.problem import Problem
from ..core.results import Progress
from ..core.types import Axes, xarray
from ..plots.simulation import points
from ..plots.style import PALETTE, label, legend_below
from ..theory import baselines, predict
from ..theory.baselines import kernel_error
from . import Claim, ShareDone
from .base import as_predicted, below, beside, drawn, over

SHIFTS = (0.5, 1.0, 2.0)  # η̃
SAMPLES = (1.0, 2.0, 4.0, 8.0)  # n/d
STEP_SAMPLES = 8.0  # n0/d
VARIANTS = ("srf", "trained")
_LINEAR = {"kernel": (0, (1, 1.2)), "ridge": (0, (5, 2))}
_NAMES = {"kernel": "kernel ridge", "ridge": "tuned ridge on the inputs"}


class CurveCase(NamedTuple):
    """An activation, what it is to learn, and how the panel calls the two."""

    activation: str
    target: str
    title: str


CASES = (
    CurveCase("tanh", "sin", r"$\sigma = \tanh$, $\sigma_{*} = \sin$"),
    CurveCase("sin", "sin", r"$\sigma = \sin$, $\sigma_{*} = \sin$"),
)


def problem_at(case: CurveCase, samples: float, d: int) -> Problem:
    """Constant readout, N = d, their λ = 0.1."""
    return Problem.from_cui(
        alpha=samples,
        alpha0=STEP_SAMPLES,
        eta_tilde=SHIFTS[-1],
        lambda_=0.1,
        d=d,
        activation=case.activation,
        target=case.target,
        centre=True,
    )


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Errors of network, spiked model, theory and linear methods for each case and n/d."""
    d, seeds = (200, 12) if quick else (500, 16)
    cases = {case.activation: case for case in CASES}
    axes, curve = {"case": cases, "samples": SAMPLES}, np.geomspace(SAMPLES[0], SAMPLES[-1], 17)
    data = over(progress, partial(_simulated, d, seeds), axes, lambda case, samples: 4.0 + samples)
    lines = over(
        lambda share: None, partial(_predicted, d), {"case": cases, "curve_samples": curve}
    )
    data = data.drop_dims("seed").merge(lines).rename(step_size="shift")
    sizes = {"d": d, "seeds": seeds, "step_samples": STEP_SAMPLES}
    return data.assign_coords(shift=list(SHIFTS)).assign_attrs(sizes)


def _steps(problem: Problem) -> Grid:
    """Grid over η̃, as step sizes η = η̃√N."""
    return problem.vary(step_size=[shift * problem.width**0.5 for shift in SHIFTS])


def _simulated(
    d: int, seeds: int, told: Progress, case: CurveCase, samples: float
) -> dict[str, Any]:
    """Simulated errors at one n/d, with the predictions to hold them against."""
    problem = problem_at(case, samples, d)
    known = baselines(problem)
    linear = {
        "kernel": kernel_error(problem),
        "ridge": known.ridge_n_tuned,
        "best_linear": known.best_linear,
    }
    return {**beside(_steps(problem), seeds=seeds, variants=VARIANTS, progress=told), **linear}


def _predicted(d: int, told: Progress, case: CurveCase, samples: float) -> dict[str, Any]:
    """One n/d of the curves."""
    problem = problem_at(case, samples, d)
    return {
        "curve": predict(_steps(problem))["test_error"],
        "curve_kernel": kernel_error(problem),
        "curve_ridge": baselines(problem).ridge_n_tuned,
    }


@drawn(columns=len(CASES), height=3.0)
def draw(data: xarray.Dataset, *panels: Axes) -> None:
    """A panel for each activation; a colour for each η̃; points of the two simulations."""
    for i, (ax, case) in enumerate(zip(panels, CASES, strict=True)):
        _panel(ax, data.isel(case=i))
        ax.set_title(case.title)
    panels[0].set_ylabel(label("test_error"))
    legend_below(panels[0], shared=True, ncols=4)


def _panel(ax: Axes, data: xarray.Dataset) -> None:
    x = data["curve_samples"]
    for kind, dashes in _LINEAR.items():
        style: dict[str, Any] = {"color": "0.45", "linewidth": 0.9, "linestyle": dashes}
        ax.plot(x, data[f"curve_{kind}"], label=_NAMES[kind], **style)
    for i, shift in enumerate(SHIFTS):
        at, colour = data.sel(shift=shift), PALETTE[i]
        ax.plot(x, at["curve"], color=colour, label=rf"theory, $\tilde\eta = {shift:g}$")
        for variant, marker in zip(VARIANTS, "xo", strict=True):
            one = at.sel(variant=variant)
            open_marks = at["admitted"] if variant == "trained" else False
            mean, error = one["simulated"], one["standard_error"]
            points(ax, at["samples"], mean, error, colour=colour, noted=open_marks, marker=marker)
    points(ax, [], [], [], colour="0.3", marker="x", name="spiked model")
    points(ax, [], [], [], colour="0.3", marker="o", name="network")
    ax.set(xscale="log", yscale="log", xlabel="samples over dimension $n/d$")
    ax.set_xticks(SAMPLES, [f"{samples:g}" for samples in SAMPLES])
    ax.set_xticks([], minor=True)
    low, high = ax.get_ylim()
    ticks = [t for t in (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0) if low < t < high]
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_yticks([], minor=True)


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """Theory is the spiked model; the network beats every linear method at large n/d."""
    for name in map(str, data["case"].values):
        at = data.sel(case=name)
        model, network = (at.sel(variant=variant) for variant in VARIANTS)
        yield as_predicted(f"{name}, spiked model", model)
        yield as_predicted(f"{name}, network", network, at["admitted"])
        last = network.isel(shift=-1)
        for kind, words in (*_NAMES.items(), ("best_linear", "the best linear predictor")):
            yield _beaten(f"{name}, η̃ = {SHIFTS[-1]:g}", last, kind, words)


def _beaten(what: str, last: xarray.Dataset, kind: str, words: str) -> Claim:
    """The simulated network beats a linear method at the largest n/d; from which n/d on."""
    value, error, other = (last[name].values for name in ("simulated", "standard_error", kind))
    ahead = [samples for i, samples in enumerate(SAMPLES) if np.all(value[i:] < other[i:])]
    since = f"from n/d = {ahead[0]:g} on" if ahead else "nowhere"
    text = f"{what}: the network is below {words} {since}; at n/d = {SAMPLES[-1]:g}"
    return below(text, float(value[-1]), float(error[-1]), float(other[-1]))
