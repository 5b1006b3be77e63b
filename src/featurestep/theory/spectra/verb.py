"""`spectrum`: for one problem the whole law, for a grid its edge and its spikes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, overload

import numpy as np

from ...errors import FeaturestepError, InvalidProblem
from ...problem import Grid, Problem
from .law import Spectrum
from .outliers import HIGHEST
from .solve import solve_spectrum

if TYPE_CHECKING:
    import xarray

Progress = Callable[[int, int], None]
VARIABLES = {
    "edge": "upper edge of the bulk, as an eigenvalue of FᵀF/n",
    "margin": "distance beyond the edge from which an eigenvalue counts as a spike",
    "count": "number of resolved spikes",
    "location": "eigenvalue of FᵀF/n at each spike",
    "degree": "degree of the polynomial of κ that the spike carries",
    "resolved": "whether the spike is further from the edge than the edge fluctuates",
    "constant_overlap": "squared overlap of the left singular vector with a constant",
    "overlap": "squared overlap of the left singular vector with H_k(κ)",
}


@overload
def spectrum(problem: Problem) -> Spectrum: ...
@overload
def spectrum(problem: Grid, *, progress: Progress | None = None) -> xarray.Dataset: ...
def spectrum(
    problem: Problem | Grid, *, progress: Progress | None = None
) -> Spectrum | xarray.Dataset:
    """Predict the spectrum of the trained features (theory, section 5).

    One problem gives a `Spectrum`: the bulk's density and edges, the atom at 0, the spikes with
    the polynomial that each carries, and the same for the weights. A grid gives an
    `xarray.Dataset` that follows edge and spikes over the grid, with a `status` and the notes in
    `validity` for each point: the numbers are those of each problem by itself.

    >>> from featurestep import Problem, spectrum
    >>> p = Problem(activation="relu", centre=True, target="H1 + H2/sqrt(2)",
    ...             n=2000, d=1000, width=1500, step_exponent=0.38, ridge=0.1)
    >>> spectrum(p).degrees
    (1, 2)
    """
    if isinstance(problem, Grid):
        return _follow(problem, progress)
    if not isinstance(problem, Problem):
        raise InvalidProblem("problem", "must be a Problem or a Grid", problem)
    return solve_spectrum(problem)


def _follow(grid: Grid, progress: Progress | None) -> xarray.Dataset:
    """Edge and spikes at every point of a grid."""
    views: list[Spectrum | FeaturestepError] = []
    problems = list(grid)
    for done, problem in enumerate(problems, start=1):
        try:
            views.append(solve_spectrum(problem))
        except FeaturestepError as error:
            views.append(error)
        if progress is not None:
            progress(done, len(problems))
    return _dataset(grid, views)


def _dataset(grid: Grid, views: list[Spectrum | FeaturestepError]) -> xarray.Dataset:
    import xarray

    points = len(views)
    found = [view if isinstance(view, Spectrum) else None for view in views]
    most = max((len(view.spikes) for view in found if view), default=0)
    values: dict[str, np.ndarray] = {
        "edge": np.full(points, np.nan),
        "margin": np.full(points, np.nan),
        "count": np.zeros(points, dtype=int),
        "location": np.full((points, most), np.nan),
        "degree": np.full((points, most), -1),
        "resolved": np.zeros((points, most), dtype=bool),
        "constant_overlap": np.full((points, most), np.nan),
        "overlap": np.full((points, most, HIGHEST), np.nan),
    }
    for row, view in enumerate(found):
        if view is None:
            continue
        values["edge"][row], values["margin"][row] = view.edge, view.margin
        for rank, spike in enumerate(view.spikes):
            values["location"][row, rank] = spike.location
            values["degree"][row, rank] = spike.degree
            values["resolved"][row, rank] = spike.resolved
            values["constant_overlap"][row, rank] = spike.constant_overlap
            values["overlap"][row, rank] = spike.overlaps
        values["count"][row] = view.count
    texts = {
        "status": ["ok" if view else str(views[row]) for row, view in enumerate(found)],
        "validity": ["\n".join(view.validity) if view else "" for view in found],
    }
    dims: dict[int, tuple[str, ...]] = {1: (), 2: ("spike",), 3: ("spike", "hermite_degree")}
    data = {
        name: (
            (*grid.dims, *dims[array.ndim]),
            array.reshape(*grid.shape, *array.shape[1:]),
            {"long_name": VARIABLES[name]},
        )
        for name, array in values.items()
    }
    coordinates = {
        **grid.coordinates(),
        "spike": np.arange(1, most + 1),
        "hermite_degree": np.arange(1, HIGHEST + 1),
    }
    dataset = xarray.Dataset(data, coords=coordinates)
    for name, words in texts.items():
        dataset[name] = (grid.dims, np.array(words, dtype=object).reshape(grid.shape))
    return dataset
