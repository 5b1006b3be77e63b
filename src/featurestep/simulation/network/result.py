"""What a simulation returns: every number by seed and grid point, with its record.

`OverSeeds` is what every result over seeds has: means, their standard errors, what it took.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...core.display import Table, cell, plus_minus
from ...core.errors import InvalidProblem
from ...core.grid import Grid, as_grid
from ...core.problem import Problem
from ...core.results import LOSS_QUANTITIES, QUANTITIES, Note, Result, quantities_of
from ...core.types import FloatArray, xarray
from ..setting import Setting


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OverSeeds(Result):
    """A result whose `dataset` has the dimension seed."""

    setting: Setting
    variants: tuple[str, ...]
    seeds: tuple[int, ...]
    wall_time: float = field(compare=False)  # seconds
    flops: int = field(compare=False)  # counted as in an estimate
    record: Mapping[str, str] = field(compare=False)  # versions, dtype, device, BLAS

    @property
    def notes(self) -> tuple[Note, ...]:
        """Where the theory's assumptions are left, in words; empty when they hold."""
        return self.setting.departures

    @property
    def rate(self) -> float:
        """Counted flops per second."""
        return self.flops / self.wall_time

    @cached_property
    def mean(self) -> xarray.Dataset:
        """Means over the seeds; of spectra, rank by rank."""
        return self.dataset.mean("seed", keep_attrs=True)

    @cached_property
    def standard_error(self) -> xarray.Dataset:
        """Standard errors of the means; they need two seeds at least."""
        seeds = self.dataset.sizes["seed"]
        if seeds < 2:
            raise InvalidProblem("seeds", "must be >= 2 for a standard error", seeds)
        spread = self.dataset.std("seed", ddof=1, keep_attrs=True)
        return spread.map(lambda values: values / np.sqrt(seeds), keep_attrs=True)

    def taken(self) -> dict[str, Any]:
        """Setting, seeds and cost, ready for JSON."""
        return {
            "setting": self.setting.given,
            "seeds": list(self.seeds),
            "flops": self.flops,
            "wall_time": self.wall_time,
            "rate": self.rate,
            "record": dict(self.record),
        }

    def closing(self) -> list[str]:
        """What it took."""
        return [
            f"{len(self.seeds)} seeds: {self.flops:.3g} flops in {self.wall_time:.3g} s "
            f"({self.rate / 1e9:.3g} Gflop/s)"
        ]


def error_of_mean(values: FloatArray) -> FloatArray:
    """Standard error of the mean over the first axis; NaN of one value."""
    count = len(values)
    if count < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / count**0.5)


def spread(values: FloatArray) -> str:
    """The mean of a list with its standard error, as text."""
    return plus_minus(float(values.mean()), float(error_of_mean(values)))


def statistics(values: FloatArray) -> dict[str, Any]:
    """Mean, standard error (None of one) and the values themselves."""
    error = float(error_of_mean(values)) if len(values) > 1 else None
    return {"mean": float(values.mean()), "standard_error": error, "by_seed": values.tolist()}


ALIGNMENT = {
    "cosine": "cosine of the trained weights with the target's directions",
    "energy": "share of the trained weights' square along the target's directions",
}
Row = dict[str, Any]


def _meaning(name: str) -> str:
    """What an alignment is; `energy_2` is the second direction's part of the energy."""
    return ALIGNMENT.get(name) or f"share of the weights' square along direction {name[-1]}"


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(OverSeeds):
    """Simulated errors of every variant, grid point and seed.

    `test_error` is E(y − f)² on fresh inputs, noise included (theory, section 1): the noise's part
    is exact and the rest is averaged over the test inputs. As attributes the numbers are means
    over the seeds for the first variant, a float or an array over the grid; `dataset` has them by
    variant and seed, with the weights' alignment after each step (`energy_1`, … for each of
    several directions), `mean` and `standard_error` the statistics.

    With another loss than the square, or an intercept, they are `test_loss`, `train_loss` (without
    the penalty), `train_objective`, `test_error` and `train_error` (the share of wrong signs, or
    squares for real labels), `readout_norm` and `intercept` (theory, section 30).
    """

    MEANINGS: ClassVar[Mapping[str, str]] = QUANTITIES

    problem: Problem | Grid
    values: Mapping[str, FloatArray]  # (variant, *grid, seed); alignments (*grid, seed, step)

    def __getattr__(self, name: str) -> Any:
        if name not in {**QUANTITIES, **LOSS_QUANTITIES} or name not in self.values:
            raise AttributeError(name)
        if isinstance(self.problem, Grid):
            return self.mean[name].isel(variant=0, drop=True)
        return float(self.values[name][0].mean())

    @cached_property
    def quantities(self) -> Mapping[str, str]:
        """Names and meanings of what was measured."""
        return quantities_of(self.problem)

    @property
    def numbers(self) -> dict[str, Any]:
        """The means over the seeds, by name."""
        return {name: getattr(self, name) for name in self.quantities}

    @cached_property
    def dataset(self) -> xarray.Dataset:
        """All numbers, with dimensions variant, the grid's fields, seed (and step)."""
        grid = as_grid(self.problem)
        dims = grid.dims
        coords: dict[str, Any] = {"variant": list(self.variants), **grid.coordinates()}
        coords["seed"] = list(self.seeds)
        arrays: dict[str, Any] = {}
        for name, values in self.values.items():
            measured = name in self.quantities
            axes = ("variant", *dims, "seed") if measured else (*dims, "seed", "step")
            text = self.quantities[name] if measured else _meaning(name)
            arrays[name] = (axes, values, {"long_name": text})
        if not ALIGNMENT.keys().isdisjoint(arrays):
            coords["step"] = list(range(1, self._steps + 1))
        notes = "; ".join(self.notes) or "none"
        return xarray.Dataset(arrays, coords, attrs={**self.record, "notes": notes})

    @property
    def _steps(self) -> int:
        """The largest number of steps."""
        return max(problem.steps for problem in as_grid(self.problem))

    def points(self) -> Iterator[Row]:
        """Points by variant: coordinates, then each quantity's statistics."""
        points = list(as_grid(self.problem).points())
        for i, point in enumerate(points):
            for v, variant in enumerate(self.variants):
                row: Row = {**point, "variant": variant}
                for name in self.quantities:
                    flat = self.values[name].reshape(-1, len(points), len(self.seeds))
                    row[name] = statistics(flat[v, i])
                if variant == "trained":
                    row["alignment"] = self._alignment(len(points), i)
                yield row

    def _alignment(self, count: int, i: int) -> list[Row]:
        steps = range(self._steps)
        arrays = {n: self.values[n].reshape(count, -1, len(steps))[i] for n in ALIGNMENT}
        return [
            {"step": k + 1, **{name: statistics(a[:, k]) for name, a in arrays.items()}}
            for k in steps
        ]

    @property
    def columns(self) -> list[str]:
        """Quantities that a table has: an intercept only where one is fitted."""
        fitted = any(problem.intercept for problem in as_grid(self.problem))
        return [name for name in self.quantities if name != "intercept" or fitted]

    def as_dict(self) -> dict[str, Any]:
        """Every number of every seed, and what the run took, ready for JSON."""
        return {**self.taken(), "notes": list(map(str, self.notes)), "points": list(self.points())}

    def tables(self) -> list[Table]:
        """Mean ± standard error by point and variant; of one problem also the alignment."""
        fields = as_grid(self.problem).dims
        keys = [*fields, *(["variant"] if len(self.variants) > 1 or not fields else [])]
        rows = list(self.points())
        shown = self.columns
        cells = [[*(r[key] for key in keys), *(_spread(r[n]) for n in shown)] for r in rows]
        found = [Table.of([*keys, *shown], cells)]
        steps = [step for row in rows for step in row.get("alignment", ())]
        if steps and not fields:
            header = ("after_step", "cosine with the target", "share of ‖W‖² along it")
            table = [(s["step"], _spread(s["cosine"]), _spread(s["energy"])) for s in steps]
            found.append(Table.of(header, table))
        return found

    def closing(self) -> list[str]:
        """What errors and losses are, where that depends on the loss, and what it took."""
        points = list(as_grid(self.problem))
        if points[0].has_square_loss:
            return super().closing()
        errors = dict.fromkeys(
            "share of wrong signs" if p.is_binary else "mean of (y − f)²" for p in points
        )
        told = f"Errors: {' or '.join(errors)}. Train objective: train loss + (λ/2)‖â‖²."
        return [told, *super().closing()]

    def __repr__(self) -> str:
        told = [f"{len(self.problem)} points" if isinstance(self.problem, Grid) else _means(self)]
        told += [f"variants {', '.join(self.variants)}; {self.closing()[-1]}"]
        notes = [f"note: {note}" for note in self.notes]
        return "\n    ".join([f"Simulation of {self.problem!r}", *told, *notes])


def _means(found: Simulation) -> str:
    return ", ".join(f"{name} = {cell(value)}" for name, value in found.numbers.items())


def _spread(found: Mapping[str, Any]) -> str:
    return plus_minus(found["mean"], found["standard_error"])
