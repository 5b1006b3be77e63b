"""Which figure belongs to which answer of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import theory
from .cli_options import Request
from .cli_output import fields_of
from .errors import FeaturestepError, InvalidProblem
from .problem import Problem

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

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
    from .plots import learned

    return learned(found)


def draw_errors(request: Request, results: xarray.Dataset) -> Axes:
    """Both errors against the first field, with the limits where it is the step exponent."""
    from .plots import curves

    stairs = [_limits(problem) for problem in request.lines] if _is_exponent(results) else []
    return curves(results, _ERRORS, stairs)[0]


def draw_stairs(request: Request, results: xarray.Dataset) -> Axes:
    """The limits: exact steps against the step exponent, a plain curve against other fields."""
    from .plots import curves

    if not _is_exponent(results):
        return curves(results, _ERRORS)[0]
    stairs = [_limits(problem) for problem in request.lines]
    return curves(results, _ERRORS, stairs, finite=False)[0]


def draw_baselines(request: Request, results: xarray.Dataset) -> Axes:
    """The telling baselines in one panel against the one field."""
    from .plots import compare

    if len(request.axes) > 1:
        raise InvalidProblem("--plot", "takes a single --over for this command", request.over)
    return compare(results, _TELLING)


def _is_exponent(results: xarray.Dataset) -> bool:
    return fields_of(results)[0] == "step_exponent"


def _limits(problem: Problem) -> list[theory.Limit]:
    """The limit of each regime worth drawing; none where the theory has none."""
    try:
        return [theory.limit(problem, degree=degree) for degree in _DEGREES]
    except FeaturestepError:
        return []
