"""Theory against simulation: the only room where the two meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import stdtr

from ..core.display import Table, cell, json_value, plus_minus, point_in_words
from ..core.errors import InvalidProblem
from ..core.grid import Grid, as_grid
from ..core.problem import Problem
from ..core.results import OK, Result, allowance, grouped_notes, quantities_of
from ..core.types import FloatArray, xarray
from ..simulation import SEEDS, Setting, Simulation, checked_seeds, simulate
from ..theory import predict

Z_LIMIT = 4.0
_MIN_CHANCE = 0.003  # of |z| > Z_LIMIT, from which on it is told: with fewer than eleven seeds
_ROUNDING = 1e-12  # of a gap, up to which a prediction is 0
MEASURES = {
    "predicted": "what the theory predicts",
    "simulated": "mean over the seeds",
    "standard_error": "standard error of that mean",
    "z": "(simulated − predicted)/standard error",
    "relative_gap": "simulated/predicted − 1",
}


@dataclass(frozen=True)
class ComparisonRow:
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
        """Whether it agrees, or is no further off than the point's own notes admit."""
        return self.agrees(limit) or (
            self.predicted is not None
            and within(self.simulated - self.predicted, self.predicted, self.standard_error,
                       allowance(self.notes), limit)
        )  # fmt: skip

    @property
    def verdict(self) -> str:
        """In words."""
        if self.z is None:
            return "no prediction"
        return "agrees" if self.agrees() else "see note" if self.passes() else "disagrees"

    @property
    def distance(self) -> float:
        """|z|; infinite without a prediction."""
        return np.inf if self.z is None else abs(self.z)

    def __str__(self) -> str:
        place = f" at {point_in_words(self.point)}" if self.point else ""
        z = self.status if self.z is None else f"z = {self.z:+.2f}"
        return f"{self.quantity.replace('_', ' ')}{place}, {z}"

    def as_dict(self) -> dict[str, Any]:
        """Its numbers and notes, ready for JSON."""
        return {**vars(self), "point": dict(self.point), "notes": list(map(str, self.notes))}


def within(gap: Any, predicted: Any, error: Any, admitted: Any, limit: float = Z_LIMIT) -> Any:
    """Whether a gap is explained by the error bar and by what the notes admit, elementwise."""
    bound = limit * np.asarray(error) + np.asarray(admitted) * np.abs(predicted)
    return np.abs(gap) <= bound


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """Predictions and simulations of a problem, or of every point of a grid, side by side.

    `predicted` has the theory's numbers by quantity, `simulation` the networks, `rows` every point
    and quantity with z-score and verdict, `worst` the row that disagrees most.
    """

    MEANINGS: ClassVar[Mapping[str, str]] = MEASURES

    problem: Problem | Grid
    predicted: Mapping[str, FloatArray]  # by quantity, of the grid's shape; NaN where not "ok"
    statuses: tuple[str, ...]  # of each point
    noted: tuple[tuple[str, ...], ...]  # validity of each point's prediction
    simulation: Simulation

    def __post_init__(self) -> None:
        for name, error in zip(self.simulation.columns, self._errors, strict=True):
            if not np.all(error > 0):
                rule = f"must give draws that differ: the standard error of {name} is 0 somewhere"
                raise InvalidProblem("seeds", rule, self.simulation.seeds)

    def __getattr__(self, name: str) -> Any:
        if name in MEASURES:
            return self.dataset[name]
        raise AttributeError(name)

    @cached_property
    def _errors(self) -> FloatArray:
        """Standard errors, (quantity, *grid).

        Where no draw has a wrong sign among its training samples, that of one wrong sign in all.
        """
        names = self.simulation.columns
        error = _trained(self.simulation.standard_error, names).values.copy()
        if "train_error" in names:
            grid = as_grid(self.problem)
            of_train = error[names.index("train_error")]
            counts = [p.n * len(self.simulation.seeds) if p.is_binary else np.inf for p in grid]
            least = 1.0 / np.reshape(counts, of_train.shape)
            error[names.index("train_error")] = np.where(of_train == 0.0, least, of_train)
        return np.asarray(error)

    @cached_property
    def dataset(self) -> xarray.Dataset:
        """The five measures by quantity and grid point; status and notes by grid point."""
        names = self.simulation.columns
        simulated, error = _trained(self.simulation.mean, names), self._errors
        predicted = np.stack([self.predicted[name] for name in names])
        difference = simulated.values - predicted
        with np.errstate(divide="ignore", invalid="ignore"):  # no wrong sign in either
            is_zero = np.abs(predicted) <= _ROUNDING * np.abs(difference)  # as an intercept may be
            gap = np.where(is_zero, np.nan, difference / predicted)
        numbers = (predicted, simulated.values, error, difference / error, gap)
        arrays: dict[str, Any] = {
            name: (simulated.dims, array, {"long_name": text})
            for (name, text), array in zip(MEASURES.items(), numbers, strict=True)
        }
        texts = {"status": self.statuses, "notes": ["\n".join(notes) for notes in self._notes]}
        for name, column in texts.items():
            shaped = np.array(column, dtype=object).reshape(simulated.shape[1:])
            arrays[name] = (simulated.dims[1:], shaped)
        return xarray.Dataset(arrays, simulated.coords, attrs=dict(self.simulation.record))

    @property
    def numbers(self) -> dict[str, Any]:
        """The measures of every quantity."""
        return {name: self.dataset[name].values for name in MEASURES}

    @property
    def _notes(self) -> list[tuple[str, ...]]:
        return [(*notes, *self.simulation.notes) for notes in self.noted]

    @property
    def notes(self) -> tuple[str, ...]:
        """Each kind of note once, with the points that have it, and why points have no number."""
        told = [
            (*notes, *([status] if status != OK else []))
            for notes, status in zip(self._notes, self.statuses, strict=True)
        ]
        return tuple(grouped_notes(zip(as_grid(self.problem).points(), told, strict=True)))

    @cached_property
    def rows(self) -> tuple[ComparisonRow, ...]:
        """Every point and quantity, points first."""
        return tuple(self._rows())

    def _rows(self) -> Iterator[ComparisonRow]:
        count, quantities = len(self.statuses), self.simulation.columns
        columns = {
            name: self.dataset[name].values.reshape(len(quantities), count) for name in MEASURES
        }
        for i, point in enumerate(as_grid(self.problem).points()):
            for q, quantity in enumerate(quantities):
                numbers: dict[str, Any] = {
                    name: float(column[q, i]) if np.isfinite(column[q, i]) else None
                    for name, column in columns.items()
                }
                yield ComparisonRow(
                    point, quantity, **numbers, status=self.statuses[i], notes=self._notes[i]
                )

    @property
    def worst(self) -> ComparisonRow:
        """The row that disagrees most, in standard errors; one without a prediction comes first."""
        return max(self.rows, key=lambda row: row.distance)

    def disagreements(self, limit: float = Z_LIMIT) -> tuple[ComparisonRow, ...]:
        """The rows further off than their notes admit, and those without a prediction."""
        return tuple(row for row in self.rows if not row.passes(limit))

    def agrees(self, limit: float = Z_LIMIT) -> bool:
        """Whether every row lies within the limit, or within what its own notes admit."""
        return not self.disagreements(limit)

    def as_dict(self) -> dict[str, Any]:
        """The rows, whether all agree, and the record of the run, ready for JSON."""
        return {
            **self.simulation.taken(),
            "notes": list(self.notes),
            "limit": Z_LIMIT,
            "agrees": self.agrees(),
            "worst": json_value(self.worst.as_dict()),
            "rows": [json_value(row.as_dict()) for row in self.rows],
        }

    def tables(self) -> list[Table]:
        """One row for each point and quantity."""
        header = ("quantity", "predicted", "simulated", "z", "gap", "verdict")
        rows = [[*row.point.values(), *_cells(row)] for row in self.rows]
        return [Table.of([*as_grid(self.problem).dims, *header], rows)]

    def closing(self) -> list[str]:
        """The worst row, how much it means with few networks, and what it took."""
        told = [f"Worst: {self.worst}."]
        seeds = len(self.simulation.seeds)
        chance = 2.0 * float(stdtr(seeds - 1, -Z_LIMIT))  # of |z| > the limit, by Student's t
        if chance > _MIN_CHANCE and not self.agrees():
            told.append(
                f"With {seeds} networks {chance:.1%} of rows have |z| > {Z_LIMIT:g} by chance: "
                "repeat with more seeds."
            )
        return [*told, *self.simulation.closing()]

    def __repr__(self) -> str:
        verdict = "agrees" if self.agrees() else "disagrees"
        lines = [f"Comparison of {self.problem!r}", f"{verdict}; worst: {self.worst}"]
        return "\n    ".join([*lines, *(f"note: {note}" for note in self.notes)])


def _cells(row: ComparisonRow) -> list[str]:
    simulated = plus_minus(row.simulated, row.standard_error)
    z = "–" if row.z is None else f"{row.z:+.2f}"
    gap = "–" if row.relative_gap is None else f"{100 * row.relative_gap:+.2f} %"
    return [row.quantity.replace("_", " "), cell(row.predicted), simulated, z, gap, row.verdict]


def compare(
    problem: Problem | Grid,
    *,
    seeds: int | Iterable[int] = SEEDS,
    n_test: int | None = None,
    setting: Setting | None = None,
    dtype: str = "float64",
    device: str = "cpu",
    drawn: str | None = None,
    max_memory: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    scheduler: Any = None,
) -> Comparison:
    """Predict and simulate the same problems; the arguments are those of `simulate`.

    Two seeds at least: without a standard error there is nothing to compare with. A grid's point
    whose prediction was refused keeps its simulation and says why in its status.
    """
    listed = enough_seeds(seeds)
    predicted, statuses, noted = _predictions(problem)
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
        scheduler=scheduler,
    )
    return Comparison(problem, predicted, statuses, noted, found)


def enough_seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """The seeds, two at least, or InvalidProblem."""
    listed = checked_seeds(seeds)
    if len(listed) < 2:
        rule = "must be at least 2: a z-score needs a standard error"
        raise InvalidProblem("seeds", rule, seeds if isinstance(seeds, int) else listed)
    return listed


Predictions = tuple[dict[str, FloatArray], tuple[str, ...], tuple[tuple[str, ...], ...]]


def _predictions(problem: Problem | Grid) -> Predictions:
    """Numbers by quantity, status and notes of every point."""
    if isinstance(problem, Grid):
        found, names = predict(problem), quantities_of(problem)
        numbers = {name: found.columns[name].reshape(problem.shape) for name in names}
        return numbers, found.statuses, found.noted
    one = predict(problem)
    numbers = {name: np.array(getattr(one, name)) for name in quantities_of(problem)}
    return numbers, (OK,), (one.notes,)


def _trained(results: xarray.Dataset, names: Iterable[str]) -> xarray.DataArray:
    """The trained network's quantities as one array: (quantity, *grid)."""
    return results[list(names)].sel(variant="trained", drop=True).to_dataarray("quantity")
