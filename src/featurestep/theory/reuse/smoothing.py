"""Averages of an activation over ζ, at the many pre-activations of a table of features."""

from __future__ import annotations

import numpy as np

from ...core.errors import NotConverged
from ...core.types import FloatArray
from ...functions.activations import HermiteSum
from ...functions.nonlinearity import Nonlinearity, innermost

_PER_WIDTH, _SMOOTH = 0.05, 0.5  # spacing of arguments over ς, but of an activation without kinks
_MOST_BY_KINKS, _MOST_CELLS = 12_000, 200_000  # next to kinks averages are explicit
_STENCIL = np.arange(-2.0, 4.0)
_TO_POWERS = np.linalg.inv(np.vander(_STENCIL, increasing=True))
_BLOCK = 8192  # arguments that are interpolated at once: they stay in cache
_NO_WEIGHT = 1e-16


class SmoothedActivation:
    """E σ(x + ςζ) for ζ ~ N(0,1), with its first two derivatives and its spread, for x in a range.

    They are computed on a grid and interpolated by polynomials of degree 5, unless that would take
    too many values: of polynomials, and next to kinks that are hardly smoothed.
    """

    def __init__(self, sigma: Nonlinearity, width: float, low: float, high: float) -> None:
        self.sigma, self.width = sigma, width
        self._coefficients: FloatArray | None = None  # (4, 6, cells) of powers in each cell
        self._cell = _PER_WIDTH * (width if sigma.kinks else max(width, _SMOOTH))
        self._low = low - 3.0 * self._cell
        count = int(np.ceil((high - self._low) / self._cell)) + 5
        if isinstance(innermost(sigma), HermiteSum) or (sigma.kinks and count > _MOST_BY_KINKS):
            return
        if count > _MOST_CELLS:
            raise NotConverged(
                "features on the step's rows reach too far by their own part of the step: take "
                "more rows in the step, or a smaller step"
            )
        table = self._averages(self._low + self._cell * np.arange(count, dtype=np.float64))
        windows = np.lib.stride_tricks.sliding_window_view(table, _STENCIL.size, axis=1)
        self._coefficients = np.ascontiguousarray(np.swapaxes(windows @ _TO_POWERS.T, 1, 2))

    def __call__(self, x: FloatArray, weight: FloatArray) -> FloatArray:
        """Mean, slope, second derivative, spread, (4, *shape); 0 where there is no weight."""
        if self._coefficients is not None:
            return self._interpolated(x.ravel()).reshape(4, *x.shape)
        found = np.zeros((4, *x.shape))
        kept = weight > _NO_WEIGHT
        found[:, kept] = self._averages(x[kept])
        return found

    def _averages(self, x: FloatArray) -> FloatArray:
        return self.sigma.averages(np.array(self.width), x, 2)

    def _interpolated(self, x: FloatArray) -> FloatArray:
        assert self._coefficients is not None
        found, spare = np.empty((4, x.size)), np.empty(_BLOCK)
        for start in range(0, x.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            place = (x[block] - self._low) / self._cell
            cell = place.astype(np.intp)
            place -= cell
            cell -= 2
            term = spare[: place.size]
            for values, powers in zip(found[:, block], self._coefficients, strict=True):
                np.take(powers[-1], cell, out=values, mode="clip")
                for power in powers[-2::-1]:
                    values *= place
                    values += np.take(power, cell, out=term, mode="clip")
        return found
