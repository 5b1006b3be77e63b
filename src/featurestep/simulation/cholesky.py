"""Cholesky factors of many matrices at once, one thread each.

A factorisation gains little from a second thread, so several ridges are factored side by side.
SciPy's own wrappers hold Python's lock; its documented C interface, called here, does not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from .streams import workers

_PREFIX = {"float64": "d", "float32": "s"}


def blas_threads() -> int:
    """How many threads SciPy's BLAS may use now."""
    pools = _controller().select(user_api="blas").info()
    return max((int(pool["num_threads"]) for pool in pools), default=1)


def factor(A: np.ndarray[Any, Any]) -> int:
    """Replace the lower triangle of A (row-major) by its Cholesky factor; LAPACK's info."""
    if not A.flags.c_contiguous:
        raise ValueError("the matrix must be contiguous")
    size, info = ctypes.c_int(A.shape[0]), ctypes.c_int(0)
    routine = _routine(str(A.dtype))
    # Row-major lower is column-major upper.
    routine(b"U", ctypes.byref(size), A.ctypes.data, ctypes.byref(size), ctypes.byref(info))
    return info.value


def side_by_side(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """Results of the tasks, run in as many threads as BLAS had, with BLAS held to one each."""
    with _controller().limit(limits=1, user_api="blas"):
        return list(workers().map(lambda task: task(), tasks))


@lru_cache(maxsize=1)
def _controller() -> Any:
    return import_module("threadpoolctl").ThreadpoolController()


@lru_cache(maxsize=2)
def _routine(dtype: str) -> Any:
    """LAPACK's potrf for a type, through scipy.linalg.cython_lapack."""
    capsule = import_module("scipy.linalg.cython_lapack").__pyx_capi__[f"{_PREFIX[dtype]}potrf"]
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    integer = ctypes.POINTER(ctypes.c_int)
    signature = ctypes.CFUNCTYPE(None, ctypes.c_char_p, integer, ctypes.c_void_p, integer, integer)
    return signature(pointer_of(capsule, name_of(capsule)))
