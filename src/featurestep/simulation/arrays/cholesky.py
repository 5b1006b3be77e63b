"""Cholesky factorisation in place of a matrix whose lower triangle is filled, by LAPACK."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

_BAND = 256  # rows that are copied at a time
Matrix = np.ndarray[Any, Any]


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
