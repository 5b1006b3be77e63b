"""A published figure: what it computes, how it is drawn, what it claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..activations import function
from ..hermite import coefficients
from ..problem import Grid, Problem
from ..quadrature import FloatArray
from .claims import Claim

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from ..simulation import Simulation

Report = Callable[[float], None]  # told the share of the work that is done
Tell = Callable[[int, int], None]  # what the verbs tell: done, of how much
TWO_COLUMNS = 6.8  # inches
MOST_TILT = 0.1
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


def noted(predictions: xarray.Dataset) -> xarray.DataArray:
    """1 where a prediction carries a note on its validity."""
    return (predictions["validity"] != "").astype("int8")


def tilt(problem: Problem) -> float:
    """Size of the step's terms of first order in β⋆·w_j, as a share of the weights.

    The mean of y σ′(w·x) x is c_1c⋆_1 β⋆ + (β⋆·w)(4c_2c⋆_2 β⋆ + 6c_3c⋆_1 w) + … for c⋆_0 = 0, by
    Stein's lemma. Predictions keep its first term. The others come with ηa_j: they vanish for
    η = o(√N), and not for many samples in the step. Where c_2 = 0 they hardly matter.
    """
    c, star = (coefficients(f, 3) for f in (problem.sigma, problem.sigma_star))
    if c[2] == 0.0:
        return 0.0
    largest = max(4.0 * abs(c[2] * star[2]), 6.0 * abs(c[3] * star[1]))
    return float(largest * problem.eta / problem.width**0.5)


def left_out(grid: Grid) -> FloatArray:
    """Where predictions leave out something that no note of theirs mentions.

    One is a `tilt` above MOST_TILT. The other comes with c_2 ≠ 0 and a readout law of non-zero
    mean: the fluctuations of ‖x‖² move all neurons together, by c_2(‖x‖²/d − 1), which is the
    direction of such a readout. At small steps this is as large as what the step adds there.
    """
    found = [
        tilt(problem) > MOST_TILT
        or (problem.law.mean != 0.0 and float(coefficients(problem.sigma, 2)[2]) != 0.0)
        for problem in grid
    ]
    return np.reshape(found, grid.shape)


def encoded(data: xarray.Dataset) -> bytes:
    """The data as a netCDF 3 file, which SciPy writes and everybody reads."""
    return bytes(data.to_netcdf(engine="scipy"))
