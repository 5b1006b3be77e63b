"""What every result over seeds has: means and their standard errors, and what it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..core.display import plus_minus
from ..core.errors import InvalidProblem
from ..core.results import Note, Result
from ..core.types import FloatArray, xarray
from .draws.setting import Setting


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
