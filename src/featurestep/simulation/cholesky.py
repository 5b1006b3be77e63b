"""Cholesky factorisation in place, of many matrices side by side.

One factorisation with two threads reaches less than half of a matrix product's rate; two of them
at once with one thread each reach about two thirds. SciPy's Python wrappers hold Python's lock
while they work. Its C interface (cython_lapack, whose function pointers SciPy publishes for such
use) does not, and works in place.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

_PREFIX = {"float64": "d", "float32": "s"}


def factor(A: np.ndarray[Any, Any]) -> int:
    """Replace the lower triangle of A (row-major) by L with A = LLᵀ; 0, or where it failed."""
    if not A.flags.c_contiguous:
        raise ValueError("the matrix must be contiguous")
    info, size = ctypes.c_int(0), ctypes.byref(ctypes.c_int(len(A)))
    # Row-major lower is column-major upper: A = UᵀU.
    _potrf(str(A.dtype))(b"U", size, ctypes.c_void_p(A.ctypes.data), size, ctypes.byref(info))
    return info.value


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


@lru_cache(maxsize=2)
def _potrf(dtype: str) -> Any:
    """LAPACK's factorisation as a C function."""
    capsule = import_module("scipy.linalg.cython_lapack").__pyx_capi__[_PREFIX[dtype] + "potrf"]
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(None)(pointer_of(capsule, name_of(capsule)))
