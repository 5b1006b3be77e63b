"""The dense route: every singular value, from the Gram matrix on the smaller side.

The Gram matrix squares: a singular value below about 1e-8 of the largest (3e-4 in float32) is
rounding error. That is enough for a density and for spikes, which are large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.types import FloatArray
from ..arrays.backend import Array, Backend
from ..network.readout import refuse_non_finite
from .distribution import Distribution, all_known
from .row_matrix import RowMatrix, VectorOverlaps


@dataclass(frozen=True)
class Found:
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


def dense_spectrum(backend: Backend, matrix: RowMatrix, top: int) -> Found:
    """All eigenvalues of MᵀM/scale, and the overlaps of the first `top` pairs."""
    overlaps = VectorOverlaps(backend, matrix)
    return from_gram(backend, matrix, gram_of(backend, matrix, overlaps), overlaps, top)


def from_gram(
    backend: Backend, matrix: RowMatrix, gram: Array, overlaps: VectorOverlaps, top: int
) -> Found:
    """The same from sums over all rows; the Gram matrix is used up."""
    refuse_non_finite(backend.solver, gram)
    values, vectors = backend.solver.eigen(gram, top)
    values = np.maximum(values, 0.0) / matrix.scale
    left, right = overlaps.of(vectors, values[:top])
    return Found(
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
