"""Which figure belongs to which result: what `.plot()` and the command line's --plot draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core.errors import FeaturestepError
from ..core.grid import Grid
from ..core.problem import Problem
from ..core.results import GridResult, Result
from ..core.types import Axes, FloatArray
from ..simulation import SimulatedSpectrum
from ..theory import (
    Baselines,
    CriticalSteps,
    Learnable,
    Limit,
    LossBaselines,
    Optimum,
    Spectrum,
    critical_steps,
    limit,
    predict,
    spectrum,
)
from .curves import at_most, by_entry, compare, curves, learned, shade_regimes, staircase
from .diagrams import phase, tracks
from .simulation import ERRORS, GAP, comparison, gap, named, simulated_spectrum, simulation
from .spectra import features, panels
from .style import (
    PALETTE,
    figure_of,
    label,
    legend_below,
    new_axes,
    of_loss,
    styled,
    symbols,
)

TRACK = tuple(i / 80 for i in range(41))  # exponents over which spikes are followed
_DEGREES = range(31)
_TELLING = (
    "untrained",
    "ridge_n_tuned",
    "ridge_all_tuned",
    "best_linear",
    "best_given_direction",
    "best_given_direction_and_linear",
    "noise_floor",
)
_LOSS_TELLING = (
    *("untrained", "linear_n", "linear_n_tuned", "linear_all_tuned"),
    *("best_affine", "best_given_direction", "bayes_error"),
)
_LOSSES = ("test_loss", "train_loss", "test_error")
_FLOORS = ("floor", "class_floor", "floor_many", "class_floor_many")


def draw(result: Result, ax: Axes | None = None, **options: Any) -> Axes:
    """The figure of a result; with `ax`, on those Axes, where it is one panel."""
    if isinstance(result, GridResult):
        at_most(result.problem, 2)
        drawing = _drawing(_MANY, result.kind)
    else:
        drawing = _drawing(_ONE, type(result))
    return drawing(result, **({} if ax is None else {"ax": ax}), **options)


def _drawing(table: Mapping[str, Callable[..., Axes]], kind: type) -> Callable[..., Axes]:
    """How a kind of result is drawn: as the nearest of its bases in the table."""
    return next(table[base.__name__] for base in kind.__mro__ if base.__name__ in table)


def limits(problem: Problem) -> list[Limit]:
    """The limit of each regime worth drawing; none where the theory has none."""
    try:
        return [limit(problem, degree=degree) for degree in _DEGREES]
    except FeaturestepError:
        return []


def _stairs(grid: Grid) -> list[list[Limit]]:
    """Limits for each line, one for each value of a second field, over the step exponent."""
    first, *second = grid.dims
    if first != "step_exponent":
        return []
    if not second:
        return [limits(grid.base)]
    return [limits(grid.base.replace(**{second[0]: value})) for value in grid.axes[second[0]]]


@styled
def _limit(result: Limit, ax: Axes | None = None) -> Axes:
    """The staircase of the problem, with this limit as a point on it."""
    ax = new_axes()[0] if ax is None else ax
    ax.set_xlim(0.0, 0.5)
    for i, name in enumerate(ERRORS):
        staircase(limits(result.problem), name, ax, colour=PALETTE[i], name=label(name))
        if result.problem.regime.exponent is not None:
            x = min(max(result.problem.regime.exponent, 0.0), 0.5)
            ax.plot([x], [getattr(result, name)], "o", color=PALETTE[i], clip_on=False)
    shade_regimes(ax)
    ax.set_xlabel(label("step_exponent"))
    ax.set_ylabel("limit $n \\to \\infty$")
    legend_below(ax)
    return ax


def _limits(result: GridResult) -> Axes:
    stairs = _stairs(result.problem)
    return curves(result.dataset, ERRORS, stairs, finite=not stairs)[0]


def _losses(result: GridResult) -> Axes:
    """Losses and the test error, by their own names."""
    names = {name: of_loss(name, result.problem) for name in _LOSSES}
    return curves(named(result.dataset, names), tuple(names.values()))[0]


@styled
def _baselines(result: Baselines | LossBaselines, ax: Axes | None = None) -> Axes:
    """One bar for each baseline's test error."""
    names = [name for name in result.MEANINGS if not name.endswith("_loss")]
    ax = new_axes(height=0.8 + 0.2 * len(names))[0] if ax is None else ax
    heights = np.arange(len(names))[::-1]
    ax.barh(heights, [getattr(result, name) for name in names], color=PALETTE[0], height=0.6)
    ax.set_yticks(heights, [label(name) for name in names])
    ax.set_xlabel(label(of_loss("test_error", result.problem)))
    return ax


def _errors(result: GridResult, ax: Axes | None = None, *, names: Sequence[str]) -> Axes:
    """Several errors of each point against the one field."""
    at_most(result.problem, 1)
    return compare(result.dataset, names, label(of_loss("test_error", result.problem)), ax)


@styled
def _optimum(result: Optimum, ax: Axes | None = None) -> Axes:
    """The error around its minimum: a curve over one field, contours over two."""
    ax = new_axes()[0] if ax is None else ax
    points = 49 if len(result.location) == 1 else 15
    around_best = np.geomspace(0.1, 10.0, points)  # two decades, with the best one among them
    spans = {name: (at * around_best).tolist() for name, at in result.location.items()}
    around = predict(result.problem.vary(**spans)).dataset[result.minimise]
    title = label(of_loss(result.minimise, result.problem))
    x, *second = spans
    if second:
        fine, values = _finer(spans[x], spans[second[0]], around.values)
        shown = ax.contourf(*fine, values.T, 12, cmap="viridis_r")
        figure_of(ax).colorbar(shown, ax=ax, label=title)
        ax.set_yscale("log")
        ax.set_ylabel(label(second[0]))
        height = result.location[second[0]]
    else:
        ax.plot(spans[x], around, color=PALETTE[0])
        ax.set_ylabel(title)
        height = result.value
    star: dict[str, Any] = {"marker": "*", "markersize": 9, "linestyle": "none", "zorder": 3}
    ax.plot(result.location[x], height, color=PALETTE[1], label="minimum", **star)
    ax.set_xscale("log")
    ax.set_xlabel(label(x))
    ax.set_title(f"minimum {result.value:.4g}")
    return ax


def _finer(
    x: Sequence[float], y: Sequence[float], values: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
    """Smooth contours through the points of a grid, which are few: a cubic spline over decades."""
    from scipy.interpolate import RectBivariateSpline

    if not np.isfinite(values).all():
        return (np.array(x), np.array(y)), values
    fine = (np.geomspace(x[0], x[-1], 81), np.geomspace(y[0], y[-1], 81))
    spline = RectBivariateSpline(np.log(x), np.log(y), values)
    return fine, np.asarray(spline(np.log(fine[0]), np.log(fine[1])))


def _optima(result: GridResult) -> Axes:
    """The best ridge or step, above the error there, against the field."""
    at_most(result.problem, 1)
    table = result.dataset
    known = [name for name in ("ridge", "step_size") if name in table]
    moved = [name for name in known if np.ptp(table[name].values.astype(float)) > 0]
    shown = {name: of_loss(name, result.problem) for name in (*(moved or known[:1]), "test_error")}
    return curves(named(table, shown), tuple(shown.values()))[0]


@styled
def _learnable(result: Learnable, ax: Axes | None = None) -> Axes:
    """Each term's part of the label: what any network could learn of it, and what this one can."""
    ax = new_axes(height=1.0 + 0.35 * len(result.terms))[0] if ax is None else ax
    heights = np.arange(len(result.terms))[::-1]
    sizes = np.array([term.size for term in result.terms])
    bars = {"in the target": np.ones(len(sizes)), "possible": [t.possible for t in result.terms],
            "expressed here": [t.expressed for t in result.terms]}  # fmt: skip
    for i, (name, shares) in enumerate(bars.items()):
        colour = "0.85" if i == 0 else PALETTE[i - 1]
        ax.barh(heights, sizes * shares, height=0.7 - 0.2 * i, color=colour, label=name)
    ax.set_yticks(heights, [symbols(term.name) for term in result.terms])
    ax.set_xlabel("part of $E y^2$")
    legend_below(ax, ncols=3)
    return ax


def _spectrum(
    result: Spectrum, drawn: SimulatedSpectrum | None = None, ax: Axes | None = None
) -> Axes:
    return panels(result, drawn)[0] if ax is None else features(result, drawn, ax)


def _tracks(result: GridResult, ax: Axes | None = None) -> Axes:
    """Edge and spikes against the field, with the critical steps over the step exponent."""
    at_most(result.problem, 1)
    over_step = "step_exponent" in result.problem.axes
    critical = critical_steps(result.problem.base).steps if over_step else ()
    table = result.dataset
    shown = None
    if "simulated_value" in table:  # as many values as spikes, predicted or counted
        predicted = (table["degree"].values >= 0).sum(axis=1)
        counted = np.nan_to_num(table["simulated_count"].values).round()
        most = np.maximum(predicted, counted).astype(int)
        rows = zip(table["simulated_value"].values, most, strict=True)
        shown = [row[np.isfinite(row)][:count] for row, count in rows]
    return tracks(table, critical, shown, ax)


def _critical(result: CriticalSteps, ax: Axes | None = None) -> Axes:
    """The spikes against the exponent, each marked where it leaves the bulk."""
    return tracks(spectrum(result.problem.vary(step_exponent=TRACK)).dataset, result, ax=ax)


_ONE: dict[str, Callable[..., Axes]] = {
    "Prediction": learned,
    "LossPrediction": learned,
    "Limit": _limit,
    "Baselines": _baselines,
    "LossBaselines": _baselines,
    "Optimum": _optimum,
    "Learnable": _learnable,
    "FeatureGap": gap,
    "Simulation": simulation,
    "Comparison": comparison,
    "Spectrum": _spectrum,
    "SpectrumBeside": lambda result, **ax: _spectrum(result.predicted, result.simulated, **ax),
    "CriticalSteps": _critical,
    "PhaseDiagram": lambda result: phase(result.dataset)[0],
    "SimulatedSpectrum": simulated_spectrum,
}
_MANY: dict[str, Callable[..., Axes]] = {
    "Prediction": lambda result: curves(result.dataset, ERRORS, _stairs(result.problem))[0],
    "LossPrediction": _losses,
    "Limit": _limits,
    "Baselines": partial(_errors, names=_TELLING),
    "LossBaselines": partial(_errors, names=_LOSS_TELLING),
    "Optimum": _optima,
    "Learnable": partial(_errors, names=_FLOORS),
    "FeatureGap": partial(by_entry, name="gap", title=GAP),
    "Spectrum": _tracks,
    "SpectrumBeside": _tracks,
    "CriticalSteps": partial(
        by_entry, name="spike_exponent", title=r"critical step exponent $\alpha$"
    ),
    "SimulatedSpectrum": partial(by_entry, name="singular_value", title="simulated singular value"),
}
