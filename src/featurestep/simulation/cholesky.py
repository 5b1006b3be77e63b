"""Cholesky factorisation in place, by blocks, and of many matrices side by side.

LAPACK's own routine reaches about half the rate of a matrix product here; a right-looking
factorisation whose work is nearly all one symmetric rank-k update reaches three quarters. SciPy's
Python wrappers cannot work on a part of a matrix in place; its C interface (cython_blas and
cython_lapack, whose function pointers SciPy publishes for this use) can, and does not hold
Python's lock. So several matrices are factored at once with one thread each, which is as fast on
a quiet machine and far faster on a busy one, where threads of one factorisation wait for each
other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

BLOCK = 256
_PREFIX = {"float64": "d", "float32": "s"}
_SCALAR: dict[str, Any] = {"float64": ctypes.c_double, "float32": ctypes.c_float}


def factor(A: np.ndarray[Any, Any]) -> int:
    """Replace the lower triangle of A (row-major) by L with A = LLᵀ; 0, or where it failed."""
    if not A.flags.c_contiguous:
        raise ValueError("the matrix must be contiguous")
    dtype, size = str(A.dtype), len(A)
    ld = ctypes.byref(ctypes.c_int(size))
    one, minus = (ctypes.byref(_SCALAR[dtype](value)) for value in (1.0, -1.0))
    info = ctypes.c_int(0)
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        width, rest = (ctypes.byref(ctypes.c_int(v)) for v in (stop - start, size - stop))
        corner, panel, trailing = (
            ctypes.c_void_p(A.ctypes.data + A.itemsize * (row * size + column))
            for row, column in ((start, start), (stop, start), (stop, stop))
        )
        # Row-major lower is column-major upper: A = UᵀU.
        _routine("potrf", dtype)(b"U", width, corner, ld, ctypes.byref(info))
        if info.value:
            return start + info.value
        if stop < size:
            solve, update = _routine("trsm", dtype), _routine("syrk", dtype)
            solve(b"L", b"U", b"T", b"N", width, rest, one, corner, ld, panel, ld)
            update(b"U", b"T", rest, width, minus, panel, ld, one, trailing, ld)
    return 0


def blas_threads() -> int:
    """How many threads BLAS may use now."""
    pools = _controller().info()
    return max((int(p["num_threads"]) for p in pools if p["user_api"] == "blas"), default=1)


def side_by_side(tasks: Sequence[Callable[[], Any]], threads: int) -> list[Any]:
    """Results of the tasks, run in so many threads with BLAS held to one in each."""
    with _controller().limit(limits=1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda task: task(), tasks))


@lru_cache(maxsize=1)
def _controller() -> Any:
    return import_module("threadpoolctl").ThreadpoolController()


@lru_cache(maxsize=8)
def _routine(name: str, dtype: str) -> Any:
    """A routine of BLAS or LAPACK as a C function."""
    module = "cython_lapack" if name == "potrf" else "cython_blas"
    capsule = import_module(f"scipy.linalg.{module}").__pyx_capi__[_PREFIX[dtype] + name]
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(None)(pointer_of(capsule, name_of(capsule)))
