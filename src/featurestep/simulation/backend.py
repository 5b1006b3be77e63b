"""The one place that knows which array library computes: SciPy's BLAS on the CPU, or torch.

All matrices are row-major. On the CPU every heavy operation goes through SciPy's own BLAS, never
NumPy's: the two wheels carry a thread pool each, and alternating between the pools halves the
speed of both.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from ..errors import InvalidProblem
from ..nonlinearity import Nonlinearity, UserFunction
from .failures import SingularSystem
from .streams import workers

Array = Any  # an array of the backend's library
DTYPES = ("float64", "float32")
TILE = 1 << 15  # elements of one piece of elementwise work, small enough to stay in cache


class Backend(Protocol):
    """What the experiment needs of an array library."""

    name: str
    dtype: str
    itemsize: int

    def empty(self, *shape: int) -> Array: ...
    def zeros(self, *shape: int) -> Array: ...
    def put(self, values: np.ndarray[Any, Any]) -> Array: ...
    def get(self, values: Array) -> np.ndarray[Any, Any]: ...
    def product(self, left: Array, right: Array, out: Array) -> Array: ...
    def add_product(self, out: Array, left: Array, right: Array) -> None: ...
    def add_gram(self, out: Array, F: Array) -> None: ...
    def outer_gram(self, F: Array) -> Array: ...
    def solve(self, gram: Array, shift: float, rhs: Array) -> Array: ...
    def each(self, f: Callable[..., None], arrays: Sequence[Array], parallel: bool) -> None: ...
    def value(self, f: Nonlinearity) -> Callable[[Array], Array]: ...
    def slope(self, f: Nonlinearity) -> Callable[[Array], Array]: ...
    def describe(self) -> dict[str, str]: ...


class CpuBackend:
    """NumPy arrays, SciPy's BLAS and LAPACK."""

    name = "cpu"

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.itemsize = np.dtype(dtype).itemsize
        sample = np.empty(1, dtype=dtype)
        self._gemm, self._syrk = linalg.get_blas_funcs(("gemm", "syrk"), (sample,))
        self._potrf, self._potrs = linalg.get_lapack_funcs(("potrf", "potrs"), (sample,))

    def empty(self, *shape: int) -> Array:
        """Uninitialised (C order)."""
        return np.empty(shape, dtype=self.dtype)

    def zeros(self, *shape: int) -> Array:
        """All 0 (C order)."""
        return np.zeros(shape, dtype=self.dtype)

    def put(self, values: np.ndarray[Any, Any]) -> Array:
        """From float64 on the host."""
        return np.ascontiguousarray(values, dtype=self.dtype)

    def get(self, values: Array) -> np.ndarray[Any, Any]:
        """To float64 on the host."""
        return np.asarray(values, dtype=np.float64)

    def product(self, left: Array, right: Array, out: Array) -> Array:
        """out = left · rightᵀ, for (m, k) and (n, k)."""
        self._into(out, self._gemm(1.0, right.T, left.T, trans_a=1, c=out.T, overwrite_c=1))
        return out

    def add_product(self, out: Array, left: Array, right: Array) -> None:
        """out += leftᵀ · right, for (k, m) and (k, n)."""
        done = self._gemm(1.0, right.T, left.T, trans_b=1, beta=1.0, c=out.T, overwrite_c=1)
        self._into(out, done)

    def add_gram(self, out: Array, F: Array) -> None:
        """Lower triangle of out += FᵀF: half the work of a product."""
        self._into(out, self._syrk(1.0, F.T, beta=1.0, c=out.T, overwrite_c=1, lower=0))

    def outer_gram(self, F: Array) -> Array:
        """Lower triangle of FFᵀ."""
        return self._syrk(1.0, F.T, trans=1, lower=0).T

    def solve(self, gram: Array, shift: float, rhs: Array) -> Array:
        """(gram + shift·I)⁻¹ rhs by Cholesky, from gram's lower triangle, which is kept."""
        shifted = gram.copy()
        shifted.flat[:: gram.shape[0] + 1] += shift
        factor, info = self._potrf(shifted.T, lower=0, overwrite_a=1, clean=0)
        pivots = np.abs(np.diagonal(factor))
        refuse_singular(info, float(pivots.min()), float(pivots.max()), shift, self.dtype)
        solution, _ = self._potrs(factor, rhs, lower=0)
        return solution

    def each(self, f: Callable[..., None], arrays: Sequence[Array], parallel: bool) -> None:
        """f(rows of every array …), in place, in pieces that stay in cache."""
        rows = len(arrays[0])
        widest = max(array[0].size for array in arrays) if rows else 1
        step = max(1, TILE // max(1, widest))

        def piece(start: int) -> None:
            with np.errstate(all="ignore"):  # what overflows is refused later, with its cause
                f(*(array[start : start + step] for array in arrays))

        if parallel:
            list(workers().map(piece, range(0, rows, step)))
        else:
            for start in range(0, rows, step):
                piece(start)

    def value(self, f: Nonlinearity) -> Callable[[Array], Array]:
        """σ itself."""
        return f

    def slope(self, f: Nonlinearity) -> Callable[[Array], Array]:
        """σ′."""
        return f.derivative

    def describe(self) -> dict[str, str]:
        """Versions and BLAS, for the record."""
        import scipy
        from threadpoolctl import threadpool_info

        pools = [p for p in threadpool_info() if p.get("user_api") == "blas"]
        blas = ", ".join(
            sorted({f"{p['internal_api']} {p['version']} ({p['num_threads']} threads)" for p in pools})
        )
        versions = {"numpy": np.__version__, "scipy": scipy.__version__}
        return {**versions, "python": platform.python_version(), "blas": blas}

    @staticmethod
    def _into(out: Array, result: Array) -> None:
        """A BLAS wrapper that had to copy did not write where it was told."""
        if not np.shares_memory(out, result):
            raise AssertionError("BLAS output was not written in place")


def refuse_singular(info: int, low: float, high: float, shift: float, dtype: str) -> None:
    """A factorisation that failed, or whose pivots span the working precision, has no answer."""
    if info == 0 and np.isfinite(high) and low > np.finfo(dtype).eps * high:
        return
    raise SingularSystem(
        f"the ridge system is singular to {dtype} precision: ridge·n = {shift:.3g} against a largest "
        f"pivot of {high**2:.3g}; raise the ridge"
    )


def parallel_safe(f: Nonlinearity) -> bool:
    """Whether f may run in several threads: a user's function may not."""
    base = getattr(f, "base", f)
    return not isinstance(base, UserFunction)


def make_backend(device: object, dtype: object) -> Backend:
    """The backend for `cpu`, `torch` (torch on the CPU) or `cuda`."""
    if dtype not in DTYPES:
        raise InvalidProblem("dtype", f"must be one of {', '.join(DTYPES)}", dtype)
    if device == "cpu":
        return CpuBackend(str(dtype))
    if device not in ("torch", "cuda"):
        raise InvalidProblem("device", "must be cpu, cuda or torch", device)
    from .torch_backend import TorchBackend

    return TorchBackend("cpu" if device == "torch" else "cuda", str(dtype))
