"""Predicted and simulated spectra side by side, spikes counted at one border."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..core.display import Table
from ..core.errors import FeaturestepError
from ..core.grid import Grid
from ..core.problem import Problem
from ..core.results import GridResult, Progress, Result, over_grid, status_of
from ..core.types import FloatArray
from ..simulation import SEEDS, Setting, SimulatedSpectrum, simulated_spectrum, spread
from ..theory import Spectrum, spectrum
from ..theory.spectra import shares

TOP_SINGULAR_VALUES = 10  # simulated singular values with overlaps


@dataclass(frozen=True, eq=False, repr=False)
class SpectrumBeside(Result):
    """A predicted spectrum, and those of real networks beside it."""

    MEANINGS: ClassVar[Mapping[str, str]] = {
        **{name: text for name, text in Spectrum.MEANINGS.items() if name != "atom"},
        "simulated_count": "mean number of simulated spikes beyond the same border",
        "simulated_value": "mean of the largest simulated singular values of F/√n, by rank",
    }
    DIMS: ClassVar[Mapping[str, tuple[str, ...]]] = {**Spectrum.DIMS, "simulated_value": ("rank",)}
    COLUMNS: ClassVar[tuple[str, ...]] = (*Spectrum.COLUMNS, "simulated_count")
    RAGGED: ClassVar[str | None] = Spectrum.RAGGED

    problem: Problem
    predicted: Spectrum
    simulated: SimulatedSpectrum | None  # None where `reason` says why
    reason: str = ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in Spectrum.MEANINGS:
            raise AttributeError(name)
        return getattr(self.predicted, name)

    @property
    def counts(self) -> list[int]:
        """Simulated spikes, seed by seed."""
        if self.simulated is None:
            return []
        found = self.simulated.spikes("trained", self.predicted.border)
        return [spikes.count for spikes in found]

    @property
    def simulated_count(self) -> float:
        """Their mean; NaN without a simulation."""
        return float(np.mean(self.counts)) if self.counts else float("nan")

    @property
    def simulated_value(self) -> FloatArray:
        """Means of the largest singular values, (rank,)."""
        if self.simulated is None:
            return np.empty(0)
        return np.asarray(self.simulated.singular_values("trained").mean(axis=0))

    @property
    def coordinates(self) -> dict[str, Any]:
        """Those of the prediction, and ranks."""
        ranks = range(1, len(self.simulated_value) + 1)
        return {**self.predicted.coordinates, "rank": list(ranks)}

    @property
    def notes(self) -> tuple[str, ...]:
        """Of the prediction, then of the simulation."""
        told = () if self.simulated is None else self.simulated.notes
        return (*self.predicted.notes, *told, *([self.reason] if self.reason else []))

    def as_dict(self) -> dict[str, Any]:
        """The prediction's numbers, and the networks' under `simulated`."""
        notes = list(map(str, self.notes))
        if self.simulated is None:
            return {**self.predicted.as_dict(), "notes": notes, "simulated": None}
        drawn = {"counts": self.counts, **self.simulated.as_dict()}
        return {**self.predicted.as_dict(), "notes": notes, "simulated": drawn}

    def tables(self) -> list[Table]:
        """The prediction's tables with a row of the networks below each of theirs."""
        bulks, *rest = self.predicted.tables()
        if self.simulated is None:
            return [bulks, *rest]
        return [bulks, *(self._beside(table) for table in rest)]

    def _beside(self, table: Table) -> Table:
        assert self.simulated is not None
        if table.header[0] != "spike":
            return Table(table.header, tuple(self._weights_beside(table)))
        rows: list[tuple[str, ...]] = []
        for rank, row in enumerate(table.rows):
            rows.append((row[0], "predicted", *row[1:]))
            if rank < self.simulated.top:
                values = self.simulated.singular_values("trained")[:, rank]
                carried = self.simulated.hermite_overlaps("trained")[:, rank].mean(axis=0)
                cells = (spread(values), spread(values**2), "", *shares(*carried))
                rows.append(("", "simulated", *cells, ""))
        return Table((table.header[0], "", *table.header[1:]), tuple(rows))

    def _weights_beside(self, table: Table) -> Iterator[tuple[str, ...]]:
        """Every spike of the weights, and the networks' singular value of the same rank."""
        assert self.simulated is not None
        overlaps = self.simulated.direction_overlaps()
        values = self.simulated.singular_values("weights")
        for rank, row in enumerate(table.rows):
            yield f"{row[0]} predicted", *row[1:]
            if rank < self.simulated.top:
                along = (overlaps[k][:, rank].mean() for k in ("beta", "target", "readout"))
                yield "W simulated", spread(values[:, rank]), *shares(*along)

    def closing(self) -> list[str]:
        """The counts, and what it took."""
        if self.simulated is None:
            return []
        listed = ", ".join(map(str, self.counts))
        count = f"Simulated spikes, seed by seed: {listed} (predicted: {self.predicted.count})."
        return [count, *self.simulated.closing()]


def spectrum_beside(
    problem: Problem | Grid,
    *,
    seeds: int | Iterable[int] = SEEDS,
    setting: Setting | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
    **options: Any,
) -> SpectrumBeside | GridResult:
    """Predict the spectrum, and simulate it with the arguments of `simulated_spectrum`.

    `progress` is told points of a grid, and flops of one problem.
    """
    run: dict[str, Any] = {"seeds": seeds, "setting": setting, "device": device, **options}
    if isinstance(problem, Grid):

        def one(point: Problem) -> SpectrumBeside:
            return beside(spectrum(point), kept=True, **run)

        return over_grid(SpectrumBeside, problem, one, progress)
    return beside(spectrum(problem), progress=progress, **run)


def top(problem: Problem) -> int:
    """How many simulated singular values get overlaps."""
    return min(TOP_SINGULAR_VALUES, problem.n, problem.d, problem.width)


def beside(predicted: Spectrum, *, kept: bool = False, **options: Any) -> SpectrumBeside:
    """Networks beside a prediction; with `kept` their failure leaves it, with the reason."""
    problem = predicted.problem
    asked = {"variants": ("trained", "weights"), "top": top(problem), **options}
    try:
        found = simulated_spectrum(problem, **asked)
    except FeaturestepError as error:
        if not kept:
            raise
        return SpectrumBeside(problem, predicted, None, f"not simulated: {status_of(error)}")
    return SpectrumBeside(problem, predicted, found)
