"""One step, two, eight: do spikes and degrees go on coming, or does the network have enough?

Every step has the labels as residual and the same size. Its batch is a fresh one, or the first
step's again. The readout's sample is always fresh.
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
from ..figures.base import SHIFTED_SINE, close, drawn, larger, over, over_seeds, sizes_of
from ..plots.simulation import points
from ..plots.style import PALETTE, label, legend_below, log_ticks
from ..simulation import simulate, simulated_spectrum
from ..theory import predict

STEPS = (1, 2, 3, 4, 6, 8)
PREDICTED = (1, 2, 3, 4)  # numbers of fresh steps whose error is predicted too
BATCHES = ("fresh", "same")
RANKS = 8
STANDS_OUT = 1.5  # times the singular value of rank RANKS: a spike
MAX_LATE_CHANGE = 0.05  # relative change of the error from 6 steps to 8


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


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Errors, alignment and the largest singular values after each number of steps."""
    asked, seeds = problem(quick), 8 if quick else 12
    axes = {"batches": BATCHES, "steps": STEPS}
    data = over(progress, partial(_column, asked, seeds), axes, lambda batches, steps: steps)
    sizes = [k * asked.step_size for k in STEPS]
    single = simulate(asked.vary(step_size=sizes), seeds=seeds).values["test_error"][0]
    data = data.assign(
        single=(("steps", "seed"), single),  # one step as large as all of them
        predicted=("fresh_steps", [predict(asked.replace(steps=k)).test_error for k in PREDICTED]),
        fresh_steps=list(PREDICTED),
        untrained=predict(asked.replace(step_size=0.0)).test_error,
    )
    return data.assign_attrs(**sizes_of(asked), seeds=seeds)


def _column(asked: Problem, seeds: int, told: Progress, batches: str, steps: int) -> dict[str, Any]:
    """After one number of steps."""
    asked = asked.replace(steps=steps, batches=batches)
    found = simulate(asked, seeds=seeds, progress=told).values
    spectrum = simulated_spectrum(asked, seeds=4, top=RANKS)
    return {
        "draws": ("seed", found["test_error"][0]),
        "cosine": ("seed", found["cosine"][:, -1]),
        "energy": ("seed", found["energy"][:, -1]),
        "singular_value": (("network", "rank"), spectrum.singular_values()),
        "rank": range(1, RANKS + 1),
    }


@drawn(columns=2)
def draw(data: xarray.Dataset, left: Axes, right: Axes) -> None:
    """Errors and the largest singular values against the number of steps."""
    lines = [(data["draws"].sel(batches=name), "-", f"{name} batches") for name in BATCHES]
    lines.append((data["single"], ":", "one step as large"))
    for colour, (draws, style, name) in zip(PALETTE, lines, strict=False):
        mean, error = over_seeds(draws)
        left.plot(STEPS, mean, style, color=colour, linewidth=0.8, label=name)
        points(left, np.array(STEPS), mean, error, colour=colour)
    theory = data["predicted"]
    left.plot(theory["fresh_steps"], theory, "_", color="0.2", markersize=14, label="theory")
    left.axhline(float(data["untrained"]), color="0.6", linewidth=0.7, label="untrained, theory")
    left.set_ylabel(label("test_error"))
    legend_below(left, shared=True, ncols=5)
    _values(right, data)
    for ax in (left, right):
        ax.set_xlabel("gradient steps")


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


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """What the answer says."""
    fresh, same = (data["draws"].sel(batches=batches) for batches in BATCHES)
    one, two, four, six, eight = (fresh.sel(steps=k) for k in (1, 2, 4, 6, 8))
    first, *later = data["predicted"].values
    yield close("one step", first, one)
    for steps, predicted in zip(PREDICTED[1:], later, strict=True):
        words = f"{steps} fresh steps, relative to one"
        yield close(words, predicted / first, fresh.sel(steps=steps) / one)
    yield larger("a second fresh step helps", one, two)
    yield larger("after 4 steps fresh batches beat reused ones", same.sel(steps=4), four)
    yield larger("one step as large as 8 is worse", data["single"].sel(steps=8), eight)
    change = abs(float(eight.mean() / six.mean()) - 1)
    text = f"fresh batches: the error changes by {change:.1%} from 6 steps to 8"
    yield Claim(f"{text} (less than {MAX_LATE_CHANGE:.0%})", change < MAX_LATE_CHANGE)
    count = spikes(data).sel(batches="fresh")
    first, last = float(count.sel(steps=1)), float(count.sel(steps=8))
    text = f"fresh batches: {first:.1f} spikes after one step, {last:.1f} after eight"
    yield Claim(text, last > first)
