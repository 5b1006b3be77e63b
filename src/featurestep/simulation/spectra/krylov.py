"""The Krylov route: the largest singular values and a density, without a Gram matrix.

The matrix is applied to blocks of vectors. Features are computed once and kept, in the run's own
precision where that fits the memory, else in float32; where neither fits they are computed anew in
every pass. Products are in the run's own precision whatever is kept. Features kept in float32 are
those of a matrix that differs by 6e-8 of every entry: singular values move by less than 1e-7 of
themselves.

`BlockLanczos` builds the Krylov space, and `gauss_rule` turns it into the measure of a probe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from math import cbrt, ceil
from typing import Any

import numpy as np

from ...core.errors import NonFiniteFeatures, NotConverged
from ...core.types import FloatArray
from ...functions.quadrature import gauss_from_measure
from ..backend import Array, Backend, make_backend
from ..streams import Streams
from .singular import (
    Distribution,
    MatrixSpectrum,
    MeasuredMass,
    RowBlock,
    RowMatrix,
    VectorOverlaps,
    absent,
    all_known,
    apply_gram,
)

Apply = Callable[[Array], Array]


@dataclass(frozen=True)
class Ritz:
    """Ritz values, descending, with what a projected matrix knows of them."""

    values: FloatArray  # (size,)
    residuals: FloatArray  # (size,): ‖Ay − θy‖
    weights: FloatArray  # (probes, size): squared components of the probes
    coordinates: FloatArray  # (size, size): Ritz vectors in the basis, as columns


class BlockLanczos:
    """Grows an orthonormal basis of the block Krylov space of a symmetric operator.

    Vectors are rows of a backend's float64 arrays, whatever the operator computes in; what is
    small is on the host. `precision` is the operator's rounding unit: directions that small are
    dropped, so that an exhausted space ends the growth.
    """

    def __init__(
        self,
        apply: Apply,
        probes: FloatArray,
        *,
        capacity: int,
        precision: float,
        backend: Backend,
    ) -> None:
        self.apply = apply
        self.precision = precision
        self.backend = backend
        self._linalg: Any = import_module("scipy.linalg")
        room = min(capacity, probes.shape[1])
        self.basis = self.backend.empty(room, probes.shape[1])
        self.T = np.zeros((room, room))
        self.norm = 0.0  # of A, from below
        self.start = self.size = self.steps = 0
        self._mix = self._append(self.backend.put(np.array(probes)), 1.0)  # mix · first block
        self._coupling = np.empty((0, 0))

    @property
    def exhausted(self) -> bool:
        """Whether the last step found no new direction: then the basis is invariant."""
        return self.start == self.size

    def step(self) -> None:
        """One application of A, and the next block."""
        here = slice(self.start, self.size)
        Z = self.apply(self.basis[here])
        self.norm = max(self.norm, float((Z**2).sum(-1).max()) ** 0.5)
        inside = self._remove_basis(Z)  # (block, size)
        self.T[here, : self.size] = inside
        self.T[: self.size, here] = inside.T
        own = self.T[here, here]
        self.T[here, here] = 0.5 * (own + own.T)
        end = self.size
        self._coupling = self._append(Z, self.norm)  # (block, new)
        self.T[here, end : self.size] = self._coupling
        self.T[end : self.size, here] = self._coupling.T
        self.start, self.steps = end, self.steps + 1

    def ritz(self) -> Ritz:
        """Of the blocks to which A has been applied."""
        size, last = self.start, len(self._coupling)
        values, S = self._linalg.eigh(self.T[:size, :size], driver="evr", check_finite=False)
        values, S = values[::-1], S[:, ::-1]
        residuals = np.sqrt(np.sum((self._coupling.T @ S[size - last :]) ** 2, axis=0))
        weights = (self._mix @ S[: self._mix.shape[1]]) ** 2
        return Ritz(values, residuals, weights, S)

    def vectors(self, ritz: Ritz, top: int) -> Array:
        """The first Ritz vectors, as rows."""
        coordinates = self.backend.put(np.ascontiguousarray(ritz.coordinates[:, :top]))
        return self.backend.product_across(coordinates, self.basis[: len(coordinates)])

    def _append(self, Z: Array, norm: float) -> FloatArray:
        """Orthonormal rows Q for what is new in Z, with Z = coefficients · Q."""
        rounding = 4.0 * self.precision * self.basis.shape[1] ** 0.5
        coefficients, rows = self._factor(Z, rounding * norm)
        self._remove_basis(rows)  # short rows of Z were orthogonal to few digits only
        inner, rows = self._factor(rows, 0.5)
        room = min(len(rows), len(self.basis) - self.size)
        self.basis[self.size : self.size + room] = rows[:room]
        self.size += room
        return np.asarray((coefficients @ inner)[:, :room])

    def _factor(self, Z: Array, least: float) -> tuple[FloatArray, Array]:
        """Z = coefficients · rows, from the singular vectors of singular values above a limit."""
        if not len(Z):
            return np.empty((0, 0)), Z
        L, Q = self.backend.orthonormal(Z)
        U, s, V = self._linalg.svd(L, full_matrices=False, check_finite=False)
        keep = s > least
        rows = self.backend.zeros(int(np.count_nonzero(keep)), Q.shape[1])
        if len(rows):
            self.backend.add_product(rows, self.backend.put(V[keep].T), Q)
        return (U * s)[:, keep], rows

    def _remove_basis(self, Z: Array) -> FloatArray:
        """Z ← Z − (ZQᵀ)Q, twice; the coefficients ZQᵀ."""
        Q = self.basis[: self.size]
        total = np.zeros((len(Z), self.size))
        if not (self.size and len(Z)):
            return total
        backend = self.backend
        for _ in range(2):
            inside = backend.get(backend.product(Z, Q))
            backend.add_product(Z, backend.put(-inside.T), Q)
            total += inside
        return total


def gauss_rule(nodes: FloatArray, weights: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Nodes, ascending, and weights of the Gauss rule of a discrete measure, of count at most.

    The Ritz values of a block come in clusters, one value for each probe; a Gauss rule of one
    probe's measure has one node for each cluster, and its weights bound its own error.
    """
    total = float(np.sum(weights))
    if total <= 0.0 or not len(nodes):
        return np.empty(0), np.empty(0)
    # A coupling of 1e-10 of the largest node ends it.
    rule = gauss_from_measure(nodes, weights, count, breakdown=1e-10)
    return np.maximum(rule.nodes, 0.0), rule.weights


PROBES = 16  # vectors of a block; a product with so many costs little more than with one
KEPT_PIECE = 1 << 21  # elements turned back to the run's precision at a time, to stay in cache
DEVICE_PIECE = 1 << 27  # the same on a device, to be worth a launch
FIRST_CHECK, CHECK_EVERY = 60, 5  # steps; the density wants the first ones anyway
ZERO_UNITS = 1e4  # rounding units of the largest eigenvalue up to which a node is 0
TOLERANCE = {"float64": 1e-10, "float32": 1e-4}  # of ‖Av − λv‖/λ


def likely_steps(side: int) -> int:
    """Steps that ten values at the edge of a bulk take: its gaps close like side^(−2/3)."""
    return max(FIRST_CHECK, ceil(2.5 * cbrt(side)))


def most_steps(side: int) -> int:
    """Steps after which a value counts as unresolved."""
    return 2 * likely_steps(side)


def kept_piece(backend: Backend) -> int:
    """Elements of a kept matrix that are turned to the products' precision at a time."""
    return DEVICE_PIECE if backend.name == "cuda" else KEPT_PIECE


def krylov_flops(rows: int, columns: int, steps: int) -> int:
    """Products with the matrix, and orthogonalisation (four products with half the basis)."""
    width = min(PROBES, rows, columns)
    basis = min(steps * width, rows, columns)
    return steps * width * (4 * rows * columns + 4 * basis * min(rows, columns))


def krylov_spectrum(
    backend: Backend, matrix: RowMatrix, top: int, streams: Streams, *, keep: str | None
) -> MatrixSpectrum:
    """The first `top` eigenvalues of MᵀM/scale, each with its residual, and a quadrature.

    A value whose residual stays above the tolerance raises NotConverged. `keep` is the precision
    in which the matrix is kept; None computes its blocks anew in every pass.
    """
    dtype = backend.solver.dtype
    overlaps = VectorOverlaps(backend, matrix)
    matrix = _first_pass(backend, matrix, overlaps, keep)
    apply = partial(apply_gram, backend, matrix)
    probes = _probes(streams, matrix.side)
    lanczos = BlockLanczos(
        apply,
        probes,
        capacity=(most_steps(matrix.side) + 1) * len(probes),
        precision=float(np.finfo(dtype).eps),
        backend=make_backend(backend.name, "float64"),
    )
    ritz, limits = _converge(lanczos, top, dtype)
    on_device, values = lanczos.vectors(ritz, top), np.maximum(ritz.values[:top], 0.0)
    vectors, applied = backend.get(on_device), backend.get(apply(on_device))
    residuals = np.sqrt(np.sum((applied - values[:, None] * vectors) ** 2, axis=1))
    if np.any(residuals > 10.0 * limits):
        raise _unresolved(lanczos, values, residuals, limits)
    left, right = overlaps.of(vectors, values)
    return MatrixSpectrum(
        top=values,
        left=left,
        right=right,
        residual=residuals / np.where(values > 0.0, values, 1.0),
        distribution=_distribution(ritz, top, lanczos, matrix, absent(dtype)),
        flops=krylov_flops(matrix.rows, matrix.columns, lanczos.steps),
    )


def _first_pass(
    backend: Backend, matrix: RowMatrix, overlaps: VectorOverlaps, keep: str | None
) -> RowMatrix:
    """Sums for the overlaps, and the matrix as later passes will see it."""
    kept = None
    if keep is not None:
        kept = make_backend(backend.name, keep).empty(matrix.rows, matrix.columns)
    for block in matrix.blocks():
        _refuse_non_finite(block.values)
        overlaps.add(block)
        if kept is not None:
            kept[block.at] = block.values
    return matrix if kept is None else replace(matrix, blocks=partial(_kept_blocks, backend, kept))


def _kept_blocks(backend: Backend, kept: Array) -> Iterator[RowBlock]:
    """Rows of the kept matrix, in the precision of the products with it."""
    step = max(1, min(len(kept), kept_piece(backend) // kept.shape[1]))
    buffer = backend.solver.empty(step, kept.shape[1])
    for start in range(0, len(kept), step):
        values = kept[start : start + step]
        if values.dtype != buffer.dtype:
            buffer[: len(values)] = values
            values = buffer[: len(values)]
        yield RowBlock(start, values, np.empty((len(values), 0)))


def _refuse_non_finite(values: Array) -> None:
    with np.errstate(all="ignore"):
        total = float(values.sum())
    if not np.isfinite(total):
        raise NonFiniteFeatures("features are not finite: the activation overflows on these inputs")


def _probes(streams: Streams, side: int) -> FloatArray:
    """Unit vectors of random signs, as rows."""
    signs = streams.generator("probes").integers(0, 2, (min(PROBES, side), side))
    return np.asarray((2.0 * signs - 1.0) / side**0.5)


def _converge(lanczos: BlockLanczos, top: int, dtype: str) -> tuple[Ritz, FloatArray]:
    """Steps until the first `top` Ritz pairs are within tolerance, and the tolerances."""
    while True:
        lanczos.step()
        last = lanczos.exhausted or lanczos.steps == most_steps(lanczos.basis.shape[1])
        due = lanczos.steps >= FIRST_CHECK and lanczos.steps % CHECK_EVERY == 0
        if not (last or due):
            continue
        ritz = lanczos.ritz()
        values, residuals = ritz.values[:top], ritz.residuals[:top]
        rounding = 100.0 * float(np.finfo(dtype).eps) * lanczos.norm
        limits = np.maximum(TOLERANCE[dtype] * values, rounding)
        if len(values) == top and np.all(residuals <= limits):
            return ritz, limits
        if last:
            raise _unresolved(lanczos, values, residuals, limits)


def _unresolved(
    lanczos: BlockLanczos, values: FloatArray, residuals: FloatArray, limits: FloatArray
) -> NotConverged:
    good = int(np.count_nonzero(residuals <= limits))
    worst = float(np.max(residuals, initial=0.0)) / lanczos.norm
    return NotConverged(
        f"{good} of the largest singular values are resolved after {lanczos.steps} steps; "
        "ask for fewer, or for method='dense'",
        residual=worst,
        iterations=lanczos.steps,
        solution=np.sqrt(np.maximum(values, 0.0)),
    )


def _distribution(
    ritz: Ritz, top: int, lanczos: BlockLanczos, matrix: RowMatrix, least: float
) -> Distribution:
    """The top eigenvalues one by one, and for each probe a quadrature of the others.

    What a probe has along the known eigenvectors is taken away: their mass is known.
    """
    values = np.maximum(ritz.values, 0.0)
    if len(values) == matrix.side:  # a small matrix: the basis is the whole space
        return all_known(values, matrix.columns)
    known = int(np.count_nonzero(values[:top] > least * values[0]))
    rest, mass = values[known:], (matrix.side - known) / matrix.columns
    end = float(values[known - 1]) ** 0.5
    rules = [gauss_rule(rest, row[known:], lanczos.steps) for row in ritz.weights]
    zero = ZERO_UNITS * lanczos.precision * float(values[0])
    measured = tuple(_through(*rule, mass, zero, end) for rule in rules)
    zeros = matrix.columns - matrix.side
    return Distribution(matrix.columns, zeros, values[:known], measured)


def _through(
    nodes: FloatArray, weights: FloatArray, mass: float, least: float, end: float
) -> MeasuredMass:
    """A cumulative function through the middle of every step of a quadrature.

    At a node the true function lies within that node's step (Chebyshev, Markov, Stieltjes).
    Nodes up to `least` are zeros. The function starts at 0 and ends at the known eigenvalues.
    """
    weights = mass * weights / np.sum(weights) if len(weights) else weights
    zero = nodes <= least
    nodes, steps = nodes[~zero], weights[~zero]
    start = float(np.sum(weights[zero]))
    heights = start + np.cumsum(steps) - 0.5 * steps
    return MeasuredMass(
        np.concatenate([[0.0], np.minimum(np.sqrt(nodes), end), [end]]),
        np.concatenate([[start], heights, [mass]]),
        np.concatenate([steps[:1], steps, steps[-1:]]) / 2.0 if len(steps) else np.zeros(2),
    )
