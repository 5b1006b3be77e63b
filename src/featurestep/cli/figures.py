"""Which figure belongs to which answer of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .. import theory
from ..errors import FeaturestepError, InvalidProblem
from ..plots.style import label, spans_decades
from ..problem import Problem
from .options import Request
from .output import fields_of, joined
from .run import Run

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

    from ..meeting.comparison import Comparison
    from ..simulation import Simulation

_CURVE_POINTS = 61
_ERRORS = ("train_loss", "test_error")
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


def draw_learned(found: theory.Prediction) -> Axes:
    """What the network computes along the learned direction."""
    from ..plots.curves import learned

    return learned(found)


def draw_errors(request: Request, results: xarray.Dataset) -> Axes:
    """Both errors against the first field, with the limits where it is the step exponent."""
    from ..plots.curves import curves

    stairs = [_limits(problem) for problem in request.lines] if _is_exponent(results) else []
    return curves(results, _ERRORS, stairs)[0]


def draw_stairs(request: Request, results: xarray.Dataset) -> Axes:
    """The limits: exact steps against the step exponent, a plain curve against other fields."""
    from ..plots.curves import curves

    if not _is_exponent(results):
        return curves(results, _ERRORS)[0]
    stairs = [_limits(problem) for problem in request.lines]
    return curves(results, _ERRORS, stairs, finite=False)[0]


def draw_baselines(request: Request, results: xarray.Dataset) -> Axes:
    """The telling baselines in one panel."""
    return draw_together(request, results, _TELLING, label("test_error"))


def draw_together(
    request: Request, results: xarray.Dataset, variables: Sequence[str], title: str
) -> Axes:
    """Several results of a kind in one panel against the one field."""
    from ..plots.curves import compare

    if len(request.axes) > 1:
        raise InvalidProblem("--plot", "takes a single --over for this command", request.over)
    return compare(results, variables, title)


def _is_exponent(results: xarray.Dataset) -> bool:
    return fields_of(results)[0] == "step_exponent"


def _limits(problem: Problem) -> list[theory.Limit]:
    """The limit of each regime worth drawing; none where the theory has none."""
    try:
        return [theory.limit(problem, degree=degree) for degree in _DEGREES]
    except FeaturestepError:
        return []


def draw_simulations(run: Run, found: Sequence[Simulation]) -> Axes:
    """Both errors with error bars: against the first field, or each variant's on its own."""
    from ..plots.simulation import draws, simulated

    if not run.request.over:
        return draws(found[0].dataset)
    mean = _lines([each.mean for each in found], run)
    error = None
    if len(found[0].seeds) > 1:
        error = _lines([each.standard_error for each in found], run)
    return simulated(mean, error, _ERRORS)[0]


def check_lines(run: Run) -> None:
    """Refuse a figure that would need lines in two dimensions."""
    if len(run.arguments["variants"]) > 1 and len(run.request.over) > 1:
        raise InvalidProblem("--plot", "takes one --over or one variant", run.request.over)


def draw_comparisons(run: Run, found: Sequence[Comparison]) -> Axes:
    """The theory's curves with the simulated points, or the gaps of one problem."""
    from ..plots.simulation import agreement, gaps

    if not run.request.over:
        return gaps(found[0].rows)
    mean = _lines([each.simulation.mean for each in found], run)
    error = _lines([each.simulation.standard_error for each in found], run)
    dense = _refined(run.request)
    theory_curve = joined([theory.predict(grid) for grid in dense.grids])
    return agreement(theory_curve.transpose(*dense.axes), mean, error, _ERRORS)[0]


def _refined(request: Request) -> Request:
    """The same request with enough points for a curve along the first field, if a number."""
    name, values = next(iter(request.axes.items()))
    if len(values) < 2 or not all(type(value) in (int, float) for value in values):
        return request
    low, high = min(values), max(values)
    scale = "log:" if spans_decades(name, low, high) else ""
    axis = f"{name}={scale}{low!r}:{high!r}:{_CURVE_POINTS}"
    return replace(request, over=(axis, *request.over[1:]))


def _lines(parts: Sequence[xarray.Dataset], run: Run) -> xarray.Dataset:
    """Both errors by the fields asked for, and by variant where there are several."""
    results = joined([part[list(_ERRORS)] for part in parts])
    if results.sizes["variant"] == 1:
        results = results.squeeze("variant", drop=True)
    return results.transpose(*run.request.axes, ...)
