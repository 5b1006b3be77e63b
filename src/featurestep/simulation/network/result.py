"""What a simulation returns: every number by seed and grid point, with its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...grid import Grid
from ...problem import Problem
from ...types import FloatArray
from ..draws.setting import Setting
from ..over_seeds import OverSeeds

if TYPE_CHECKING:
    import xarray

QUANTITIES = ("test_error", "train_loss", "train_mse", "readout_norm")


@dataclass(frozen=True, eq=False)
class Simulation(OverSeeds):
    """Simulated errors of every variant, grid point and seed.

    `test_error` is E(y − f)² on fresh inputs, noise included (theory, section 1): the noise's part
    is exact and the rest is averaged over the test inputs. `cosine` and `energy` are the
    alignment of the trained weights with the target after each step.
    """

    problem: Problem | Grid
    setting: Setting
    variants: tuple[str, ...]
    seeds: tuple[int, ...]
    values: Mapping[str, FloatArray]  # (variant, *grid, seed); alignments (*grid, seed, step)
    wall_time: float  # seconds
    flops: int  # counted as in `estimate`
    record: Mapping[str, str]  # versions, dtype, device, BLAS

    @property
    def departures(self) -> tuple[str, ...]:
        """Where the theory's assumptions are left, in words; empty when they hold."""
        return self.setting.departures

    @property
    def rate(self) -> float:
        """Counted flops per second."""
        return self.flops / self.wall_time

    @cached_property
    def dataset(self) -> xarray.Dataset:
        """All numbers, with dimensions variant, the grid's fields, seed (and step)."""
        import xarray

        grid = self.problem if isinstance(self.problem, Grid) else None
        dims = grid.dims if grid is not None else ()
        coords: dict[str, Any] = {"variant": list(self.variants)}
        coords.update(grid.coordinates() if grid is not None else {})
        coords["seed"] = list(self.seeds)
        arrays: dict[str, Any] = {}
        for name, values in self.values.items():
            aligned = name not in QUANTITIES
            axes = (*dims, "seed", "step") if aligned else ("variant", *dims, "seed")
            arrays[name] = (axes, values)
        if len(self.values) > len(QUANTITIES):
            coords["step"] = list(range(1, len(self.setting.multiples) + 1))
        notes = "; ".join(self.departures) or "none"
        return xarray.Dataset(arrays, coords, attrs={**self.record, "departures": notes})

    def __str__(self) -> str:
        points = len(self.problem) if isinstance(self.problem, Grid) else 1
        return (
            f"Simulation of {points} point(s), {len(self.variants)} variant(s), "
            f"{len(self.seeds)} seed(s): {self.flops:.3g} flops in {self.wall_time:.3g} s "
            f"({self.rate / 1e9:.3g} Gflop/s)"
        )
