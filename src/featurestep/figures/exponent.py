"""Errors against the step exponent, in the two settings of Moniri et al."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..demo import SETTINGS
from ..plots.curves import GROWN_NAME, LIMIT_NAME, dashes, shade_regimes
from ..plots.simulation import SIMULATED_NAME, points
from ..plots.style import PALETTE, figure_of, label, legend_below, new_axes, styled
from ..problem import Problem
from ..regime import interval
from ..simulation import simulate
from ..theory import baselines, limit, predict
from .base import TWO_COLUMNS, Claim, PaperFigure, Report, agreement, below, means, parts

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPONENTS = (0.02, 0.08, 0.14, 0.2, 0.24, 0.28, 0.32, 0.36, 0.4, 0.44, 0.48)
ERRORS = ("train_loss", "test_error")
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


def compute(fields: Mapping[str, Any], quick: bool, progress: Report) -> xarray.Dataset:
    """Curves, simulated points with their predictions, stairs and baselines."""
    problem = base_problem(quick).replace(**fields)
    grid = problem.vary(step_exponent=EXPONENTS)
    (told,) = parts(progress, [1.0])
    seeds = 16 if quick else 24
    found = simulate(grid, seeds=seeds, variants=("trained", "initial"), progress=told)
    at_points = predict(grid).dataset
    fine = predict(problem.vary(step_exponent=np.linspace(0.0, 0.5, 101))).dataset
    fine = fine.rename(step_exponent="curve_exponent")
    data = at_points[list(ERRORS)].rename({name: f"predicted_{name}" for name in ERRORS})
    data["admitted"] = at_points["allowance"]
    for name in ERRORS:
        data[f"curve_{name}"] = fine[name]
        data[f"simulated_{name}"], data[f"error_{name}"] = means(found, name)
        for kind, grown in (("published", False), ("grown", True)):
            stairs = [limit(problem, degree=k, norm_growth=grown) for k in _DEGREES]
            data[f"{kind}_{name}"] = ("degree", [getattr(step, name) for step in stairs])
    errors = found.dataset["test_error"]
    gain = errors.sel(variant="initial") - errors.sel(variant="trained")
    data["gain"] = gain.mean("seed")
    data["error_gain"] = gain.std("seed", ddof=1) / seeds**0.5
    known = baselines(problem)
    sizes = {"n": problem.n, "d": problem.d, "width": problem.width, "seeds": seeds}
    compared = {"untrained": known.untrained, "ridge": known.ridge_n_tuned}
    return data.assign_coords(degree=list(_DEGREES)).assign_attrs(**sizes, **compared)


@styled
def draw(setting: int, data: xarray.Dataset) -> Figure:
    """Training loss and test error: stairs, finite-n curve, simulated points."""
    panels = new_axes(columns=2, width=TWO_COLUMNS, height=2.7)
    figure = figure_of(panels[0])
    figure.suptitle(SETTINGS[setting - 1][0], fontsize=8)
    for ax, name in zip(panels, ERRORS, strict=True):
        _panel(ax, data, name)
    panels[1].axhline(data.attrs["ridge"], color="0.6", linewidth=0.8, linestyle=(0, (1, 1.5)))
    place = (0.005, data.attrs["ridge"])
    panels[1].annotate(
        "tuned ridge on the inputs", place, xytext=(0, 2), textcoords="offset points", fontsize=6.5
    )
    legend_below(panels[0], shared=True, ncols=4)
    return figure


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


def check(setting: int, data: xarray.Dataset) -> list[Claim]:
    """Theory on simulation; the error falls in the interval where the new spike appears."""
    claims = [
        agreement(
            name.replace("_", " "),
            data[f"predicted_{name}"],
            data[f"simulated_{name}"],
            data[f"error_{name}"],
            data["admitted"],
        )
        for name in ERRORS
    ]
    degree, exponent = _LEARNED[setting]
    at = data.sel(step_exponent=exponent)
    gain, error = float(at["gain"]), float(at["error_gain"])
    words = f"test error at α = {exponent:g} (ℓ = {degree}) against the untrained network"
    value = float(at["simulated_test_error"])
    claims.append(below(words, value, error, value + gain))
    published = data["published_test_error"]
    first, second = float(published.sel(degree=1)), float(published.sel(degree=2))
    if setting == 1:
        same = abs(second / first - 1.0) < 1e-9
        text = (
            f"published limits of ℓ = 1 and 2 agree, no quadratic part: {first:.4f}, {second:.4f}"
        )
        claims.append(Claim(text, same))
    else:
        spread = float(at["error_test_error"])
        words = f"test error at α = {exponent:g} (ℓ = 2) against what the linear part alone allows"
        claims.append(below(words, value, spread, first))
        words = f"test error at α = {exponent:g} (ℓ = 2) against tuned ridge on the inputs"
        claims.append(below(words, value, spread, data.attrs["ridge"], by=2.0))
    return claims


def _figure(setting: int) -> PaperFigure:
    title, fields = SETTINGS[setting - 1]
    return PaperFigure(
        f"exponent-{setting}",
        f"errors against the step exponent, {title}",
        partial(compute, fields),
        partial(draw, setting),
        partial(check, setting),
    )


FIRST, SECOND = _figure(1), _figure(2)
