"""Ridge systems (G + shift·I)x = b: the cheaper way, LAPACK in place, and what has no answer.

Of a Gram matrix G the lower triangle is filled.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ...types import FloatArray
from ..failures import SingularSystem

CHOLESKY_FLOPS, EIGEN_FLOPS = 1 / 3, 9.0  # times m³
_BAND = 256  # rows that are copied at a time
Matrix = np.ndarray[Any, Any]


def by_eigenvectors(ridges: int, eigen_flops: float) -> bool:
    """Cost model of many ridges on one Gram matrix of size m: which way is cheaper.

    A Cholesky factorisation takes m³/3 flops for each ridge; one eigendecomposition takes as long
    as `eigen_flops` times m³, after which a ridge is nearly free.
    """
    return ridges > eigen_flops / CHOLESKY_FLOPS


def factor(A: Matrix) -> int:
    """Replace the lower triangle of A (row-major) by L with A = LLᵀ; 0, or where it failed."""
    if not A.flags.c_contiguous:
        raise ValueError("the matrix must be contiguous")
    # Row-major lower is column-major upper: A = UᵀU. Nothing is copied.
    _, info = _routine("potrf", A)(A.T, lower=0, overwrite_a=1, clean=0)
    return int(info)


def solve_factored(L: Matrix, rhs: Matrix) -> Matrix:
    """(LLᵀ)⁻¹ rhs, from the lower triangle that `factor` left."""
    out, _ = _routine("potrs", L)(L.T, np.array(rhs, dtype=L.dtype, ndmin=2), lower=0)
    return np.asarray(out)


def copy_lower(source: Matrix, target: Matrix) -> None:
    """The lower triangle, by bands of rows: half the memory traffic of a whole copy."""
    for start in range(0, len(source), _BAND):
        stop = start + _BAND
        target[start:stop, :stop] = source[start:stop, :stop]


def _routine(name: str, A: Matrix) -> Any:
    return import_module("scipy.linalg").get_lapack_funcs(name, (A,))


def refuse_indefinite(values: FloatArray, shift: float, dtype: str) -> None:
    """The same as `refuse_singular`, from the eigenvalues before the shift."""
    roots = np.sqrt(np.maximum(values + shift, 0.0))
    refuse_singular(0 if np.all(np.isfinite(values)) else 1, roots, shift, dtype)


def refuse_singular(info: int, pivots: FloatArray, shift: float, dtype: str) -> None:
    """A factorisation that failed, or has pivots made of rounding errors, has no answer.

    Rounding errors reach a few √m·eps of the largest squared pivot, m being the matrix's size.
    """
    lows, highs = pivots.min(axis=-1) ** 2, pivots.max(axis=-1) ** 2
    noise = 4.0 * pivots.shape[-1] ** 0.5 * float(np.finfo(dtype).eps)
    if info == 0 and np.all(np.isfinite(highs) & (lows > noise * highs)):
        return
    high = float(np.max(highs))
    raise SingularSystem(
        f"the ridge system is singular to {dtype} precision: ridge·n = {shift:.3g} against a "
        f"largest pivot of {high:.3g}; raise the ridge"
    )
