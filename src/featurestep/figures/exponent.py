"""Errors against the step exponent, in the two settings of Moniri et al."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..core.problem import Problem, interval
from ..core.results import Progress
from ..core.types import Axes, xarray
from ..demo import SETTINGS
from ..plots.curves import GROWN_NAME, LIMIT_NAME, dashes, shade_regimes
from ..plots.simulation import ERRORS, SIMULATED_NAME, points
from ..plots.style import PALETTE, figure_of, label, legend_below
from ..simulation import simulate
from ..theory import baselines, limit, predict
from . import Claim, ShareDone
from .base import agreement, below, drawn, over, over_seeds

EXPONENTS = (0.02, 0.08, 0.14, 0.2, 0.24, 0.28, 0.32, 0.36, 0.4, 0.44, 0.48)
_DEGREES = range(31)
_LEARNED = {1: (1, 0.2), 2: (2, 0.32)}  # setting → degree that is learned, exponent to look at


def base_problem(quick: bool) -> Problem:
    """The ratios of the demonstration."""
    n = 1000 if quick else 3000
    return Problem(
        activation="relu",
        centre=True,
        n=n,
        d=3 * n // 10,
        width=n // 2,
        ridge=0.1,
        step_exponent=0.3,
    )


def compute(setting: int, quick: bool, progress: ShareDone) -> xarray.Dataset:
    """Curves, simulated points with their predictions, stairs and baselines."""
    _, fields = SETTINGS[setting - 1]
    problem, seeds = base_problem(quick).replace(**fields), 16 if quick else 24
    known = baselines(problem)
    compared = {"untrained": known.untrained, "ridge": known.ridge_n_tuned}
    sizes = {"n": problem.n, "d": problem.d, "width": problem.width, "seeds": seeds}
    data = over(progress, partial(_errors, problem, seeds), {}).assign_coords(degree=_DEGREES)
    return data.assign_attrs(base=repr(problem), **sizes, **compared)


def _errors(problem: Problem, seeds: int, told: Progress) -> dict[str, Any]:
    """Everything over the exponents, and the limits by degree."""
    grid = problem.vary(step_exponent=EXPONENTS)
    run = simulate(grid, seeds=seeds, variants=("trained", "initial"), progress=told).dataset
    found, start = (run.sel(variant=name, drop=True) for name in ("trained", "initial"))
    at, fine = predict(grid), predict(problem.vary(step_exponent=np.linspace(0.0, 0.5, 101)))
    data: dict[str, Any] = {"admitted": at["allowance"]}
    for name in ERRORS:
        data[f"predicted_{name}"] = at[name]
        data[f"curve_{name}"] = fine[name].rename(step_exponent="curve_exponent")
        data[f"simulated_{name}"], data[f"error_{name}"] = over_seeds(found[name])
        for kind, grown in (("published", False), ("grown", True)):
            stairs = [limit(problem, degree=k, norm_growth=grown) for k in _DEGREES]
            data[f"{kind}_{name}"] = ("degree", [getattr(step, name) for step in stairs])
    data["gain"], data["error_gain"] = over_seeds(start["test_error"] - found["test_error"])
    return data


@drawn(columns=2, height=2.7)
def draw(setting: int, data: xarray.Dataset, *panels: Axes) -> None:
    """Training loss and test error: stairs, finite-n curve, simulated points."""
    figure_of(panels[0]).suptitle(SETTINGS[setting - 1][0], fontsize=8)
    for ax, name in zip(panels, ERRORS, strict=True):
        _panel(ax, data, name)
    panels[1].axhline(data.attrs["ridge"], color="0.6", linewidth=0.8, linestyle=(0, (1, 1.5)))
    place = (0.005, data.attrs["ridge"])
    panels[1].annotate(
        "tuned ridge on the inputs", place, xytext=(0, 2), textcoords="offset points", fontsize=6.5
    )
    legend_below(panels[0], shared=True, ncols=4)


def _panel(ax: Axes, data: xarray.Dataset, name: str) -> None:
    ax.set_xlim(0.0, 0.5)
    shade_regimes(ax)
    for kind, colour, text in (
        ("published", "black", LIMIT_NAME),
        ("grown", PALETTE[2], GROWN_NAME),
    ):
        levels = data[f"{kind}_{name}"].values[1:]
        ends = [*(interval(degree)[0] for degree in range(1, len(levels) + 1)), 0.5]
        style: dict[str, Any] = {
            "color": colour,
            "linewidth": 0.9,
            "linestyle": dashes(kind == "grown"),
        }
        ax.stairs(levels, ends, baseline=None, label=text, **style)
    n = data.attrs["n"]
    curve = data[f"curve_{name}"]
    ax.plot(curve["curve_exponent"], curve, color=PALETTE[0], label=f"theory, $n = {n}$")
    mean, error = data[f"simulated_{name}"], data[f"error_{name}"]
    place: dict[str, Any] = {
        "colour": PALETTE[1],
        "noted": data["admitted"],
        "name": SIMULATED_NAME,
    }
    points(ax, data["step_exponent"], mean, error, **place)
    ax.set_xlabel(label("step_exponent"))
    ax.set_ylabel(label(name))


def check(setting: int, data: xarray.Dataset) -> Iterator[Claim]:
    """Theory on simulation; the error falls in the interval where the new spike appears."""
    for name in ERRORS:
        words, kinds = name.replace("_", " "), ("predicted", "simulated", "error")
        predicted, simulated, error = (data[f"{kind}_{name}"] for kind in kinds)
        yield agreement(words, predicted, simulated, error, data["admitted"])
    degree, exponent = _LEARNED[setting]
    at = data.sel(step_exponent=exponent)
    names = ("simulated_test_error", "error_test_error", "gain", "error_gain")
    value, spread, gain, paired = (float(at[name]) for name in names)
    words = f"test error at α = {exponent:g} (ℓ = {degree}) against"
    yield below(f"{words} the untrained network", value, paired, value + gain)
    first, second = (float(data["published_test_error"].sel(degree=k)) for k in (1, 2))
    if setting == 1:
        text = "published limits of ℓ = 1 and 2 agree, no quadratic part"
        yield Claim(f"{text}: {first:.4f}, {second:.4f}", abs(second / first - 1.0) < 1e-9)
    else:
        yield below(f"{words} what the linear part alone allows", value, spread, first)
        ridge = data.attrs["ridge"]
        yield below(f"{words} tuned ridge on the inputs", value, spread, ridge, by=2.0)
