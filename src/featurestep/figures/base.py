"""A published figure: what it computes, how it is drawn, what it claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..functions.activations import function
from .claims import Claim

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from ..simulation import Simulation

Report = Callable[[float], None]  # told the share of the work that is done
Tell = Callable[[int, int], None]  # what the verbs tell: done, of how much
TWO_COLUMNS = 6.8  # inches
# Bounded, with c_1, c_2, c_3 ≠ 0: every spike of the first regimes, and no row outside the bulk.
SHIFTED_SINE = function(
    lambda z: np.sin(z + 0.6), derivative=lambda z: np.cos(z + 0.6), name="sin(z + 0.6)"
)


@dataclass(frozen=True)
class PaperFigure:
    """One figure. Its data carry all that the drawing and the claims need."""

    name: str
    title: str
    compute: Callable[[bool, Report], xarray.Dataset]  # quick?, progress
    draw: Callable[[xarray.Dataset], Figure]
    check: Callable[[xarray.Dataset], tuple[Claim, ...]]  # or FigureClaimFailed


def parts(report: Report, weights: Sequence[float]) -> Iterator[Tell]:
    """A verb's progress for each part of the work, in proportion to the weights."""
    total, before = float(sum(weights)), 0.0
    for weight in weights:
        yield partial(_tell, report, before / total, weight / total)
        before += weight


def _tell(report: Report, before: float, share: float, done: int, total: int) -> None:
    report(before + share * done / max(total, 1))


def means(found: Simulation, quantity: str) -> tuple[xarray.DataArray, xarray.DataArray]:
    """Means of a quantity over the seeds, and their standard errors."""
    return found.mean[quantity], found.standard_error[quantity]


def encoded(data: xarray.Dataset) -> bytes:
    """The data as a netCDF 3 file, which SciPy writes and everybody reads."""
    return bytes(data.to_netcdf(engine="scipy"))
