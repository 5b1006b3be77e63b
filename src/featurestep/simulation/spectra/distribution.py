"""Distributions of eigenvalues, read off measured ones: cumulative functions and densities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...types import FloatArray

LEVELS = 500  # equal shares into which a measured mass is cut to smooth it


@dataclass(frozen=True, eq=False)
class Distribution:
    """Eigenvalues of one matrix: those known one by one, and measurements of the rest.

    A measurement is a cumulative function, linear in the singular value between its knots.
    """

    columns: int  # of the matrix: how many eigenvalues there are
    zeros: int  # of them 0 for the matrix's shape alone
    atoms: FloatArray  # eigenvalues known one by one, descending
    knots: FloatArray  # (measurements, knots): singular values, ascending
    heights: FloatArray  # (measurements, knots): share of the eigenvalues up to there
    resolution: FloatArray  # (measurements, knots): bound on the quadrature's error there

    @property
    def atom_mass(self) -> float:
        """Share of one eigenvalue."""
        return 1.0 / self.columns


def all_known(values: FloatArray, columns: int) -> Distribution:
    """Every eigenvalue of a matrix that its shape does not make 0: one measurement of nothing."""
    nothing = np.zeros((1, 1))
    return Distribution(columns, columns - len(values), values, nothing, nothing, nothing)


@dataclass(frozen=True, eq=False)
class Curve:
    """A function of the eigenvalue: its mean over measurements, with a standard error.

    A measurement is a seed (dense route) or a probe of a seed (Krylov route); with one
    measurement the standard error is NaN. The quadrature adds an error of at most `resolution`
    to a cumulative function (0 for the dense route and for a smoothed density, which is taken
    as it is).
    """

    x: FloatArray
    mean: FloatArray
    standard_error: FloatArray
    resolution: FloatArray


def cumulative_curve(found: Sequence[Distribution], x: FloatArray) -> Curve:
    """The share of eigenvalues ≤ x, zeros included."""
    bound = np.concatenate([_interpolate(one, one.resolution, x) for one in found])
    return _curve(partial(cumulative, x=x), x, found, np.mean(bound, axis=0))


def density_curve(found: Sequence[Distribution], x: FloatArray, width: float) -> Curve:
    """The smoothed density at x."""
    return _curve(partial(density, x=x, width=width), x, found, np.zeros(len(x)))


def _curve(
    read: Callable[[Distribution], FloatArray],
    x: FloatArray,
    found: Sequence[Distribution],
    resolution: FloatArray,
) -> Curve:
    values = np.concatenate([read(distribution) for distribution in found])  # (measurements, x)
    count = len(values)
    error = np.full(len(x), np.nan)
    if count > 1:
        error = np.std(values, axis=0, ddof=1) / count**0.5
    return Curve(x, np.mean(values, axis=0), error, resolution)


def cumulative(found: Distribution, x: FloatArray) -> FloatArray:
    """The share of eigenvalues ≤ x, zeros included, for each measurement: (measurements, x)."""
    atoms = np.searchsorted(found.atoms[::-1], x, side="right")
    known = np.where(x >= 0.0, found.zeros, 0) + atoms
    return known * found.atom_mass + _interpolate(found, found.heights, x)


def density(found: Distribution, x: FloatArray, width: float) -> FloatArray:
    """Density of the eigenvalues at x, smoothed by a Gaussian of the given standard deviation.

    The zeros that the matrix's shape makes are left out: it integrates to 1 − their share.
    """
    out = np.tile(found.atom_mass * _gaussians(found.atoms, x, width), (len(found.knots), 1))
    for row, knots, heights in zip(out, found.knots, found.heights, strict=True):
        share = heights[-1] / LEVELS
        if share > 0.0:
            points = np.interp((np.arange(LEVELS) + 0.5) * share, heights, knots) ** 2
            row += share * _gaussians(points, x, width)
    return out


def default_width(found: Sequence[Distribution]) -> float:
    """2 % of the 99 % point of the eigenvalues that are not 0 by shape: fine beside any bulk."""
    upper = max(float(np.max(one.knots)) ** 2 for one in found)
    upper = max([upper, *(float(one.atoms[0]) for one in found)])
    grid = np.linspace(0.0, upper**0.5, 4000) ** 2
    share = np.mean([np.mean(cumulative(one, grid), axis=0) for one in found], axis=0)
    zero = found[0].zeros * found[0].atom_mass
    return 0.02 * float(grid[np.searchsorted(share, zero + 0.99 * (1.0 - zero))])


def _gaussians(points: FloatArray, x: FloatArray, width: float) -> FloatArray:
    """Sum of normal densities around the points, at each x."""
    sums = [np.sum(np.exp(-0.5 * ((at - points) / width) ** 2)) for at in x]
    return np.asarray(np.array(sums) / (width * np.sqrt(2.0 * np.pi)))


def _interpolate(found: Distribution, values: FloatArray, x: FloatArray) -> FloatArray:
    """Values at knots, at the eigenvalues x: 0 below 0."""
    s = np.sqrt(np.maximum(x, 0.0))
    pairs = zip(found.knots, values, strict=True)
    rows = np.stack([np.interp(s, knots, heights) for knots, heights in pairs])
    return np.where(x >= 0.0, rows, 0.0)
