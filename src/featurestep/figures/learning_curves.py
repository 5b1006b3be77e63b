"""Learning curves at the maximal step, in the setting of Cui et al., against linear methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..plots.simulation import points
from ..plots.style import PALETTE, figure_of, label, legend_below, new_axes, styled
from ..problem import Problem
from ..simulation import simulate
from ..theory import baselines, predict
from ..theory.baselines import kernel_error
from .base import TWO_COLUMNS, Claim, PaperFigure, Report, as_predicted, below, parts

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHIFTS = (0.5, 1.0, 2.0)  # η̃
SAMPLES = (1.0, 2.0, 4.0, 8.0)  # n/d
STEP_SAMPLES = 8.0  # n0/d
VARIANTS = ("srf", "trained")
_LINEAR = {"kernel": (0, (1, 1.2)), "ridge": (0, (5, 2))}
_NAMES = {"kernel": "kernel ridge", "ridge": "tuned ridge on the inputs"}


class Case(NamedTuple):
    """An activation, what it is to learn, and how the panel calls the two."""

    activation: str
    target: str
    title: str


CASES = (
    Case("tanh", "sin", r"$\sigma = \tanh$, $\sigma_{*} = \sin$"),
    Case("sin", "sin", r"$\sigma = \sin$, $\sigma_{*} = \sin$"),
)


def problem_at(case: Case, samples: float, d: int) -> Problem:
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


def compute(quick: bool, progress: Report) -> xarray.Dataset:
    """Errors of network, spiked model, theory and linear methods for each case and n/d."""
    import xarray

    d, seeds = (200, 12) if quick else (500, 16)
    told = parts(progress, [4.0 + samples for _ in CASES for samples in SAMPLES])
    cases = []
    for case in CASES:
        columns = [_simulated(problem_at(case, s, d), seeds, next(told)) for s in SAMPLES]
        curve = np.geomspace(SAMPLES[0], SAMPLES[-1], 17)
        lines = [_predicted(problem_at(case, s, d)) for s in curve]
        data = xarray.concat(columns, "samples").assign_coords(samples=list(SAMPLES))
        drawn = xarray.concat(lines, "curve_samples").assign_coords(curve_samples=curve)
        cases.append(data.merge(drawn))
    joined: xarray.Dataset = xarray.concat(cases, "case")
    names = [case.activation for case in CASES]
    return joined.assign_coords(case=names).assign_attrs(
        d=d, seeds=seeds, step_samples=STEP_SAMPLES
    )


def _steps(problem: Problem) -> Any:
    """Grid over η̃, as step sizes η = η̃√N."""
    return problem.vary(step_size=[shift * problem.width**0.5 for shift in SHIFTS])


def _simulated(problem: Problem, seeds: int, told: Any) -> xarray.Dataset:
    """Simulated errors at one n/d, with the predictions to hold them against."""
    grid = _steps(problem)
    found = simulate(grid, seeds=seeds, variants=VARIANTS, progress=told)
    at = predict(grid)
    known = baselines(problem)
    data: xarray.Dataset = at[["test_error"]].rename(test_error="predicted")
    data = data.assign(
        admitted=at["allowance"],
        simulated=found.mean["test_error"],
        standard_error=found.standard_error["test_error"],
        kernel=kernel_error(problem),
        ridge=known.ridge_n_tuned,
        best_linear=known.best_linear,
    )
    return data.rename(step_size="shift").assign_coords(shift=list(SHIFTS))


def _predicted(problem: Problem) -> xarray.Dataset:
    """One n/d of the curves."""
    curve = predict(_steps(problem))["test_error"].rename(step_size="shift")
    data: xarray.Dataset = curve.assign_coords(shift=list(SHIFTS)).to_dataset(name="curve")
    return data.assign(
        curve_kernel=kernel_error(problem), curve_ridge=baselines(problem).ridge_n_tuned
    )


@styled
def draw(data: xarray.Dataset) -> Figure:
    """A panel for each activation; a colour for each η̃; points of the two simulations."""
    panels = new_axes(columns=len(CASES), width=TWO_COLUMNS, height=3.0)
    for i, (ax, case) in enumerate(zip(panels, CASES, strict=True)):
        _panel(ax, data.isel(case=i))
        ax.set_title(case.title)
    panels[0].set_ylabel(label("test_error"))
    legend_below(panels[0], shared=True, ncols=4)
    return figure_of(panels[0])


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


def check(data: xarray.Dataset) -> list[Claim]:
    """Theory is the spiked model; the network beats every linear method at large n/d."""
    claims = []
    for name in map(str, data["case"].values):
        at = data.sel(case=name)
        for variant, words in (("srf", "spiked model"), ("trained", "network")):
            one = at.sel(variant=variant)
            notes = at["admitted"] if variant == "trained" else False
            claims.append(as_predicted(f"{name}, {words}", one, notes))
        last = at.sel(variant="trained").isel(shift=-1)
        for kind, words in (*_NAMES.items(), ("best_linear", "the best linear predictor")):
            claims.append(_beaten(f"{name}, η̃ = {SHIFTS[-1]:g}", last, kind, words))
    return claims


def _beaten(what: str, last: xarray.Dataset, kind: str, words: str) -> Claim:
    """The simulated network beats a linear method at the largest n/d; from which n/d on."""
    value, error, other = (last[name].values for name in ("simulated", "standard_error", kind))
    ahead = value < other
    first = (
        SAMPLES[len(SAMPLES) - int(np.logical_and.accumulate(ahead[::-1]).sum())]
        if ahead[-1]
        else None
    )
    since = f"from n/d = {first:g} on" if first is not None else "nowhere"
    text = f"{what}: the network is below {words} {since}; at n/d = {SAMPLES[-1]:g}"
    return below(text, float(value[-1]), float(error[-1]), float(other[-1]))


FIGURE = PaperFigure("learning-curves", "learning curves at the maximal step", compute, draw, check)
