"""Theory against simulation: the only room where the two meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidProblem
from ..grid import Grid
from ..problem import Problem
from ..simulation import Setting, Simulation, simulate
from ..simulation.arguments import checked_seeds
from ..simulation.network.result import QUANTITIES
from ..theory import predict
from ..types import FloatArray

if TYPE_CHECKING:
    import xarray

Z_LIMIT = 4.0
MEASURES = {
    "predicted": "what the theory predicts",
    "simulated": "mean over the seeds",
    "standard_error": "standard error of that mean",
    "z": "(simulated − predicted)/standard error",
    "relative_gap": "simulated/predicted − 1",
}


@dataclass(frozen=True)
class Row:
    """One quantity at one point: prediction, simulation, and how they differ."""

    point: Mapping[str, Any]  # the grid's coordinates
    quantity: str
    predicted: float | None  # None where `status` says why there is no prediction
    simulated: float
    standard_error: float
    z: float | None
    relative_gap: float | None
    status: str
    notes: tuple[str, ...]  # validity of the prediction, and departures of the simulation

    def agrees(self, limit: float = Z_LIMIT) -> bool:
        """Whether there is a prediction and it lies within the limit in standard errors."""
        return self.z is not None and abs(self.z) <= limit

    def passes(self, limit: float = Z_LIMIT) -> bool:
        """Whether it agrees, or a note says why the prediction need not hold here."""
        return self.agrees(limit) or (self.z is not None and bool(self.notes))

    def as_dict(self) -> dict[str, Any]:
        """Its numbers and notes, ready for JSON."""
        return {**vars(self), "point": dict(self.point), "notes": list(self.notes)}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Predictions and simulations of a problem, or of every point of a grid, side by side."""

    problem: Problem | Grid
    predicted: Mapping[str, FloatArray]  # by quantity, of the grid's shape; NaN where not "ok"
    status: tuple[str, ...]  # of each point
    validity: tuple[tuple[str, ...], ...]  # of each point
    simulation: Simulation

    def __post_init__(self) -> None:
        error = _trained(self.simulation.standard_error)
        for name in QUANTITIES:
            if not np.all(error.sel(quantity=name).values > 0):
                rule = f"must give draws that differ: the standard error of {name} is 0 somewhere"
                raise InvalidProblem("seeds", rule, self.simulation.seeds)

    @cached_property
    def dataset(self) -> xarray.Dataset:
        """The five measures by quantity and grid point; status and validity by grid point."""
        import xarray

        simulated = _trained(self.simulation.mean)
        error = _trained(self.simulation.standard_error).values
        predicted = np.stack([self.predicted[name] for name in QUANTITIES])
        difference = simulated.values - predicted
        with np.errstate(divide="ignore"):
            gap = difference / predicted
        numbers = (predicted, simulated.values, error, difference / error, gap)
        arrays: dict[str, Any] = {
            name: (simulated.dims, array, {"long_name": text})
            for (name, text), array in zip(MEASURES.items(), numbers, strict=True)
        }
        texts = {"status": self.status, "validity": ["\n".join(notes) for notes in self._notes]}
        for name, column in texts.items():
            shaped = np.array(column, dtype=object).reshape(simulated.shape[1:])
            arrays[name] = (simulated.dims[1:], shaped)
        return xarray.Dataset(arrays, simulated.coords, attrs=dict(self.simulation.record))

    @property
    def _notes(self) -> list[tuple[str, ...]]:
        return [(*notes, *self.simulation.departures) for notes in self.validity]

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every point and quantity, points first."""
        return tuple(self._rows())

    def _rows(self) -> Iterator[Row]:
        count = len(self.status)
        columns = {
            name: self.dataset[name].values.reshape(len(QUANTITIES), count) for name in MEASURES
        }
        for i, point in enumerate(points_of(self.problem)):
            for q, quantity in enumerate(QUANTITIES):
                numbers: dict[str, Any] = {
                    name: float(column[q, i]) if np.isfinite(column[q, i]) else None
                    for name, column in columns.items()
                }
                yield Row(
                    point=point,
                    quantity=quantity,
                    **numbers,
                    status=self.status[i],
                    notes=self._notes[i],
                )

    @property
    def worst(self) -> Row:
        """The row that disagrees most, in standard errors; one without a prediction comes first."""
        return max(self.rows, key=lambda row: np.inf if row.z is None else abs(row.z))

    def disagreements(self, limit: float = Z_LIMIT) -> tuple[Row, ...]:
        """The rows beyond the limit that no note explains, and those without a prediction."""
        return tuple(row for row in self.rows if not row.passes(limit))

    def agrees(self, limit: float = Z_LIMIT) -> bool:
        """Whether every row lies within the limit, or its point has a note that says why not."""
        return not self.disagreements(limit)

    def as_dict(self) -> dict[str, Any]:
        """The rows and the record of the run, ready for JSON."""
        return {
            "rows": [row.as_dict() for row in self.rows],
            "agrees": self.agrees(),
            "seeds": list(self.simulation.seeds),
            "departures": list(self.simulation.departures),
            "wall_time": self.simulation.wall_time,
            "flops": self.simulation.flops,
            "record": dict(self.simulation.record),
        }


def compare(
    problem: Problem | Grid,
    *,
    seeds: int | Iterable[int] = 8,
    n_test: int | None = None,
    setting: Setting | None = None,
    dtype: str = "float64",
    device: str = "cpu",
    drawn: str | None = None,
    max_memory: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Predict and simulate the same problems; the arguments are those of `simulate`.

    Two seeds at least: without a standard error there is nothing to compare with. A grid's point
    whose prediction was refused keeps its simulation and says why in `status`.
    """
    listed = enough_seeds(seeds)
    predicted, status, validity = _predictions(problem)
    found = simulate(
        problem,
        seeds=listed,
        n_test=n_test,
        setting=setting,
        dtype=dtype,
        device=device,
        drawn=drawn,
        max_memory=max_memory,
        progress=progress,
    )
    return Comparison(problem, predicted, status, validity, found)


def enough_seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """The seeds, two at least, or InvalidProblem."""
    listed = checked_seeds(seeds)
    if len(listed) < 2:
        rule = "must be two at least: a z-score needs a standard error"
        raise InvalidProblem("seeds", rule, seeds if isinstance(seeds, int) else listed)
    return listed


Predictions = tuple[dict[str, FloatArray], tuple[str, ...], tuple[tuple[str, ...], ...]]


def _predictions(problem: Problem | Grid) -> Predictions:
    """Numbers by quantity, status and validity notes of every point."""
    if isinstance(problem, Grid):
        table = predict(problem)
        notes = (text.split("\n") if text else [] for text in table.validity.values.flat)
        numbers = {name: table[name].values for name in QUANTITIES}
        return numbers, tuple(map(str, table.status.values.flat)), tuple(map(tuple, notes))
    one = predict(problem)
    return {name: np.array(getattr(one, name)) for name in QUANTITIES}, ("ok",), (one.validity,)


def _trained(results: xarray.Dataset) -> xarray.DataArray:
    """The trained network's quantities as one array: (quantity, *grid)."""
    return results[list(QUANTITIES)].sel(variant="trained", drop=True).to_dataarray("quantity")


def points_of(problem: Problem | Grid) -> Iterator[dict[str, Any]]:
    """Coordinates of a grid's points, in order; one problem has none."""
    if isinstance(problem, Problem):
        yield {}
        return
    coordinates = problem.coordinates()
    for index in np.ndindex(*problem.shape):
        yield {name: coordinates[name][i] for name, i in zip(problem.dims, index, strict=True)}
