"""Theory against simulation: the only room where the two meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .grid import Grid
from .problem import Problem
from .quadrature import FloatArray
from .simulation import Setting, Simulation, simulate
from .simulation.result import QUANTITIES
from .theory import predict

if TYPE_CHECKING:
    import xarray

Z_LIMIT = 4.0


@dataclass(frozen=True)
class Row:
    """One quantity at one point: prediction, simulation, and how they differ."""

    point: dict[str, Any]  # the grid's coordinates
    quantity: str
    predicted: float | None  # None where `status` says why there is no prediction
    simulated: float
    standard_error: float
    z: float | None  # (simulated − predicted)/standard error
    relative_gap: float | None  # (simulated − predicted)/predicted
    status: str
    notes: tuple[str, ...]  # validity of the prediction, and departures of the simulation

    def agrees(self, limit: float = Z_LIMIT) -> bool:
        """Whether there is a prediction and it lies within the limit in standard errors."""
        return self.z is not None and abs(self.z) <= limit


@dataclass(frozen=True, eq=False)
class Comparison:
    """Predictions and simulations of a problem, or of every point of a grid, side by side."""

    problem: Problem | Grid
    predicted: dict[str, FloatArray]  # by quantity, of the grid's shape; NaN where not "ok"
    status: tuple[str, ...]  # of each point
    validity: tuple[tuple[str, ...], ...]  # of each point
    simulation: Simulation

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every point and quantity, points first."""
        return tuple(self._rows())

    def _rows(self) -> Iterator[Row]:
        mean, error = self.simulation.mean, self.simulation.standard_error
        count = len(self.status)
        means = {
            name: mean[name].sel(variant="trained").values.reshape(count) for name in QUANTITIES
        }
        errors = {
            name: error[name].sel(variant="trained").values.reshape(count) for name in QUANTITIES
        }
        for index, point in enumerate(_points(self.problem)):
            notes = (*self.validity[index], *self.simulation.departures)
            for name in QUANTITIES:
                predicted = float(self.predicted[name].reshape(count)[index])
                yield _row(
                    point,
                    name,
                    predicted if np.isfinite(predicted) else None,
                    float(means[name][index]),
                    float(errors[name][index]),
                    self.status[index],
                    notes,
                )

    @property
    def worst(self) -> Row:
        """The row that disagrees most, in standard errors; one without a prediction comes first."""
        return max(self.rows, key=lambda row: np.inf if row.z is None else abs(row.z))

    def agrees(self, limit: float = Z_LIMIT) -> bool:
        """Whether every row lies within the limit."""
        return all(row.agrees(limit) for row in self.rows)

    @property
    def dataset(self) -> xarray.Dataset:
        """predicted, simulated, standard_error, z and relative_gap by quantity and grid point."""
        import xarray

        grid = self.problem if isinstance(self.problem, Grid) else None
        shape = (*(grid.shape if grid is not None else ()), len(QUANTITIES))
        dims = (*(grid.dims if grid is not None else ()), "quantity")
        fields = ("predicted", "simulated", "standard_error", "z", "relative_gap")
        arrays = {
            name: (dims, np.array([getattr(row, name) for row in self.rows], float).reshape(shape))
            for name in fields
        }
        coords: dict[str, Any] = grid.coordinates() if grid is not None else {}
        return xarray.Dataset(arrays, {**coords, "quantity": list(QUANTITIES)})

    def as_dict(self) -> dict[str, Any]:
        """The rows and the record of the run, ready for JSON."""
        return {
            "rows": [{**vars(row), "notes": list(row.notes)} for row in self.rows],
            "seeds": list(self.simulation.seeds),
            "record": dict(self.simulation.record),
            "wall_time": self.simulation.wall_time,
        }


def compare(
    problem: Problem | Grid,
    *,
    seeds: int | Iterable[int] = 8,
    n_test: int | None = None,
    setting: Setting | None = None,
    dtype: str = "float64",
    device: str = "cpu",
    max_memory: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Predict and simulate the same problems; the arguments are those of `simulate`.

    A point whose prediction was refused keeps its simulation and says why in `status`.
    """
    found = simulate(
        problem,
        seeds=seeds,
        n_test=n_test,
        setting=setting,
        dtype=dtype,
        device=device,
        max_memory=max_memory,
        progress=progress,
    )
    if isinstance(problem, Problem):
        one = predict(problem)
        numbers = {name: np.array(getattr(one, name)) for name in QUANTITIES}
        return Comparison(problem, numbers, ("ok",), (one.validity,), found)
    table = predict(problem)
    notes = tuple(tuple(text.split("\n")) if text else () for text in table.validity.values.flat)
    status = tuple(str(text) for text in table.status.values.flat)
    numbers = {name: table[name].values for name in QUANTITIES}
    return Comparison(problem, numbers, status, notes, found)


def _points(problem: Problem | Grid) -> Iterator[dict[str, Any]]:
    """Coordinates of the points, in order."""
    if isinstance(problem, Problem):
        yield {}
        return
    coordinates = problem.coordinates()
    for index in np.ndindex(*problem.shape):
        yield {name: coordinates[name][i] for name, i in zip(problem.dims, index, strict=True)}


def _row(
    point: dict[str, Any],
    quantity: str,
    predicted: float | None,
    simulated: float,
    error: float,
    status: str,
    notes: tuple[str, ...],
) -> Row:
    z = gap = None
    if predicted is not None:
        difference = simulated - predicted
        z = difference / error if error > 0 else float(np.copysign(np.inf, difference))
        z = 0.0 if difference == 0 else z
        gap = difference / predicted if predicted != 0 else float(np.copysign(np.inf, difference))
    return Row(point, quantity, predicted, simulated, error, z, gap, status, notes)
