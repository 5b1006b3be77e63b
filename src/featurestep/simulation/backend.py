"""The one place that knows which array library computes: SciPy's BLAS on the CPU, or torch.

All matrices are row-major. On the CPU every heavy operation goes through SciPy's own BLAS, never
NumPy's: the two wheels carry a thread pool each, and alternating between the pools halves the
speed of both. A Gram matrix has its lower triangle filled; at the end are the cheaper way to solve
its ridge systems, what of them has no answer, and its eigenvalues.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.checks import one_of
from ..core.errors import InvalidProblem, SingularSystem
from ..core.threads import blas_libraries, let_idle_threads_sleep, workers
from ..core.types import FloatArray
from ..functions.nonlinearity import Nonlinearity, UserFunction

CHOLESKY_FLOPS, EIGEN_FLOPS = 1 / 3, 9.0  # times m³
HostMatrix = np.ndarray[Any, Any]
USABLE_SHARE = 0.9  # of what is free now


@dataclass(frozen=True)
class Limits:
    """How a backend likes its work cut, in bytes where nothing else is said."""

    buffers: int = 64 << 20  # row buffers aim at this much together
    grams: int = 2 << 30  # Gram matrices held at once, unless max_memory says otherwise
    rows: int = 1024  # of a block, at most
    workspace: int = 12 << 20  # of BLAS and of pieces of elementwise work
    batch: int = 0  # draws of small networks that are computed at once aim at this much together
    most: int | None = None  # what a device has: a run may take no more


def usable_memory() -> int | None:
    """Bytes: a share of what is free on the machine and in its control group; None if unknown."""
    found = [size for size in (_machine(), _control_group()) if size is not None]
    return int(USABLE_SHARE * min(found)) if found else None


def _machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = {name: text for name, _, text in (line.partition(":") for line in lines)}
        return int(sizes["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        pass
    try:  # what there is, where nothing tells what is free
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _control_group() -> int | None:
    """What is left of a container's limit."""
    folder = Path("/sys/fs/cgroup")
    for most, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            return max(0, int((folder / most).read_text()) - int((folder / used).read_text()))
        except (OSError, ValueError):  # no such file, or "max": no limit
            continue
    return None


Array = Any  # an array of the backend's library
DTYPES = ("float64", "float32", "mixed")
TILE_ELEMENTS = 1 << 16  # elements of one piece of elementwise work, small enough to stay in cache
SLICE_ROWS = 256  # rows of a matrix multiplied elementwise at a time, to keep temporaries small


class Factored(NamedTuple):
    """A solved system, and what its factorisation went through."""

    solution: Array
    pivots: Array
    info: Array  # 0, or the row where it failed


class Backend:
    """The operations of an experiment, on NumPy arrays with SciPy's BLAS and LAPACK.

    `TorchBackend` has the same ones for tensors.
    """

    name = "cpu"
    xp: Any = np  # the module of its arrays
    eigen_flops = EIGEN_FLOPS
    at_once = 1  # factorisations side by side, each on a copy of its own

    def __init__(self, dtype: str, solver: Backend | None = None) -> None:
        self.dtype = dtype
        self.solver = self if solver is None else solver  # for Gram matrices and what follows
        self.itemsize = np.dtype(dtype).itemsize
        self._like: dict[str, Any] = {"dtype": np.dtype(dtype)}
        let_idle_threads_sleep()
        linalg = import_module("scipy.linalg")  # slow to load
        sample = (np.empty(1, dtype=dtype),)
        self._gemm, self._syrk = linalg.get_blas_funcs(("gemm", "syrk"), sample)
        self._potrf, self._potrs = linalg.get_lapack_funcs(("potrf", "potrs"), sample)
        self._eigh: Any = linalg.eigh
        self._qr: Any = linalg.qr

    @property
    def limits(self) -> Limits:
        """What is free on the machine now, at most."""
        return Limits(most=usable_memory())

    @property
    def precision(self) -> str:
        """The dtype by which it was asked for."""
        return self.dtype if self.solver is self else "mixed"

    def __reduce__(self) -> tuple[Any, ...]:
        return make_backend, (self.name, self.precision)

    def empty(self, *shape: int) -> Array:
        """Uninitialised (C order)."""
        return self.xp.empty(shape, **self._like)

    def zeros(self, *shape: int) -> Array:
        """All 0 (C order)."""
        return self.xp.zeros(shape, **self._like)

    def put(self, values: np.ndarray[Any, Any]) -> Array:
        """From float64 on the host."""
        return np.ascontiguousarray(values, dtype=self.dtype)

    def get(self, values: Array) -> np.ndarray[Any, Any]:
        """To float64 on the host."""
        return np.asarray(values, dtype=np.float64)

    def wide(self, values: Array) -> Array:
        """The same in float64, where the arrays live."""
        return np.asarray(values, dtype=np.float64)

    def cast(self, values: Array) -> Array:
        """The same in this backend's precision; not copied where it is so already."""
        return np.asarray(values, dtype=self.dtype)

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        """Either, elementwise."""
        return self.xp.where(condition, yes, no)

    def stack(self, arrays: Sequence[Array]) -> Array:
        """Along a new last axis."""
        return self.xp.stack(list(arrays), axis=-1)

    def join(self, arrays: Sequence[Array], axis: int) -> Array:
        """One after the other, along an axis that they have."""
        return self.xp.concatenate(list(arrays), axis=axis)

    def inner(self, left: Array, right: Array) -> Array:
        """⟨M, K⟩ of two matrices, in float64."""
        pieces = range(0, len(left), SLICE_ROWS)
        products = (left[i : i + SLICE_ROWS] * right[i : i + SLICE_ROWS] for i in pieces)
        return np.float64(sum(float(piece.sum()) for piece in products))

    def product(self, left: Array, right: Array, out: Array | None = None) -> Array:
        """out = left · rightᵀ, for (m, k) and (n, k)."""
        out = self.empty(*left.shape[:-1], right.shape[-2]) if out is None else out
        self._into(out, self._gemm(1.0, right.T, left.T, trans_a=1, c=out.T, overwrite_c=1))
        return out

    def add_product(self, out: Array, left: Array, right: Array) -> None:
        """out += leftᵀ · right, for (k, m) and (k, n)."""
        done = self._gemm(1.0, right.T, left.T, trans_b=1, beta=1.0, c=out.T, overwrite_c=1)
        self._into(out, done)

    def product_across(self, left: Array, right: Array) -> Array:
        """leftᵀ · right, for (k, m) and (k, n)."""
        out = self.zeros(*left.shape[:-2], left.shape[-1], right.shape[-1])
        self.add_product(out, left, right)
        return out

    def add_gram(self, out: Array, F: Array) -> None:
        """Lower triangle of out += FᵀF: half the work of a product."""
        self._into(out, self._syrk(1.0, F.T, beta=1.0, c=out.T, overwrite_c=1, lower=0))

    def outer_gram(self, F: Array) -> Array:
        """Lower triangle of FFᵀ."""
        return self._syrk(1.0, F.T, trans=1, lower=0).T

    def solve(
        self, gram: Array, shifts: list[float], rhs: list[Array], overwrite: bool
    ) -> list[Array]:
        """(gram + shift·I)⁻¹ rhs for each shift, from gram's lower triangle.

        With `overwrite` the gram matrix may be used up.
        """
        pairs = list(zip(shifts, rhs, strict=True))
        if by_eigenvectors(len(shifts), self.eigen_flops):
            values, Q = self.eigenbasis(gram)
            refuse_indefinite(self.get(values), min(shifts), self.dtype)
            return [self._in_basis(Q, values + shift, b) for shift, b in pairs]
        if overwrite and len(pairs) == 1:
            found: Iterable[Factored] = [self._factored(gram, *pairs[0])]
        else:
            found = self._factored_apart(gram, pairs)
        solutions = []
        for shift, each in zip(shifts, found, strict=True):
            refuse_singular(self.get(each.info), self.get(each.pivots), shift, self.dtype)
            solutions.append(each.solution)
        return solutions

    def _factored_apart(self, gram: Array, pairs: list[tuple[float, Array]]) -> Iterable[Factored]:
        """Each on a copy of its own; the gram matrix is kept."""
        return (self._factored(gram.copy(), *pair) for pair in pairs)

    def _factored(self, A: Array, shift: float, rhs: Array) -> Factored:
        """In place."""
        U, info = self.cholesky(A, shift)
        return Factored(self.cholesky_solve(U, rhs), np.abs(np.diagonal(A)), info)

    def cholesky(self, A: Array, shift: float) -> tuple[Array, Array]:
        """The factor U of A + shift·I = UᵀU, from A's lower triangle, in place; and 0 if it exists.

        What is lower in rows is upper in columns, as the library wants it.
        """
        A.flat[:: len(A) + 1] += shift
        U, info = self._potrf(A.T, lower=0, overwrite_a=1, clean=0)
        self._into(A, U)
        return U, info

    def cholesky_solve(self, U: Array, rhs: Array) -> Array:
        """(UᵀU)⁻¹ rhs."""
        return self._potrs(U, rhs, lower=0)[0]

    def _in_basis(self, Q: Array, values: Array, rhs: Array) -> Array:
        """Q diag(1/values) Qᵀ rhs."""
        inside = self._gemm(1.0, Q, rhs, trans_a=1)
        inside /= values[:, None]
        return self._gemm(1.0, Q, inside)

    def orthonormal(self, Z: Array) -> tuple[FloatArray, Array]:
        """Z = L · Q with orthonormal rows Q and a small L, on the host; Z has few rows."""
        Q, R = self._qr(Z.T, mode="economic", check_finite=False)
        return np.asarray(R.T), np.ascontiguousarray(Q.T)

    def eigenbasis(self, gram: Array) -> tuple[Array, Array]:
        """All eigenvalues, ascending, and the vectors as columns, from the lower triangle."""
        values, Q = self._eigh(gram, lower=True, check_finite=False, driver="evd")
        return values, Q

    def eigen(self, gram: Array, top: int) -> tuple[FloatArray, FloatArray]:
        """All eigenvalues, descending, and the vectors of the first `top`, as rows.

        From the lower triangle, which is used up.
        """
        return eigenvalues_and_top(gram, top)

    def each(self, f: Callable[..., None], arrays: Sequence[Array], parallel: bool) -> None:
        """f(rows of every array …), in place, in pieces that stay in cache."""
        rows = len(arrays[0])
        widest = max(array[0].size for array in arrays) if rows else 1
        step = max(1, TILE_ELEMENTS // max(1, widest))
        team = workers()
        shares = team.size if parallel else 1

        def share(first: int) -> None:
            with np.errstate(all="ignore"):  # what overflows is refused later, with its cause
                for start in range(first * step, rows, shares * step):
                    f(*(array[start : start + step] for array in arrays))

        if parallel:
            team.map(share, range(shares))
        else:
            share(0)

    def value(self, f: Nonlinearity, *, slope: bool = False) -> Callable[[Array], Array]:
        """σ itself, or σ′."""
        return f.derivative if slope else f

    def factors(self, ridges: int) -> int:
        """Matrices of the Gram's size alive during a solve with `overwrite`, itself included."""
        if by_eigenvectors(ridges, self.eigen_flops):
            return 4  # itself, the vectors and their workspace of two
        return 1 if ridges == 1 else 1 + min(ridges, self.at_once)

    def synchronise(self) -> None:
        """Wait for what was asked for; here nothing is ever outstanding."""

    def describe(self) -> dict[str, str]:
        """Versions and BLAS, for the record."""
        import scipy

        versions = {"numpy": np.__version__, "scipy": scipy.__version__}
        return {**versions, "python": platform.python_version(), "blas": blas_libraries()}

    @staticmethod
    def _into(out: Array, result: Array) -> None:
        """A BLAS wrapper that had to copy did not write where it was told."""
        if not np.shares_memory(out, result):
            raise AssertionError("BLAS output was not written in place")


def parallel_safe(f: Nonlinearity) -> bool:
    """Whether f may run in several threads: a user's function may not."""
    base = getattr(f, "base", f)
    return not isinstance(base, UserFunction)


def make_backend(device: object, dtype: object) -> Backend:
    """The backend for `cpu`, `torch` (torch on the CPU) or `cuda`."""
    one_of("dtype", dtype, DTYPES)
    working = "float32" if dtype == "mixed" else str(dtype)
    if device == "cpu":
        return Backend(working, Backend("float64") if dtype == "mixed" else None)
    if device not in ("torch", "cuda"):
        raise InvalidProblem("device", "must be cpu, cuda or torch", device)
    from .torch_backend import TorchBackend

    where = "cpu" if device == "torch" else "cuda"
    return TorchBackend(
        where, working, TorchBackend(where, "float64") if dtype == "mixed" else None
    )


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


def eigenvalues_and_top(A: HostMatrix, top: int) -> tuple[FloatArray, FloatArray]:
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


def _reduce(linalg: Any, A: HostMatrix) -> tuple[HostMatrix, FloatArray, FloatArray, FloatArray]:
    """A = Q T Qᵀ in place: reflectors above A's first superdiagonal (column-major), T, factors."""
    reduce, ask = linalg.get_lapack_funcs(("sytrd", "sytrd_lwork"), (A,))
    room = int(ask(len(A), lower=0)[0].real)
    # Row-major lower is column-major upper.
    reduced, *rest, info = reduce(A.T, lower=0, lwork=room, overwrite_a=1)
    if info != 0:
        raise AssertionError(f"sytrd refused its argument {-info}")
    diagonal, beside, tau = (np.asarray(part, dtype=np.float64) for part in rest)
    return reduced, diagonal, beside, tau


def _transform_back(vectors: FloatArray, reduced: HostMatrix, tau: FloatArray) -> None:
    """vectors ← Q · vectors, Q = H_{m−1} … H_1 and H_i = 1 − τ_i v vᵀ, for vectors as rows."""
    for i, factor in enumerate(tau):
        v = np.array(reduced[: i + 1, i + 1], dtype=np.float64)
        v[i] = 1.0
        part = vectors[:, : i + 1]
        part -= np.outer(part @ v * factor, v)
