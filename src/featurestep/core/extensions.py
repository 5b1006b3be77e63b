"""Fields beyond the plain problem, and what a verb does with those that it does not know.

A plain problem takes one step on rows of its own and fits its readout by ridge regression, on
isotropic inputs. Every verb states which other values it knows; the rest is refused here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .errors import InvalidProblem
from .grid import Grid
from .problem import Problem

PLAIN: dict[str, tuple[Any, str]] = {  # value of each field in a plain problem, and the rule
    "loss": ("square", "must be square"),
    "intercept": (False, "must be False"),
    "rows": ("fresh", "must be fresh"),
    "steps": (1, "must be 1"),
    "batches": ("fresh", "must be fresh"),
    "covariance": (None, "must be None"),
}
ALL = frozenset(PLAIN)
LOSS = frozenset({"loss", "intercept"})
_OF_FEATURES = (
    "features do not depend on the readout's loss: leave it out; labels ±1 are not supported here"
)
_WHY_FRESH = {"critical_steps": "spectra on rows of the step are for one step; use spectrum"}
_WHY_SQUARE = {  # why a verb knows the square loss only
    "limit": "other losses have no closed form as n → ∞; use predict at finite n",
    "learnable": "its floors are bounds on squared errors",
    "phase_diagram": _OF_FEATURES,
    "spectrum": _OF_FEATURES,
    "critical_steps": _OF_FEATURES,
    "simulated_spectrum": _OF_FEATURES,
}


def require_known(problem: Problem | Grid, what: str, *known: Collection[str]) -> None:
    """Refuse fields that are not plain, unless all of them are in one of the `known` sets.

    `require_known(p, "predict", {"loss", "intercept"}, {"rows"})` lets pass another loss, or rows
    that are used twice, but not both. A grid is refused if one of its values is.
    """
    found = departing(problem)
    sets = [frozenset(names) for names in (*known, ())]
    if any(found.keys() <= names for names in sets):
        return
    nearest = min(sets, key=lambda names: len(found.keys() - names))
    name = next(name for name in found if name not in nearest)
    rest = [f"{each} {found[each]}" for each in found if each in nearest]
    beside = f" with {' and '.join(rest)}" if rest else ""
    reasons = {"rows": _WHY_FRESH, "loss": _WHY_SQUARE, "intercept": _WHY_SQUARE}.get(name, {})
    reason = reasons.get(what.removeprefix("the task "))
    why = f" ({reason})" if reason else ""
    raise InvalidProblem(name, f"{PLAIN[name][1]} for {what}{beside}{why}", found[name])


def has_other_loss(problem: Problem | Grid) -> bool:
    """True if a problem, or a point of a grid, has another loss than the square or an intercept."""
    return not departing(problem).keys().isdisjoint(LOSS)


def departing(problem: Problem | Grid) -> dict[str, Any]:
    """The fields that are not plain, each with a value of it."""
    base: object = problem.base if isinstance(problem, Grid) else problem
    axes = problem.axes if isinstance(problem, Grid) else {}
    if "step_sizes" in axes:
        axes = {**axes, "steps": tuple(len(sizes) or 1 for sizes in axes["step_sizes"])}
    found = {}
    for name, (plain, _) in PLAIN.items():
        for value in axes.get(name, (getattr(base, name, plain),)):
            if value != plain:
                found[name] = value
                break
    return found
