"""Cholesky factorisation in place, by blocks, and of several matrices side by side.

In LAPACK's own routine the threads of one factorisation wait for each other. Here nearly all
work is one symmetric rank-k update for each block, and several matrices are factored
at once with one thread each, so that no thread waits for another. SciPy's Python wrappers hold
Python's lock and cannot work on a part of a matrix in place; its C interface (cython_blas and
cython_lapack, whose function pointers SciPy publishes for such use) does neither.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from ...threads import crew

BLOCK = 64
_PREFIX = {"float64": "d", "float32": "s"}
_SCALAR: dict[str, Any] = {"float64": ctypes.c_double, "float32": ctypes.c_float}
Matrix = np.ndarray[Any, Any]
_local = threading.local()


def factor(A: Matrix) -> int:
    """Replace the lower triangle of A (row-major) by L with A = LLᵀ; 0, or where it failed."""
    if not A.flags.c_contiguous:
        raise ValueError("the matrix must be contiguous")
    size = len(A)
    spare = _spare(size, str(A.dtype))
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        failed = _factor_corner(A, start, stop)
        if failed:
            return start + failed
        if stop < size:
            _update(A, start, stop, spare[: size - stop])
    return 0


def copy_lower(source: Matrix, target: Matrix) -> None:
    """The lower triangle, by bands of rows: half the memory traffic of a whole copy."""
    for start in range(0, len(source), 4 * BLOCK):
        stop = start + 4 * BLOCK
        target[start:stop, :stop] = source[start:stop, :stop]


def _spare(size: int, dtype: str) -> Matrix:
    """Room for one panel, kept for each thread: fresh memory costs more than its use."""
    kept: Matrix | None = getattr(_local, "spare", None)
    if kept is None or len(kept) < size or str(kept.dtype) != dtype:
        kept = np.empty((size, BLOCK), dtype=dtype)
        _local.spare = kept
    return kept


def solve_factored(L: Matrix, rhs: Matrix) -> Matrix:
    """(LLᵀ)⁻¹ rhs, from the lower triangle that `factor` left."""
    out: Matrix = np.array(rhs, dtype=L.dtype, order="F", ndmin=2)
    info, size = ctypes.c_int(0), _int(len(L))
    call = _routine("potrs", str(L.dtype))
    target = ctypes.c_void_p(out.ctypes.data)
    call(b"U", size, _int(out.shape[1]), _at(L), size, target, size, ctypes.byref(info))
    return out


def _factor_corner(A: Matrix, start: int, stop: int) -> int:
    info = ctypes.c_int(0)
    # Row-major lower is column-major upper: A = UᵀU.
    call = _routine("potrf", str(A.dtype))
    call(b"U", _int(stop - start), _at(A, start, start), _int(len(A)), ctypes.byref(info))
    return info.value


def _update(A: Matrix, start: int, stop: int, panel: Matrix) -> None:
    """L21 = A21 L11⁻ᵀ by a product with the small inverse, then A22 −= L21 L21ᵀ."""
    dtype, ld = str(A.dtype), _int(len(A))
    width, rest = _int(stop - start), _int(len(A) - stop)
    one, minus, zero = (ctypes.byref(_SCALAR[dtype](v)) for v in (1.0, -1.0, 0.0))
    inverse = np.tril(A[start:stop, start:stop])
    info = ctypes.c_int(0)
    _routine("trtri", dtype)(b"U", b"N", width, _at(inverse), width, ctypes.byref(info))
    panel[:] = A[stop:, start:stop]
    below = _at(A, stop, start)
    product = (one, _at(inverse), width, _at(panel), width, zero, below, ld)
    _routine("gemm", dtype)(b"T", b"N", width, rest, width, *product)
    _routine("syrk", dtype)(b"U", b"T", rest, width, minus, below, ld, one, _at(A, stop, stop), ld)


def _int(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


def _at(A: Matrix, row: int = 0, column: int = 0) -> ctypes.c_void_p:
    return ctypes.c_void_p(A.ctypes.data + A.itemsize * (row * A.shape[1] + column))


@lru_cache(maxsize=8)
def _routine(name: str, dtype: str) -> Any:
    """A routine of BLAS or LAPACK as a C function."""
    module = "cython_lapack" if name in ("potrf", "potrs", "trtri") else "cython_blas"
    capsule = import_module(f"scipy.linalg.{module}").__pyx_capi__[_PREFIX[dtype] + name]
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(None)(pointer_of(capsule, name_of(capsule)))


def blas_threads() -> int:
    """How many threads BLAS may use now."""
    pools = _controller().info()
    return max((int(p["num_threads"]) for p in pools if p["user_api"] == "blas"), default=1)


def side_by_side(tasks: Sequence[Callable[[], Any]], threads: int) -> list[Any]:
    """Results of the tasks, run in so many threads with BLAS held to one in each."""
    with _controller().limit(limits=1, user_api="blas"):
        return crew(threads).map(lambda task: task(), tasks)


@lru_cache(maxsize=1)
def _controller() -> Any:
    return import_module("threadpoolctl").ThreadpoolController()
