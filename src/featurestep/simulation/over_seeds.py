"""What every result over seeds has: means and their standard errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidProblem

if TYPE_CHECKING:
    import xarray


class OverSeeds(ABC):
    """A result whose `dataset` has the dimension seed."""

    @cached_property
    @abstractmethod
    def dataset(self) -> xarray.Dataset:
        """All numbers."""

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
