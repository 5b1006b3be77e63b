"""One step, two, eight: do spikes and degrees go on coming, or does the network have enough?

Every step has the labels as residual and the same size. Its batch is a fresh one, or the first
step's again. The readout's sample is always fresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..figures.base import SHIFTED_SINE, TWO_COLUMNS, Claim, Report, parts, sizes_of
from ..plots.simulation import points
from ..plots.style import PALETTE, figure_of, label, legend_below, log_ticks, new_axes, styled
from ..problem import Problem
from ..simulation import Setting, simulate, simulated_spectrum
from ..theory import predict
from .base import Study, close, larger, over_draws

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEPS = (1, 2, 3, 4, 6, 8)
BATCHES = ("fresh", "same")
RANKS = 8
STANDS_OUT = 1.5  # times the singular value of rank RANKS: a spike
SHARE = 0.04
ENOUGH = 0.05  # relative change of the error from 6 steps to 8


def problem(quick: bool) -> Problem:
    """A target of three degrees and an activation with c_1, c_2, c_3 ≠ 0."""
    d = 120 if quick else 300
    return Problem(
        activation=SHIFTED_SINE,
        target="H1 + H2/sqrt(2) + H3/sqrt(6)",
        n=8 * d,
        d=d,
        width=4 * d,
        n_step=12 * d,
        step_size=0.4 * (4 * d) ** 0.5,
        ridge=0.02,
        noise_std=0.3,
        centre=True,
    )


def compute(quick: bool, progress: Report) -> xarray.Dataset:
    """Errors, alignment and the largest singular values after each number of steps."""
    import xarray

    asked, seeds = problem(quick), 8 if quick else 12
    told = parts(progress, [float(k) for _ in BATCHES for k in STEPS])
    shape = (len(BATCHES), len(STEPS))
    errors = np.empty((*shape, seeds))
    cosine, energy = np.empty((*shape, seeds)), np.empty((*shape, seeds))
    values = np.empty((*shape, 4, RANKS))
    for i, batches in enumerate(BATCHES):
        for j, steps in enumerate(STEPS):
            setting = Setting(steps=steps, batches=batches)
            found = simulate(asked, seeds=seeds, setting=setting, progress=next(told)).values
            errors[i, j] = found["test_error"][0]
            cosine[i, j], energy[i, j] = found["cosine"][:, -1], found["energy"][:, -1]
            spectrum = simulated_spectrum(asked, seeds=4, setting=setting, top=RANKS)
            values[i, j] = spectrum.singular_values()
    sizes = [k * asked.step_size for k in STEPS]
    single = simulate(asked.vary(step_size=sizes), seeds=seeds).values["test_error"][0]
    axes = ("batches", "steps")
    return xarray.Dataset(
        {
            "draws": ((*axes, "seed"), errors),
            "single": (("steps", "seed"), single),  # one step as large as all of them
            "cosine": ((*axes, "seed"), cosine),
            "energy": ((*axes, "seed"), energy),
            "singular_value": ((*axes, "network", "rank"), values),
            "predicted": predict(asked).test_error,
            "untrained": predict(asked.replace(step_size=0.0)).test_error,
        },
        {"batches": list(BATCHES), "steps": list(STEPS), "rank": list(range(1, RANKS + 1))},
        {**sizes_of(asked), "seeds": seeds},
    )


@styled
def draw(data: xarray.Dataset) -> Figure:
    """Errors and the largest singular values against the number of steps."""
    left, right = new_axes(columns=2, width=TWO_COLUMNS)
    for index, batches in enumerate(BATCHES):
        mean, error = over_draws(data["draws"].sel(batches=batches))
        name = f"{batches} batches"
        left.plot(STEPS, mean, color=PALETTE[index], linewidth=0.8, label=name)
        points(left, np.array(STEPS), mean, error, colour=PALETTE[index])
    mean, error = over_draws(data["single"])
    left.plot(STEPS, mean, ":", color=PALETTE[2], linewidth=0.8, label="one step as large")
    points(left, np.array(STEPS), mean, error, colour=PALETTE[2])
    left.plot([1], [float(data["predicted"])], "_", color="0.2", markersize=14, label="theory")
    left.axhline(float(data["untrained"]), color="0.6", linewidth=0.7, label="untrained, theory")
    left.set_ylabel(label("test_error"))
    legend_below(left, shared=True, ncols=5)
    _values(right, data)
    for ax in (left, right):
        ax.set_xlabel("gradient steps")
    return figure_of(left)


def _values(ax: Axes, data: xarray.Dataset) -> None:
    for index, batches in enumerate(BATCHES):
        values = data["singular_value"].sel(batches=batches).mean("network")  # (steps, rank)
        for rank in range(5):
            ax.plot(STEPS, values[:, rank], color=PALETTE[index], alpha=1.0 - 0.17 * rank)
    log_ticks(ax, "y")
    ax.set_ylabel(r"singular values of $F/\sqrt{n}$")


def spikes(data: xarray.Dataset) -> xarray.DataArray:
    """Mean number of singular values well above the one of rank RANKS."""
    values = data["singular_value"]
    return (values > STANDS_OUT * values.isel(rank=-1)).sum("rank").mean("network")


def check(data: xarray.Dataset) -> list[Claim]:
    """What the answer says."""
    fresh, same = (data["draws"].sel(batches=batches) for batches in BATCHES)
    claims = [
        close("one step", data["predicted"], fresh.sel(steps=1), share=SHARE),
        larger("a second fresh step helps", fresh.sel(steps=1), fresh.sel(steps=2)),
        larger(
            "after 4 steps fresh batches beat reused ones", same.sel(steps=4), fresh.sel(steps=4)
        ),
        larger("one step as large as 8 is worse", data["single"].sel(steps=8), fresh.sel(steps=8)),
    ]
    six, eight = (float(fresh.sel(steps=k).mean()) for k in (6, 8))
    text = f"fresh batches: the error changes by {abs(eight / six - 1):.1%} from 6 steps to 8"
    claims.append(Claim(f"{text} (less than {ENOUGH:.0%})", bool(abs(eight / six - 1) < ENOUGH)))
    count = spikes(data).sel(batches="fresh")
    one, last = float(count.sel(steps=1)), float(count.sel(steps=8))
    text = f"fresh batches: {one:.1f} spikes after one step, {last:.1f} after eight"
    claims.append(Claim(text, bool(last > one)))
    return claims


STUDY = Study(
    name="many-steps",
    title="One to eight steps on fresh and reused batches: errors and spikes",
    question="Does the expansion in spikes and degrees go on with more steps, or does it saturate?",
    compute=compute,
    draw=draw,
    claims=check,
)
