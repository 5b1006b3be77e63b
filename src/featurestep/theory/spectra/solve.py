"""`spectrum` (section 5): rung by rung until the bulk is whole; for a grid edge and spikes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.errors import InconsistentSolution, NotConverged
from ...core.problem import Grid, Problem
from ...core.results import GridResult, Progress, over_grid, verb
from ...core.threads import one_thread
from ..validity import Notes, blur_notes, bulk_notes
from .above import BLUR, blurred_interval
from .bulk import bulk
from .fineness import FULL, Budget
from .interval import Interval
from .law import Spectrum
from .model import Model, ladder, model_of
from .outlook import Outlook, outlook
from .weights_law import weight_spectrum

MASS_ERROR = 5e-4  # refused beyond it
BLURRED_MASS_ERROR, BLURRED_MOMENT_ERROR = 1e-2, 2e-2  # of a bulk seen from above


@verb
def spectrum(problem: Problem | Grid, *, progress: Progress | None = None) -> Spectrum | GridResult:
    """Predict the spectrum of the trained features (theory, section 5).

    One problem gives a `Spectrum`: the bulk's density and edges, the atom at 0, the spikes with
    the polynomial that each carries, and the same for the weights. A grid gives edge and spikes
    over its fields, with a status and the notes of each point: the numbers are those of each
    problem by itself.

    >>> from featurestep import Problem, spectrum
    >>> p = Problem(activation="relu", centre=True, target="H1 + H2/sqrt(2)",
    ...             n=2000, d=1000, width=1500, step_exponent=0.38, ridge=0.1)
    >>> spectrum(p).degrees
    (1, 2)
    """
    if isinstance(problem, Grid):
        return over_grid(Spectrum, problem, spectrum, progress)
    return solve_whole(problem)[1]


def solve_whole(problem: Problem) -> tuple[Outlook, Spectrum]:
    """The spectrum of one problem, with the model and equations that it was resolved with."""
    with one_thread(), np.errstate(all="ignore"):
        first = model_of(problem)
        budgets: dict[tuple[object, ...], Budget] = {}  # spent, an attempt fails
        failure: NotConverged | None = None
        for rung in ladder(first):
            model = first if rung == first.rung else model_of(problem, rung)
            kind = rung.stray, rung.varies, rung.blurred
            try:
                return _attempt(model, budgets.setdefault(kind, Budget(FULL.work)))
            except NotConverged as error:
                failure = failure or error
        assert failure is not None
        raise failure


def _attempt(model: Model, budget: Budget) -> tuple[Outlook, Spectrum]:
    """The spectrum of one model, if mass and second moment are what they must be."""
    view = outlook(model, budget=budget)
    if model.rung.blurred:
        part = blurred_interval(view.equations, view.edge, model.atom)
        found = _result(view, (part,), blur_notes(model.atom + part.mass, BLUR))
        return view, _checked(found, BLURRED_MASS_ERROR, BLURRED_MOMENT_ERROR)
    parts = bulk(view.equations, model.atom, view.end)
    found = _result(view, parts, _losses(model.atom, parts))
    return view, _checked(found, MASS_ERROR, FULL.moment)


def _result(view: Outlook, parts: tuple[Interval, ...], notes: Sequence[str]) -> Spectrum:
    model = view.model
    mean, mean_square = model.moments()
    return Spectrum(
        problem=model.problem,
        intervals=parts,
        atom=model.atom,
        spikes=view.spikes,
        edge_scale=view.scale,
        entry_reach=view.reach,
        weights=weight_spectrum(model.batch),
        notes=(*view.notes, *notes),
        mean=mean,
        mean_square=mean_square,
    )


def _checked(found: Spectrum, mass_error: float, moment_error: float) -> Spectrum:
    gap = abs(found.moment(2) / found.mean_square - 1.0)
    if not (abs(found.mass - 1.0) <= mass_error and gap <= moment_error):
        raise InconsistentSolution(
            f"the bulk was not resolved: mass {found.mass:.8f} with its atom, second moment off "
            f"by {gap:.1g}",
            residual=max(abs(found.mass - 1.0), gap),
        )
    return found


def _losses(atom: float, parts: tuple[Interval, ...]) -> Notes:
    """What to say of a bulk that is not quite resolved."""
    missing = abs(atom + sum(part.mass for part in parts) - 1.0)
    worst = max((part.error for part in parts if np.isfinite(part.error)), default=0.0)
    return bulk_notes(missing=missing, rough=float(worst))
