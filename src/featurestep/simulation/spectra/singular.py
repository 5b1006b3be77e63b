"""A matrix M that comes as blocks of rows, and the dense route to its singular values.

Features (n × N) and weights (N × d) are both seen this way. With M = Σ s u vᵀ, what is asked of
a left vector u is its overlap with given functions of the rows, and of a right vector v its
overlap with given directions; neither needs the other side's vectors.

The dense route finds every singular value from the Gram matrix on the smaller side.

The Gram matrix squares: a singular value below about 1e-8 of the largest (3e-4 in float32) is
rounding error. That is enough for a density and for spikes, which are large.

A `Distribution` is what a route knows of the eigenvalues: cumulative functions, densities and
spikes are read off it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import InvalidProblem
from ...core.spiked import Border
from ...core.types import FloatArray
from ..backend import Array, Backend
from ..network.readout import refuse_non_finite
from ..network.result import error_of_mean


@dataclass(frozen=True)
class RowBlock:
    """Consecutive rows of M."""

    start: int
    values: Array  # (rows, columns)
    left: FloatArray  # (rows, functions): the functions at these rows

    @property
    def at(self) -> slice:
        """Their place among all rows."""
        return slice(self.start, self.start + len(self.left))


@dataclass(frozen=True)
class RowMatrix:
    """M, and what its singular vectors are compared with."""

    rows: int
    columns: int
    scale: float  # eigenvalues are those of MᵀM/scale
    functions: int
    directions: FloatArray  # (directions, columns), unit rows
    blocks: Callable[[], Iterator[RowBlock]]  # from the first row to the last
    whole: Array | None = None  # M in one piece, where it is in memory anyway

    @property
    def side(self) -> int:
        """The smaller side: how many eigenvalues are not 0 for M's shape alone."""
        return min(self.rows, self.columns)

    @property
    def by_columns(self) -> bool:
        """Whether the smaller side is the columns'."""
        return self.columns <= self.rows


class VectorOverlaps:
    """Sums over rows that give the overlaps of singular vectors, known on the smaller side only.

    From vᵀ: u·f = vᵀMᵀf/s. From u: v·g = uᵀMg/s.
    """

    def __init__(self, backend: Backend, matrix: RowMatrix) -> None:
        self.backend = backend
        self.matrix = matrix
        self.squares = np.zeros(matrix.functions)  # ‖f‖²
        self._across: list[FloatArray] = []  # M·directions, rows' side
        self._left: list[FloatArray] = []  # the functions themselves, rows' side
        self._moments = backend.zeros(matrix.columns, matrix.functions)  # Mᵀf, columns' side
        self._right = backend.put(matrix.directions)

    def add(self, block: RowBlock) -> None:
        """The next rows."""
        self.squares += np.sum(block.left**2, axis=0)
        if self.matrix.by_columns:
            self.backend.add_product(self._moments, block.values, self.backend.put(block.left))
            return
        self._left.append(block.left)
        self._across.append(self.backend.get(block.values @ self._right.T))

    def parts(self) -> list[FloatArray]:
        """The sums of the columns' side, to be added to those of other rows."""
        return [self.backend.get(self._moments), self.squares]

    def take(self, parts: list[FloatArray]) -> None:
        """The sums of all rows."""
        self._moments, self.squares = self.backend.put(parts[0]), parts[1]

    def of(self, vectors: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Squared overlaps (vectors, functions) and (vectors, directions).

        `vectors` are unit rows on the smaller side, `values` their eigenvalues s² of MᵀM/scale.
        """
        s2 = (values * self.matrix.scale)[:, None]
        resolved = s2 > absent(self.backend.solver.dtype) * s2[0]
        there = np.where(resolved, s2, 1.0)
        if self.matrix.by_columns:
            left = (vectors @ self.backend.get(self._moments)) ** 2 / there
            right = (vectors @ self.matrix.directions.T) ** 2
        else:
            left = (vectors @ np.concatenate(self._left)) ** 2
            right = (vectors @ np.concatenate(self._across)) ** 2 / there
        return np.where(resolved, left / self.squares, np.nan), np.where(resolved, right, np.nan)


def absent(dtype: str) -> float:
    """The s² (of the largest) below which a pair is not resolved: s² is known to eps only."""
    return float(np.sqrt(np.finfo(dtype).eps))


def apply_gram(backend: Backend, matrix: RowMatrix, vectors: Array) -> Array:
    """MᵀM v/scale, or MMᵀ v/scale on the rows' side, for vectors as rows; no Gram matrix.

    Vectors are in float64, products in the solver's precision. The columns' side takes one pass
    over the rows of M, the rows' side two.
    """
    solver = backend.solver
    there = solver.zeros(len(vectors), matrix.columns)
    inside = solver.cast(vectors)
    if matrix.by_columns:
        for block in matrix.blocks():
            values = solver.cast(block.values)
            solver.add_product(there, solver.product(values, inside), values)
        return solver.wide(there) / matrix.scale
    for block in matrix.blocks():
        solver.add_product(there, inside[:, block.at].T, solver.cast(block.values))
    out = 0.0 * vectors
    for block in matrix.blocks():
        out[:, block.at] = solver.product(solver.cast(block.values), there).T
    return out / matrix.scale


@dataclass(frozen=True)
class MatrixSpectrum:
    """What a route found for one matrix."""

    top: FloatArray  # (top,): largest eigenvalues of MᵀM/scale, descending
    left: FloatArray  # (top, functions): squared overlaps of left vectors
    right: FloatArray  # (top, directions): squared overlaps of right vectors
    residual: FloatArray  # (top,): ‖Av − λv‖/λ; NaN where it was not measured
    distribution: Distribution
    flops: int


def gram_flops(rows: int, columns: int) -> int:
    """Half a product, on the smaller side."""
    return rows * columns * min(rows, columns)


def reduction_flops(side: int) -> int:
    """To tridiagonal form; what follows is small beside it."""
    return 4 * side**3 // 3


def dense_spectrum(backend: Backend, matrix: RowMatrix, top: int) -> MatrixSpectrum:
    """All eigenvalues of MᵀM/scale, and the overlaps of the first `top` pairs."""
    overlaps = VectorOverlaps(backend, matrix)
    return from_gram(backend, matrix, gram_of(backend, matrix, overlaps), overlaps, top)


def from_gram(
    backend: Backend, matrix: RowMatrix, gram: Array, overlaps: VectorOverlaps, top: int
) -> MatrixSpectrum:
    """The same from sums over all rows; the Gram matrix is used up."""
    refuse_non_finite(backend.solver, gram)
    values, vectors = backend.solver.eigen(gram, top)
    values = np.maximum(values, 0.0) / matrix.scale
    left, right = overlaps.of(vectors, values[:top])
    return MatrixSpectrum(
        top=values[:top],
        left=left,
        right=right,
        residual=np.full(top, np.nan),
        distribution=all_known(values, matrix.columns),
        flops=gram_flops(matrix.rows, matrix.columns) + reduction_flops(matrix.side),
    )


def gram_of(backend: Backend, matrix: RowMatrix, overlaps: VectorOverlaps) -> Array:
    """MᵀM over blocks of rows, or MMᵀ from the whole of M when it has fewer rows."""
    if matrix.by_columns:
        solver = backend.solver
        gram = solver.zeros(matrix.columns, matrix.columns)
        for block in matrix.blocks():
            overlaps.add(block)
            solver.add_gram(gram, solver.cast(block.values))
        return gram
    whole = backend.empty(matrix.rows, matrix.columns) if matrix.whole is None else matrix.whole
    for block in matrix.blocks():
        overlaps.add(block)
        if matrix.whole is None:
            whole[block.at] = block.values
    return backend.solver.outer_gram(backend.solver.cast(whole))


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
