"""Averages of an activation over ζ, at the many pre-activations of a table of features."""

from __future__ import annotations

import numpy as np

from ...core.errors import NotConverged
from ...core.types import FloatArray
from ...functions.activations import HermiteSum
from ...functions.nonlinearity import Nonlinearity, innermost

_PER_WIDTH, _SMOOTH = 0.05, 0.5  # spacing of arguments over ς, but of an activation without kinks
_MOST_BY_KINKS, _MOST_CELLS = 12_000, 200_000  # next to kinks averages are explicit
_BLOCK = 8192  # arguments that are interpolated at once: they stay in cache
_NO_WEIGHT = 1e-16
_MEAN_POINTS, _SPREAD_POINTS = 8, 6  # around a cell, of the polynomial in it


def _stencil(points: int) -> tuple[FloatArray, FloatArray]:
    """Places of the points, in cells, and the matrix from values there to powers of the place."""
    places = np.arange(1.0 - points // 2, 1.0 + points // 2)
    return places, np.linalg.inv(np.vander(places, increasing=True))


class SmoothedActivation:
    """E σ(x + ςζ) for ζ ~ N(0,1), with its first two derivatives and its spread, for x in a range.

    Mean and spread are computed on a grid and interpolated by polynomials of degree 7 and 5, unless
    that would take too many values: of polynomials, and next to kinks that are hardly smoothed.
    """

    def __init__(self, sigma: Nonlinearity, width: float, low: float, high: float) -> None:
        self.sigma, self.width = sigma, width
        self._mean: FloatArray | None = None  # (8, cells) of powers in each cell
        self._cell = _PER_WIDTH * (width if sigma.kinks else max(width, _SMOOTH))
        self._low = low - 4.0 * self._cell
        count = int(np.ceil((high - self._low) / self._cell)) + 6
        if isinstance(innermost(sigma), HermiteSum) or (sigma.kinks and count > _MOST_BY_KINKS):
            return
        if count > _MOST_CELLS:
            raise NotConverged(
                "features on the step's rows reach too far by their own part of the step: take "
                "more rows in the step, or a smaller step"
            )
        at = self._low + self._cell * np.arange(count, dtype=np.float64)
        mean, _, spread = self.sigma.averages(np.array(self.width), at, 1)
        self._mean, self._spread = _in_cells(mean, _MEAN_POINTS), _in_cells(spread, _SPREAD_POINTS)

    def __call__(self, x: FloatArray, weight: FloatArray) -> FloatArray:
        """Mean, slope, second derivative, spread, (4, *shape); 0 where there is no weight."""
        if self._mean is not None:
            return self._interpolated(x.ravel(), self._mean).reshape(4, *x.shape)
        found = np.zeros((4, *x.shape))
        kept = weight > _NO_WEIGHT
        found[:, kept] = self.sigma.averages(np.array(self.width), x[kept], 2)
        return found

    def _interpolated(self, x: FloatArray, powers: FloatArray) -> FloatArray:
        found, spare = np.zeros((4, x.size)), np.empty(_BLOCK)
        for start in range(0, x.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            place = (x[block] - self._low) / self._cell
            cell = place.astype(np.intp)
            place -= cell
            term = spare[: place.size]
            mean, slope, bend, spread = found[:, block]
            np.take(powers[-1], cell, out=mean, mode="clip")
            for power in powers[-2::-1]:
                bend *= place
                bend += slope
                slope *= place
                slope += mean
                mean *= place
                mean += np.take(power, cell, out=term, mode="clip")
            np.take(self._spread[-1], cell, out=spread, mode="clip")
            for power in self._spread[-2::-1]:
                spread *= place
                spread += np.take(power, cell, out=term, mode="clip")
        found[1] /= self._cell
        found[2] *= 2.0 / self._cell**2
        return found


def _in_cells(values: FloatArray, points: int) -> FloatArray:
    """Coefficients of powers of the place in every cell of a grid, (points, cells).

    Cells too close to an end for their points have those of the nearest that is not.
    """
    places, to_powers = _stencil(points)
    windows = np.lib.stride_tricks.sliding_window_view(values, points)
    found = to_powers @ windows.T
    before, after = -int(places[0]), int(places[-1]) - 1
    return np.ascontiguousarray(np.pad(found, ((0, 0), (before, after)), mode="edge"))
