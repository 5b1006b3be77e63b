"""All eigenvalues of a large symmetric matrix and few of its vectors, from one reduction.

LAPACK's drivers give either all eigenvalues or a few pairs; asking twice would reduce the matrix
to tridiagonal form twice, which is nearly all of the work.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ...types import FloatArray

Matrix = np.ndarray[Any, Any]


def eigenvalues_and_top(A: Matrix, top: int) -> tuple[FloatArray, FloatArray]:
    """All eigenvalues, descending, and the unit vectors of the first `top`, as rows.

    From the lower triangle of A (row-major), which is used up. Absolute errors are of the order
    of the rounding error of the largest eigenvalue.
    """
    size = len(A)
    if size == 1:
        return np.array([float(A[0, 0])]), np.ones((1, 1))
    linalg = import_module("scipy.linalg")  # slow to load
    reduced, diagonal, beside, tau = _reduce(linalg, A)
    values = linalg.eigh_tridiagonal(
        diagonal, beside, eigvals_only=True, lapack_driver="sterf", check_finite=False
    )
    _, columns = linalg.eigh_tridiagonal(
        diagonal, beside, select="i", select_range=(size - top, size - 1), check_finite=False
    )
    vectors = np.ascontiguousarray(columns.T[::-1])  # (top, size)
    _transform_back(vectors, reduced, tau)
    return np.asarray(values[::-1]), vectors


def _reduce(linalg: Any, A: Matrix) -> tuple[Matrix, FloatArray, FloatArray, FloatArray]:
    """A = Q T Qᵀ in place: reflectors above A's first superdiagonal (column-major), T, factors."""
    reduce, ask = linalg.get_lapack_funcs(("sytrd", "sytrd_lwork"), (A,))
    room = int(ask(len(A), lower=0)[0].real)
    # Row-major lower is column-major upper.
    reduced, *rest, info = reduce(A.T, lower=0, lwork=room, overwrite_a=1)
    if info != 0:
        raise AssertionError(f"sytrd refused its argument {-info}")
    diagonal, beside, tau = (np.asarray(part, dtype=np.float64) for part in rest)
    return reduced, diagonal, beside, tau


def _transform_back(vectors: FloatArray, reduced: Matrix, tau: FloatArray) -> None:
    """vectors ← Q · vectors, Q = H_{m−1} … H_1 and H_i = 1 − τ_i v vᵀ, for vectors as rows."""
    for i, factor in enumerate(tau):
        v = np.array(reduced[: i + 1, i + 1], dtype=np.float64)
        v[i] = 1.0
        part = vectors[:, : i + 1]
        part -= np.outer(part @ v * factor, v)
