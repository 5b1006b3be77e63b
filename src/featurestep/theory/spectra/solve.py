"""`spectrum` (section 5): edge and spikes, then the bulk, part by part or else smoothed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.errors import InconsistentSolution, NotConverged
from ...core.problem import Grid, Problem
from ...core.results import GridResult, Progress, over_grid, verb
from ...core.threads import one_thread
from ..validity import Notes, bulk_notes, smoothing_notes
from .bulk import SMOOTHING, Interval, bulk, smoothed_bulk
from .equations import FULL, Accuracy
from .result import Spectrum
from .rows_model import build_rows_model
from .spikes import EdgeAndSpikes, edge_and_spikes
from .steps_model import build_chain_model
from .truncated_law import build_model

_ROWS_WORK = 8.0  # on the work that is allowed: nodes are a product grid
SMOOTHED_MASS_ERROR, SMOOTHED_MOMENT_ERROR = 1e-2, 2e-2


@verb({"steps"}, {"rows"})
def spectrum(problem: Problem | Grid, *, progress: Progress | None = None) -> Spectrum | GridResult:
    """Predict the spectrum of the trained features (theory, section 5).

    One problem gives a `Spectrum`: the bulk's density and edges, the atom at 0, the spikes with
    the polynomial that each carries, and the same for the weights. A grid gives edge and spikes
    over its fields, with a status and the notes of each point: the numbers are those of each
    problem by itself. After several steps κ is along β of the first batch. With rows of the step in
    the readout's sample features are those of that sample, and κ has a row's own share.

    >>> from featurestep import Problem, spectrum
    >>> p = Problem(activation="relu", centre=True, target="H1 + H2/sqrt(2)",
    ...             n=2000, d=1000, width=1500, step_exponent=0.38, ridge=0.1)
    >>> spectrum(p).degrees
    (1, 2)
    """
    if isinstance(problem, Grid):
        return over_grid(Spectrum, problem, spectrum, progress)
    return solve_spectrum(problem)[1]


def solve_spectrum(
    problem: Problem, accuracy: Accuracy = FULL, *, refinement: float = 1.0
) -> tuple[EdgeAndSpikes, Spectrum]:
    """The spectrum of one problem, with its equations; `refinement` multiplies their nodes.

    A bulk of too many parts, or with an edge that is lost, is given smoothed. NotConverged tells
    the first reason where even that fails.
    """
    with one_thread(), np.errstate(all="ignore"):
        make: Any = build_model if problem.steps == 1 else build_chain_model
        if problem.shared_rows and problem.step_size:
            make, accuracy = build_rows_model, replace(accuracy, work=_ROWS_WORK * accuracy.work)
        edge_spikes = edge_and_spikes(make(problem, accuracy, refinement=refinement), accuracy)
        try:
            return edge_spikes, _resolved(edge_spikes, accuracy)
        except NotConverged as error:
            edge_spikes = replace(edge_spikes, smoothed=True)
            edge_spikes.equations.work_left = accuracy.smoothing_work
            try:
                return edge_spikes, _smoothed(edge_spikes)
            except NotConverged:
                raise error from None


def _resolved(edge_spikes: EdgeAndSpikes, accuracy: Accuracy) -> Spectrum:
    """With the bulk in all its parts, if mass and second moment are what they must be."""
    atom = edge_spikes.model.atom
    parts = bulk(edge_spikes.equations, atom, edge_spikes.end)
    result = _result(edge_spikes, parts, _notes_on(atom, parts, accuracy.density))
    return _checked(result, accuracy.mass, accuracy.moment)


def _smoothed(edge_spikes: EdgeAndSpikes) -> Spectrum:
    """With the bulk as one smoothed interval."""
    part = smoothed_bulk(edge_spikes.equations, edge_spikes.edge, edge_spikes.model.atom)
    notes = smoothing_notes(edge_spikes.model.atom + part.mass, SMOOTHING)
    return _checked(
        _result(edge_spikes, (part,), notes), SMOOTHED_MASS_ERROR, SMOOTHED_MOMENT_ERROR
    )


def _result(
    edge_spikes: EdgeAndSpikes, parts: tuple[Interval, ...], notes: Sequence[str]
) -> Spectrum:
    model = edge_spikes.model
    mean, mean_square = model.moments()
    return Spectrum(
        problem=model.problem,
        intervals=parts,
        atom=model.atom,
        spikes=edge_spikes.spikes,
        edge_scale=edge_spikes.scale,
        entry_reach=edge_spikes.reach,
        weights=model.weights,
        notes=(*edge_spikes.notes, *notes),
        mean=mean,
        mean_square=mean_square,
    )


def _checked(result: Spectrum, mass_error: float, moment_error: float) -> Spectrum:
    gap = abs(result.moment(2) / result.mean_square - 1.0)
    if not (abs(result.mass - 1.0) <= mass_error and gap <= moment_error):
        raise InconsistentSolution(
            f"the bulk was not resolved: mass {result.mass:.8f} with its atom, second moment off "
            f"by {gap:.1g}",
            residual=max(abs(result.mass - 1.0), gap),
        )
    return result


def _notes_on(atom: float, parts: tuple[Interval, ...], tolerance: float) -> Notes:
    """What to say of a bulk that is not resolved to the tolerance."""
    missing = abs(atom + sum(part.mass for part in parts) - 1.0)
    worst = max((part.error for part in parts if np.isfinite(part.error)), default=0.0)
    missing, worst = (value if value > tolerance else 0.0 for value in (missing, worst))
    return bulk_notes(missing=missing, rough=float(worst))
