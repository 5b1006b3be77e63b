"""What do several steps learn that one cannot? Targets with one stair, two, and a missing one.

Theory has the error of the first two steps, and the floor (52) that no single step goes below. The
third, on fresh samples with the labels as residual as all are, is simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core.problem import Problem
from ..core.results import Progress
from ..core.types import Axes, xarray
from ..figures import Claim, ShareDone
from ..figures.base import SHIFTED_SINE, below, drawn, over, over_seeds, sizes_of
from ..plots.simulation import SIMULATED_NAME, points
from ..plots.style import PALETTE, label, legend_below
from ..simulation import simulate
from ..theory import learnable, predict

STEPS = 3
TESTS = 8000
CLOSE_ERRORS, CLOSE_SHARE = 3.0, 0.04  # the first step agrees with theory within either
UNSEEN, FOUND = 1.5, 2.0  # a direction's share of the weights, in units of its share at the start
_DASHES = (0, (3.5, 1.5))


class StairTarget(NamedTuple):
    """A target, and how the picture calls it."""

    name: str
    target: str
    title: str
    directions: int


ONE = StairTarget("one stair", "z1 + z1*z2", "$z_1 + z_1z_2$", 2)
TWO = StairTarget("two stairs", "z1 + z1*z2 + z1*z2*z3", "$z_1 + z_1z_2 + z_1z_2z_3$", 3)
LEAP = StairTarget("a leap", "z1 + (z2^2 - 1)*z3/sqrt(2)", r"$z_1 + (z_2^2 - 1)z_3/\sqrt{2}$", 3)
CASES = (ONE, TWO, LEAP)


def problem(case: StairTarget, quick: bool) -> Problem:
    """An activation with c_2, c_3 ≠ 0, which every further stair needs, and a continuous law."""
    d = 100 if quick else 160
    return Problem(
        activation=SHIFTED_SINE,
        target=case.target,
        n=60 * d,
        d=d,
        width=8 * d,
        n_step=120 * d,
        step_size=2.0 * (8 * d) ** 0.5,
        ridge=3e-3,
        noise_std=0.2,
        readout="gaussian",
    )


def compute(quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Test errors after each step and shares of the weights, for every target."""
    seeds, cases = 4 if quick else 10, {case.name: case for case in CASES}
    axes = {"case": cases, "steps": range(STEPS + 1)}
    data = over(progress, partial(_simulated, quick, seeds), axes, lambda case, k: max(k, 0.1))
    theory = over(lambda share: None, partial(_predicted, quick), {"case": cases})
    share = data["share"].sel(steps=slice(1, None)).rename(steps="after")
    data = data.drop_vars("share").merge(theory).assign(share=share.transpose(..., "after"))
    one = problem(ONE, quick)
    return data.assign_attrs(seeds=seeds, noise=one.noise_std**2, **sizes_of(one))


def _simulated(
    quick: bool, seeds: int, told: Progress, case: StairTarget, steps: int
) -> dict[str, Any]:
    """The error after some steps, and the shares of the weights along the target's directions."""
    asked = problem(case, quick)
    found = simulate(
        asked.replace(steps=max(steps, 1)),
        seeds=seeds,
        n_test=TESTS,
        variants=["trained" if steps else "initial"],
        progress=told,
    ).dataset
    mean, error = over_seeds(found["test_error"].isel(variant=0, drop=True))
    shares = np.full(3, np.nan)
    for i in range(case.directions if steps else 0):
        shares[i] = asked.d * found[f"energy_{i + 1}"].isel(step=-1).mean()
    return {
        "simulated": mean,
        "standard_error": error,
        "share": ("direction", shares),
        "direction": [1, 2, 3],
    }


def _predicted(quick: bool, told: Progress, case: StairTarget) -> dict[str, Any]:
    """Theory of no step, of one and of two, and the floors."""
    asked = problem(case, quick)
    found, some = learnable(asked), (asked.replace(step_size=0.0), asked, asked.replace(steps=2))
    predicted = ("first", [predict(each).test_error for each in some])
    return {"predicted": predicted, "floor": found.floor, "floor_second": found.floor_second}


@drawn(columns=2, height=3.0)
def draw(data: xarray.Dataset, *panels: Axes) -> None:
    """Errors by number of steps for each target; shares of the weights for the two stairs."""
    _errors(panels[0], data)
    _shares(panels[1], data.sel(case=TWO.name))
    legend_below(panels[0], shared=True, ncols=4)
    for ax in panels:
        ax.set_xlabel("gradient steps")


def _errors(ax: Axes, data: xarray.Dataset) -> None:
    for i, case in enumerate(CASES):
        at, colour = data.sel(case=case.name), PALETTE[i]
        floor = float(at["floor"])
        ax.plot(at["steps"], at["simulated"], color=colour, linewidth=0.8, label=case.title)
        points(ax, at["steps"], at["simulated"], at["standard_error"], colour=colour)
        ax.plot(range(3), at["predicted"], "_", color=colour, markersize=16, markeredgewidth=1.6)
        ax.plot([0.6, STEPS + 0.2], [floor] * 2, color=colour, linewidth=0.8, linestyle=_DASHES)
    ax.plot([], [], "_", color="0.3", markersize=10, label="theory")
    ax.plot([], [], color="0.3", linewidth=0.8, linestyle=_DASHES, label="floor of one step")
    points(ax, [], [], [], colour="0.3", name=f"network, {SIMULATED_NAME}")
    ax.set_ylabel(label("test_error"))
    ax.set_ylim(bottom=0.0)
    ax.set_xticks(range(STEPS + 1))


def _shares(ax: Axes, at: xarray.Dataset) -> None:
    for i in range(3):
        share = at["share"].sel(direction=i + 1)
        name, colour = f"$z_{i + 1}$", PALETTE[3 + i]
        line = np.concatenate([[1.0], share])
        ax.plot(at["steps"], line, color=colour, marker="os^"[i])
        ax.annotate(name, (STEPS, float(line[-1])), (4, 0), textcoords="offset points", va="center")
    ax.axhline(1.0, color="0.6", linewidth=0.6)
    ax.set_yscale("log")
    ax.set_ylabel("share of the weights' square, × d")
    ax.set_title(TWO.title)


def check(data: xarray.Dataset) -> Iterator[Claim]:
    """One step stays above its floor; every later one finds the direction of its stair."""
    for case in CASES:
        yield from _first_step(data.sel(case=case.name), case)
    for case in (ONE, TWO):
        yield _below_floor(data.sel(case=case.name), case)
    yield _climbs(data.sel(case=TWO.name))
    yield _no_stair(data.sel(case=LEAP.name))


def _first_step(at: xarray.Dataset, case: StairTarget) -> Iterator[Claim]:
    before = float(at["simulated"].values[0])
    value, error = (float(at[name].values[1]) for name in ("simulated", "standard_error"))
    start, theory, second = map(float, at["predicted"].values)
    yield Claim(
        f"{case.name}: one step within {CLOSE_ERRORS:g} s.e. or {CLOSE_SHARE:.0%} of the theory "
        f"({value:.3f} for {theory:.3f}; before it {before:.3f} for {start:.3f})",
        abs(value - theory) <= max(CLOSE_ERRORS * error, CLOSE_SHARE * theory),
    )
    value_2, error_2 = (float(at[name].values[2]) for name in ("simulated", "standard_error"))
    yield Claim(
        f"{case.name}: two steps within {CLOSE_ERRORS:g} s.e. or {CLOSE_SHARE:.0%} of the theory "
        f"({value_2:.3f} for {second:.3f})",
        abs(value_2 - second) <= max(CLOSE_ERRORS * error_2, CLOSE_SHARE * second),
    )
    text = f"{case.name}: one step reaches {value:.3f}, above its floor {at_floor(at):.3f}"
    yield Claim(text, value > at_floor(at))


def _below_floor(at: xarray.Dataset, case: StairTarget) -> Claim:
    last = int(np.argmin(at["simulated"].values))
    value, error = (float(at[name].values[last]) for name in ("simulated", "standard_error"))
    if case is ONE:  # nothing lies between its floor and the noise but what few samples cost
        one = float(at["simulated"].values[1])
        return below(f"{case.name}: {last} steps against one", value, error, one)
    return below(f"{case.name}: {last} steps go below the floor of one", value, error, at_floor(at))


def at_floor(at: xarray.Dataset) -> float:
    """The floor of one step."""
    return float(at["floor"])


def _climbs(at: xarray.Dataset) -> Claim:
    """Direction i has no more than its random share before step i, and much more after it."""
    share = at["share"].values
    before = [share[1, 0], share[2, 1]]
    after = [share[0, 0], share[1, 1], share[2, 2]]
    text = (
        f"two stairs: the steps find one direction each: shares of z1 after step 1, z2 after 2, "
        f"z3 after 3 are {', '.join(f'{v:.1f}' for v in after)} times those at the start, "
        f"those of z2, z3 one step before {', '.join(f'{v:.1f}' for v in before)}"
    )
    holds = np.all(np.array(before) < UNSEEN) and np.all(np.array(after) > FOUND)
    return Claim(text, bool(holds))


def _no_stair(at: xarray.Dataset) -> Claim:
    """Without E[y z_i|z_1] no step finds z2 or z3, and the error stays above the floor of one."""
    share, lowest = at["share"].values[1:], float(at["simulated"].min())
    text = (
        f"a leap: after {STEPS} steps z2 and z3 have at most {np.nanmax(share):.1f} times their "
        f"first share, and the error stays at {lowest:.3f}, above the floor {at_floor(at):.3f}"
    )
    return Claim(text, bool(np.nanmax(share) < UNSEEN and lowest > at_floor(at)))
