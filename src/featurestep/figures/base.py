"""What figures and studies have in common: data over axes, drawings, and claims about both."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any

import numpy as np

from ..core.grid import Grid
from ..core.problem import Problem
from ..core.types import Figure, xarray
from ..figures import Claim, ShareDone
from ..functions.activations import function
from ..meeting.comparison import Z_LIMIT, within
from ..plots.style import figure_of, new_axes, styled
from ..simulation import simulate
from ..theory import predict

TWO_COLUMNS = 6.8  # inches
# Bounded, with c_1, c_2, c_3 ≠ 0: every spike of the first regimes, and no row outside the bulk.
SHIFTED_SINE = function(
    lambda z: np.sin(z + 0.6), derivative=lambda z: np.cos(z + 0.6), name="sin(z + 0.6)"
)


def drawn(**layout: Any) -> Callable[[Callable[..., None]], Callable[..., Figure]]:
    """Draw on the Axes of a new figure, two columns wide if nothing else is said."""

    def decorate(draw: Callable[..., None]) -> Callable[..., Figure]:
        @styled
        @wraps(draw)
        def inner(*data: Any) -> Figure:
            axes = new_axes(**{"width": TWO_COLUMNS, **layout})
            draw(*data, *axes)
            return figure_of(axes[0])

        return inner

    return decorate


def sizes_of(problem: Problem) -> dict[str, int]:
    """The sizes that data are recorded with."""
    return {name: getattr(problem, name) for name in ("n", "d", "width", "n_step")}


def over(
    progress: ShareDone,
    one: Callable[..., Mapping[str, Any]],
    axes: dict[str, Any],
    weight: Callable[..., float] = lambda *point: 1.0,
) -> xarray.Dataset:
    """What one(told, *point) finds at every point of some axes, as data over them.

    An axis has values, or values by their names. `weight` is the work of a point among all.
    """
    values = [axis.values() if isinstance(axis, Mapping) else axis for axis in axes.values()]
    points = list(itertools.product(*values))
    weights = [weight(*point) for point in points]
    *starts, total = itertools.accumulate(weights, initial=0.0)
    found = []
    for point, start, share in zip(points, starts, weights, strict=True):
        told = partial(_tell, progress, start / total, share / total)
        found.append(xarray.Dataset(one(told, *point)))
        told(1, 1)
    for name, axis in reversed(axes.items()):
        firsts = range(0, len(found), len(axis))
        found = [xarray.concat(found[i : i + len(axis)], name) for i in firsts]
    return found[0].assign_coords({name: list(axis) for name, axis in axes.items()})


def _tell(report: ShareDone, before: float, share: float, done: int, total: int) -> None:
    report(before + share * done / max(total, 1))


def over_seeds(draws: xarray.DataArray) -> tuple[xarray.DataArray, xarray.DataArray]:
    """Means over the seeds, and their standard errors."""
    return draws.mean("seed"), draws.std("seed", ddof=1) / draws.sizes["seed"] ** 0.5


def beside(grid: Grid, fine: Grid | None = None, **run: Any) -> dict[str, xarray.DataArray]:
    """Test errors over a grid: predicted, with what the notes admit, and simulated.

    The theory's curve is over the values that a fine grid has of the first field. The other
    arguments are those of `simulate`.
    """
    draws = simulate(grid, **run).dataset["test_error"]
    draws = draws.squeeze("variant", drop=True) if draws.sizes["variant"] == 1 else draws
    mean, error = over_seeds(draws)
    at = predict(grid)
    data = {"predicted": at["test_error"], "admitted": at["allowance"], "draws": draws}
    if fine is not None:
        field = fine.dims[0]
        data["curve"] = predict(fine)["test_error"].rename(
            {field: f"curve_{field.removeprefix('step_')}"}
        )
    return {**data, "simulated": mean, "standard_error": error}


def agreement(
    what: str, predicted: Any, simulated: Any, standard_error: Any, admitted: Any = 0.0
) -> Claim:
    """Theory within Z_LIMIT standard errors of a simulation, and what its own notes admit.

    `admitted` is the relative error that the notes of each point admit: the `allowance` of a
    grid's predictions.
    """
    predicted, simulated, error, admitted = np.broadcast_arrays(
        *(np.asarray(array) for array in (predicted, simulated, standard_error, admitted))
    )
    gap, exact = simulated - predicted, admitted == 0.0
    z = (np.abs(gap) / error)[exact]
    text = f"{what}: theory within {Z_LIMIT:g} s.e. of the simulation at {z.size} points"
    text += f" (largest gap {z.max(initial=0.0):.1f} s.e.)"
    if not exact.all():
        off = np.abs(gap / predicted)[~exact].max()
        most = admitted.max()
        text += f"; where its notes admit up to {most:.1%}, at {np.sum(~exact)} points, "
        text += f"at most {off:.1%} apart"
    # A NaN must not pass, nor a figure whose every point is excused.
    holds = z.size and np.all(within(gap, predicted, error, admitted)) and np.all(np.isfinite(gap))
    return Claim(text, bool(holds))


def as_predicted(what: str, data: xarray.Dataset, admitted: Any = 0.0) -> Claim:
    """Agreement of the means that data have with the predictions beside them."""
    return agreement(what, data["predicted"], data["simulated"], data["standard_error"], admitted)


def below(what: str, value: float, error: float, other: float, *, by: float = Z_LIMIT) -> Claim:
    """A simulated value lies below another by so many standard errors."""
    z = (other - value) / error
    text = f"{what}: {value:.4g} ± {error:.2g} against {other:.4g}, {z:.1f} s.e. lower"
    return Claim(f"{text} (at least {by:g})", bool(z >= by))


MIN_SEPARATION = 3.0  # standard errors
THEORY_TOLERANCE = 0.04  # relative: the theory is asked to hold within it


def close(
    what: str, predicted: Any, draws: xarray.DataArray, *, share: float = THEORY_TOLERANCE
) -> Claim:
    """Theory within MIN_SEPARATION standard errors of the draws' mean, or within a share of it."""
    (mean, error), predicted = over_seeds(draws), np.asarray(predicted, dtype=float)
    gap = np.abs(mean.values - predicted)
    holds = np.all(gap <= np.maximum(MIN_SEPARATION * error.values, share * np.abs(predicted)))
    worst = float(np.max(gap / np.abs(predicted)))
    text = (
        f"{what}: theory within {MIN_SEPARATION:g} s.e. or {share:.0%} at {predicted.size} points "
        f"(largest gap {worst:.1%})"
    )
    return Claim(text, bool(holds and np.all(np.isfinite(gap))))


def larger(
    what: str, left: xarray.DataArray, right: xarray.DataArray, *, by: float = MIN_SEPARATION
) -> Claim:
    """left − right over the same draws is above 0 by so many standard errors."""
    mean, error = map(float, over_seeds(left - right))
    text = f"{what}: {float(left.mean()):.4g} against {float(right.mean()):.4g}"
    holds = mean > 0.0 and mean >= by * error
    return Claim(f"{text}, apart by {mean:.3g} ± {error:.2g}", holds)
