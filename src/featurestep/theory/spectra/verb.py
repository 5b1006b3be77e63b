"""`spectrum`: for one problem the whole law, for a grid its edge and its spikes."""

from __future__ import annotations

from typing import overload

from ...errors import InvalidProblem
from ...problem import Grid, Problem
from ...results import GridResult, Progress, over_grid
from .law import Spectrum
from .solve import solve_spectrum


@overload
def spectrum(problem: Problem) -> Spectrum: ...
@overload
def spectrum(problem: Grid, *, progress: Progress | None = None) -> GridResult: ...
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
        return over_grid(Spectrum, problem, solve_spectrum, progress)
    if not isinstance(problem, Problem):
        raise InvalidProblem("problem", "must be a Problem or a Grid", problem)
    return solve_spectrum(problem)
