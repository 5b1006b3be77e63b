"""The demonstration: two published targets, learned degree by degree as the step grows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from .core.problem import Problem
from .core.results import GridResult, require_known
from .core.types import Axes
from .meeting.comparison import Comparison, compare
from .plots.curves import GROWN_NAME, LIMIT_NAME, curve, shade_regimes, staircase
from .plots.simulation import ERRORS, SIMULATED_NAME, points
from .plots.style import PALETTE, legend_below, new_axes, styled
from .theory import Limit, limit, predict

SETTINGS = (
    ("setting 1: y = H₁ + ε, ε ~ N(0, 1)", {"target": "H1", "noise_std": 1.0}),
    ("setting 2: y = H₁ + H₂/√2", {"target": "H1 + H2/sqrt(2)", "noise_std": 0.0}),
)
EXPONENTS = (0.1, 0.2, 0.3, 0.35, 0.39, 0.42)
EXPLANATION = (
    "A larger step teaches the network more: below exponent 1/4 it gains the linear part of the "
    "target, above it the quadratic part too, which helps only where the target has one "
    "(setting 2); in the limit of large n the curve becomes a staircase, which is not quite the "
    "published one because the step also changes the norms of the neurons."
)
_CURVE_POINTS = 101  # points of each
_LARGE_FACTOR = 10_000  # times larger sizes, to show the smooth curve turn into the staircase
_DEGREES = range(31)


@dataclass(frozen=True)
class DemoCurves:
    """One target's curves, at the sizes asked for, at far larger ones, in the limit; networks."""

    title: str
    finite: GridResult
    large: GridResult
    limits: tuple[Limit, ...]
    grown: tuple[Limit, ...]  # limits with norm growth
    compared: Comparison  # with networks, at EXPONENTS


def run_demo(
    base: Problem,
    *,
    seeds: int | Iterable[int] = 8,
    progress: Callable[[float], None] = lambda share: None,
) -> list[DemoCurves]:
    """Errors of both settings against the step exponent, from 0 to 1/2, and real networks.

    `progress` is told the share of the work that is done.
    """
    require_known(base, "the demonstration")
    exponents = np.linspace(0.0, 0.5, _CURVE_POINTS)
    names = ("n", "d", "width", "n_step")
    far = {name: getattr(base, name) * _LARGE_FACTOR for name in names}
    settings = []
    for which, (title, fields) in enumerate(SETTINGS):
        problem = base.replace(**fields)

        def told(done: int, total: int, before: int = which) -> None:
            progress((before + done / total) / len(SETTINGS))

        compared = compare(problem.vary(step_exponent=EXPONENTS), seeds=seeds, progress=told)
        settings.append(
            DemoCurves(
                title=title,
                finite=predict(problem.vary(step_exponent=exponents)),
                large=predict(problem.replace(**far).vary(step_exponent=exponents)),
                limits=tuple(limit(problem, degree=k) for k in _DEGREES),
                grown=tuple(limit(problem, degree=k, norm_growth=True) for k in _DEGREES),
                compared=compared,
            )
        )
    return settings


def demo_rows(settings: list[DemoCurves]) -> list[list[str | float]]:
    """For a handful of exponents, test errors of both settings: predicted, simulated, limits."""
    columns: list[Iterable[str | float]] = [EXPONENTS]
    for setting in settings:
        found, grid = setting.compared.dataset.sel(quantity="test_error"), setting.compared.problem
        pairs = zip(found["simulated"].values, found["standard_error"].values, strict=True)
        columns.append(found["predicted"].values)
        columns.append(f"{mean:.4f} ± {error:.4f}" for mean, error in pairs)
        columns += [
            limit(grid, norm_growth=grown).dataset["test_error"].values for grown in (False, True)
        ]
    return [list(row) for row in zip(*columns, strict=True)]


def demo_notes(settings: list[DemoCurves]) -> list[str]:
    """How far to trust the finite-n curves."""
    return list(dict.fromkeys(note for setting in settings for note in setting.finite.notes))


@styled
def draw(base: Problem, settings: list[DemoCurves]) -> Axes:
    """Training loss above test error, one column for each setting."""
    panels = new_axes(rows=2, columns=2, width=6.6, height=4.4)
    for column, setting in enumerate(settings):
        for row, error in enumerate(ERRORS):
            ax = panels[2 * row + column]
            curve(setting.finite.dataset, error, ax)
            curve(setting.large.dataset, error, ax)
            ax.lines[0].set_label(f"n = {base.n:,}")
            ax.lines[1].set(
                label=f"n = {base.n * _LARGE_FACTOR:,}", color=PALETTE[1], linewidth=0.9
            )
            ax.set_xlim(0.0, 0.5)
            shade_regimes(ax, names=row == 0)
            staircase(setting.limits, error, ax, name=LIMIT_NAME)
            staircase(setting.grown, error, ax, colour=PALETTE[2], name=GROWN_NAME, second=True)
            found = setting.compared.dataset.sel(quantity=error)
            bars = found["standard_error"]
            points(ax, EXPONENTS, found["simulated"], bars, colour="0.25", name=SIMULATED_NAME)
            ax.set_xlabel(ax.get_xlabel() if row else "")
        panels[column].set_title(setting.title, pad=14)
    legend_below(panels[0], shared=True, ncols=5)
    return panels[0]
