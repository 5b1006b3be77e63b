"""A Gram matrix G, of which the lower triangle is filled: ridge systems, and eigenvalues.

Of systems (G + shift·I)x = b: the cheaper way, and what has no answer. Of the
spectrum, all eigenvalues and few vectors from one reduction.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ...core.errors import SingularSystem
from ...core.types import FloatArray

CHOLESKY_FLOPS, EIGEN_FLOPS = 1 / 3, 9.0  # times m³
Matrix = np.ndarray[Any, Any]


def by_eigenvectors(ridges: int, eigen_flops: float) -> bool:
    """Cost model of many ridges on one Gram matrix of size m: which way is cheaper.

    A Cholesky factorisation takes m³/3 flops for each ridge; one eigendecomposition takes as long
    as `eigen_flops` times m³, after which a ridge is nearly free.
    """
    return ridges > eigen_flops / CHOLESKY_FLOPS


def refuse_indefinite(values: FloatArray, shift: float, dtype: str) -> None:
    """The same as `refuse_singular`, from the eigenvalues before the shift."""
    roots = np.sqrt(np.maximum(values + shift, 0.0))
    refuse_singular(~np.isfinite(values), roots, shift, dtype)


def refuse_singular(failed: Any, pivots: FloatArray, shift: float, dtype: str) -> None:
    """A factorisation that failed, or has pivots made of rounding errors, has no answer.

    Rounding errors reach a few √m·eps of the largest squared pivot, m being the matrix's size.
    """
    lows, highs = pivots.min(axis=-1) ** 2, pivots.max(axis=-1) ** 2
    noise = 4.0 * pivots.shape[-1] ** 0.5 * float(np.finfo(dtype).eps)
    if not np.any(failed) and np.all(np.isfinite(highs) & (lows > noise * highs)):
        return
    high = float(np.max(highs))
    raise SingularSystem(
        f"the ridge system is singular to {dtype} precision: ridge·n = {shift:.3g} against a "
        f"largest pivot of {high:.3g}; raise the ridge"
    )


def eigenvalues_and_top(A: Matrix, top: int) -> tuple[FloatArray, FloatArray]:
    """All eigenvalues, descending, and the unit vectors of the first `top`, as rows.

    From the lower triangle of A (row-major), which is used up. Absolute errors are of the order
    of the rounding error of the largest eigenvalue.

    LAPACK's drivers give either all eigenvalues or a few pairs; asking twice would reduce the
    matrix to tridiagonal form twice, which is nearly all of the work.
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
