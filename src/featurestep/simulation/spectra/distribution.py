"""What is read off measured eigenvalues: cumulative functions, densities, and spikes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.borders import Border
from ...core.errors import InvalidProblem
from ...core.types import FloatArray
from ..over_seeds import error_of_mean

QUANTILES = 500  # equal shares into which a measured mass is cut to smooth it


class MeasuredMass(NamedTuple):
    """A cumulative function, linear in the singular value between its knots."""

    knots: FloatArray  # singular values, ascending
    heights: FloatArray  # share of the eigenvalues up to there
    resolution: FloatArray  # bound on the quadrature's error there


@dataclass(frozen=True, eq=False)
class Distribution:
    """Eigenvalues of one matrix: those known one by one, and measurements of the rest."""

    columns: int  # of the matrix: how many eigenvalues there are
    zeros: int  # of them 0 for the matrix's shape alone
    atoms: FloatArray  # eigenvalues known one by one, descending
    rest: tuple[MeasuredMass, ...]

    @property
    def atom_mass(self) -> float:
        """Share of one eigenvalue."""
        return 1.0 / self.columns


def all_known(values: FloatArray, columns: int) -> Distribution:
    """Every eigenvalue of a matrix that its shape does not make 0: one measurement of nothing."""
    nothing = MeasuredMass(*np.zeros((3, 1)))
    return Distribution(columns, columns - len(values), values, (nothing,))


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
    values = np.concatenate([cumulative(one, x) for one in found])  # (measurements, x)
    bound = np.concatenate([_interpolate(one, "resolution", x) for one in found])
    return Curve(x, np.mean(values, axis=0), error_of_mean(values), np.mean(bound, axis=0))


def density_curve(found: Sequence[Distribution], x: FloatArray, width: float) -> Curve:
    """The smoothed density at x."""
    values = np.concatenate([density(one, x, width) for one in found])  # (measurements, x)
    return Curve(x, np.mean(values, axis=0), error_of_mean(values), np.zeros(len(x)))


def cumulative(found: Distribution, x: FloatArray) -> FloatArray:
    """The share of eigenvalues ≤ x, zeros included, for each measurement: (measurements, x)."""
    atoms = np.searchsorted(found.atoms[::-1], x, side="right")
    known = np.where(x >= 0.0, found.zeros, 0) + atoms
    return known * found.atom_mass + _interpolate(found, "heights", x)


def density(found: Distribution, x: FloatArray, width: float) -> FloatArray:
    """Density of the eigenvalues at x, smoothed by a Gaussian of the given standard deviation.

    The zeros that the matrix's shape makes are left out: it integrates to 1 − their share.
    """
    out = np.tile(found.atom_mass * _gaussians(found.atoms, x, width), (len(found.rest), 1))
    for row, (knots, heights, _) in zip(out, found.rest, strict=True):
        share = heights[-1] / QUANTILES
        if share > 0.0:
            points = np.interp((np.arange(QUANTILES) + 0.5) * share, heights, knots) ** 2
            row += share * _gaussians(points, x, width)
    return out


def default_width(found: Sequence[Distribution]) -> float:
    """2 % of the 99 % point of the eigenvalues that are not 0 by shape: fine beside any bulk."""
    ends = [float(part.knots[-1]) ** 2 for one in found for part in one.rest]
    upper = max(*ends, *(float(one.atoms[0]) for one in found))
    grid = np.linspace(0.0, upper**0.5, 4000) ** 2
    grid[-1] = upper  # its root squared may lie below it, and so below the largest eigenvalue
    share = np.mean([np.mean(cumulative(one, grid), axis=0) for one in found], axis=0)
    zero = found[0].zeros * found[0].atom_mass
    return 0.02 * float(grid[np.searchsorted(share, zero + 0.99 * (1.0 - zero))])


def _gaussians(points: FloatArray, x: FloatArray, width: float) -> FloatArray:
    """Sum of normal densities around the points, at each x."""
    sums = [np.sum(np.exp(-0.5 * ((at - points) / width) ** 2)) for at in x]
    return np.asarray(np.array(sums) / (width * np.sqrt(2.0 * np.pi)))


def _interpolate(found: Distribution, name: str, x: FloatArray) -> FloatArray:
    """What is measured at knots, at the eigenvalues x: 0 below 0."""
    s = np.sqrt(np.maximum(x, 0.0))
    rows = np.stack([np.interp(s, part.knots, getattr(part, name)) for part in found.rest])
    return np.where(x >= 0.0, rows, 0.0)


@dataclass(frozen=True, eq=False)
class Spikes:
    """The eigenvalues beyond edge + margin, largest first, and what carries them."""

    locations: FloatArray  # (count,): eigenvalues of FᵀF/n, or of WᵀW
    border: Border  # of the bulk, as given
    overlaps: FloatArray  # (resolved, functions): squared overlaps, of those with vectors
    complete: bool  # False when every value looked at is a spike, so that there may be more

    @property
    def count(self) -> int:
        """How many."""
        return len(self.locations)

    @property
    def singular_values(self) -> FloatArray:
        """Their square roots."""
        return np.sqrt(self.locations)


def find_spikes(
    values: Any, border: Border, *, overlaps: FloatArray | None = None, complete: bool = True
) -> Spikes:
    """The eigenvalues (of FᵀF/n, not their roots) beyond the border of a bulk.

    values
        Eigenvalues in any order, or the largest of them.
    border
        Where spikes begin: `spectrum(problem).border`, or a `Border` of an edge and a margin.
    overlaps, complete
        Overlaps of the largest values, in order, and whether `values` are all there are.
    """
    if not isinstance(border, Border):
        raise InvalidProblem("border", "must be a Border, as a predicted spectrum has it", border)
    listed = np.asarray(values, dtype=np.float64)
    if listed.ndim != 1 or not np.all(np.isfinite(listed)):
        raise InvalidProblem("values", "must be a list of finite numbers", values)
    found = np.sort(listed[listed > border.place])[::-1]
    known = np.empty((0, 0)) if overlaps is None else overlaps[: len(found)]
    return Spikes(found, border, known, complete or len(found) < len(listed))
