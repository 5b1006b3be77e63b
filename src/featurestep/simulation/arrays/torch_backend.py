"""The experiment on torch tensors: a GPU, or torch's own CPU kernels.

Every operation takes matrices with further axes in front: several draws at once. Work is queued
on the device in order and the host waits for none of it until it asks for numbers.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ...errors import InvalidProblem
from ...functions.nonlinearity import Nonlinearity
from .backend import Array, make_backend
from .gram import EIGEN_FLOPS, by_eigenvectors, refuse_indefinite, refuse_singular
from .memory import SHARE, Limits, usable_memory
from .torch_functions import evaluator

STRIPS, LEAST_STRIP = 8, 512  # of a Gram matrix's lower triangle, and the least width of one
CUDA_EIGEN_FLOPS = 20.0  # an eigendecomposition takes as long as 60 factorisations there
LANES = 2  # factorisations side by side on a GPU: one alone leaves much of it idle
PIECE_BYTES = {"cuda": 256 << 20, "torch": 1 << 20}  # of elementwise work done at a time


class _Factored(NamedTuple):
    """A solved system, and what its factorisation went through."""

    solution: Array
    pivots: Array
    info: Array


class TorchBackend:
    """Torch tensors on one device."""

    def __init__(self, device: str, dtype: str, solver: TorchBackend | None = None) -> None:
        try:
            torch: Any = import_module("torch")
        except ImportError:
            rule = "needs torch: pip install 'featurestep[gpu]'"
            raise InvalidProblem("device", rule, device) from None
        if device == "cuda" and not torch.cuda.is_available():
            raise InvalidProblem("device", "needs a CUDA GPU that torch can see", device)
        self.name = device if device == "cuda" else "torch"
        self.dtype = dtype
        self.itemsize = np.dtype(dtype).itemsize
        self.solver = self if solver is None else solver
        self.torch = torch
        self.device = torch.device(device)
        self.eigen_flops = CUDA_EIGEN_FLOPS if device == "cuda" else EIGEN_FLOPS
        self._like = {"dtype": getattr(torch, dtype), "device": self.device}
        self._wide = {"dtype": torch.float64, "device": self.device}
        self._scratch: list[Array] = []
        self._lanes = [torch.cuda.Stream(self.device) for _ in range(LANES * (device == "cuda"))]

    @property
    def limits(self) -> Limits:
        """On a GPU, shares of what no one holds now, or torch holds and does not use."""
        if self.name != "cuda":
            return Limits(batch=64 << 20, most=usable_memory())
        cuda = self.torch.cuda
        unused = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        free = int(SHARE * (cuda.mem_get_info(self.device)[0] + unused))
        return Limits(
            buffers=free // 8,
            grams=free // 2,
            rows=8192,
            workspace=5 * PIECE_BYTES["cuda"],
            batch=free // 4,
            most=free,
        )

    @property
    def precision(self) -> str:
        """The dtype by which it was asked for."""
        return self.dtype if self.solver is self else "mixed"

    def __reduce__(self) -> tuple[Any, ...]:
        return make_backend, (self.name, self.precision)

    def factors(self, ridges: int) -> int:
        """Matrices of the Gram's size alive during a solve with `overwrite`, itself included."""
        if by_eigenvectors(ridges, self.eigen_flops):
            return 4
        return 1 if ridges == 1 else 1 + min(ridges, max(1, len(self._lanes)))

    def synchronise(self) -> None:
        """Wait for what was asked for."""
        if self.name == "cuda":
            self.torch.cuda.synchronize(self.device)

    def empty(self, *shape: int) -> Array:
        """Uninitialised."""
        return self.torch.empty(shape, **self._like)

    def zeros(self, *shape: int) -> Array:
        """All 0."""
        return self.torch.zeros(shape, **self._like)

    def put(self, values: np.ndarray[Any, Any]) -> Array:
        """From float64 on the host."""
        return self.torch.from_numpy(np.array(values)).to(**self._like)

    def get(self, values: Array) -> np.ndarray[Any, Any]:
        """To float64 on the host."""
        return np.asarray(values.cpu().numpy(), dtype=np.float64)

    def wide(self, values: Array) -> Array:
        """The same in float64 on the device, from there or from the host."""
        if isinstance(values, np.ndarray):
            values = self.torch.from_numpy(values)
        return values.to(**self._wide)

    def cast(self, values: Array) -> Array:
        """The same in this backend's precision; not copied where it is so already."""
        return values.to(self._like["dtype"])

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        """Either, elementwise."""
        return self.torch.where(condition, yes, no)

    def stack(self, arrays: Sequence[Array]) -> Array:
        """Along a new last axis."""
        return self.torch.stack(list(arrays), dim=-1)

    def join(self, arrays: Sequence[Array], axis: int) -> Array:
        """One after the other, along an axis that they have."""
        return self.torch.cat(list(arrays), dim=axis)

    def inner(self, left: Array, right: Array) -> Array:
        """⟨M, K⟩ of matrices, in float64."""
        step = self._piece(left)
        pieces = zip(left.split(step, -2), right.split(step, -2), strict=True)
        return sum((a * b).sum((-2, -1), dtype=self.torch.float64) for a, b in pieces)

    def product(self, left: Array, right: Array, out: Array) -> Array:
        """out = left · rightᵀ."""
        return self.torch.matmul(left, right.mT, out=out)

    def add_product(self, out: Array, left: Array, right: Array) -> None:
        """out += leftᵀ · right."""
        if out.dim() == 2:
            out.addmm_(left.mT, right)
        else:
            out.baddbmm_(left.mT, right)

    def add_gram(self, out: Array, F: Array, *, fresh: bool = False) -> None:
        """Lower triangle of out += FᵀF, or of out = FᵀF if fresh.

        By strips, each as long as the triangle is there: little more than half of a product.
        """
        keep = 0.0 if fresh else 1.0
        if out.dim() > 2:
            out.baddbmm_(F.mT, F, beta=keep)
            return
        for start, stop in _strips(len(out)):
            out[start:stop, :stop].addmm_(F[:, start:stop].T, F[:, :stop], beta=keep)

    def outer_gram(self, F: Array) -> Array:
        """Lower triangle of FFᵀ."""
        if F.dim() > 2:
            return F @ F.mT
        out = self.empty(len(F), len(F))
        for start, stop in _strips(len(F)):
            self.torch.mm(F[start:stop], F[:stop].T, out=out[start:stop, :stop])
        return out

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
            return [Q @ ((Q.mT @ b) / (values + shift)[..., None]) for shift, b in pairs]
        if overwrite and len(pairs) == 1:
            found = [self._factored(gram, *pairs[0])]
        else:
            found = self._side_by_side(gram, pairs)
        for shift, each in zip(shifts, found, strict=True):
            refuse_singular(int(each.info.max()), self.get(each.pivots), shift, self.dtype)
        return [each.solution for each in found]

    def _side_by_side(self, gram: Array, pairs: list[tuple[float, Array]]) -> list[_Factored]:
        """Factorisations in turn on the lanes, each on a copy of its own; none is waited for."""
        lanes, cuda = self._lanes[: len(pairs)], self.torch.cuda
        copies = self._copies(gram, max(1, len(lanes)))
        if not lanes:
            return [self._factored(copies[0].copy_(gram), *pair) for pair in pairs]
        here, found = cuda.current_stream(self.device), []
        for lane in lanes:
            lane.wait_stream(here)
        for place, pair in enumerate(pairs):
            turn = place % len(lanes)
            with cuda.stream(lanes[turn]):
                found.append(self._factored(copies[turn].copy_(gram), *pair))
            for array in found[-1]:
                array.record_stream(here)
        for lane in lanes:
            here.wait_stream(lane)
        return found

    def _copies(self, gram: Array, count: int) -> list[Array]:
        """Matrices like this one, in memory that is kept from call to call."""
        if len(self._scratch) < count or self._scratch[0].shape != gram.shape:
            self._scratch = []  # freed before the next are asked for
            self._scratch = [self.empty(*gram.shape) for _ in range(count)]
        return self._scratch

    def _factored(self, A: Array, shift: float, rhs: Array) -> _Factored:
        """In place: what is lower in rows is upper in columns, as the library wants it."""
        A.diagonal(dim1=-2, dim2=-1).add_(shift)
        U = A.mT
        info = self.torch.empty(A.shape[:-2], dtype=self.torch.int32, device=self.device)
        self.torch.linalg.cholesky_ex(U, upper=True, out=(U, info))
        pivots = U.diagonal(dim1=-2, dim2=-1).abs()
        return _Factored(self.torch.cholesky_solve(rhs, U, upper=True), pivots, info)

    def orthonormal(self, Z: Array) -> tuple[np.ndarray[Any, Any], Array]:
        """Z = L · Q with orthonormal rows Q and a small L, on the host; Z has few rows."""
        Q, R = self.torch.linalg.qr(Z.T)
        return self.get(R.T), Q.T.contiguous()

    def eigenbasis(self, gram: Array) -> tuple[Array, Array]:
        """All eigenvalues, ascending, and the vectors as columns."""
        values, Q = self.torch.linalg.eigh(gram)
        return values, Q

    def eigen(self, gram: Array, top: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """All eigenvalues, descending, and the vectors of the first `top`, as rows."""
        values, Q = self.torch.linalg.eigh(gram)
        vectors = Q[:, len(gram) - top :].T.flip(0)
        return self.get(values.flip(0)), self.get(vectors)

    def each(self, f: Callable[..., None], arrays: Sequence[Array], parallel: bool) -> None:
        """f(rows of every array …), in place, in pieces that bound its temporaries."""
        step = min(map(self._piece, arrays))
        for start in range(0, arrays[0].shape[-2], step):
            f(*(array[..., start : start + step, :] for array in arrays))

    def _piece(self, array: Array) -> int:
        """How many rows of an array to take at a time."""
        row = array.numel() // max(1, array.shape[-2]) * self.itemsize
        return max(1, PIECE_BYTES[self.name] // max(1, int(row)))

    def value(self, f: Nonlinearity) -> Callable[[Array], Array]:
        """σ on tensors; a user's function is evaluated by NumPy on the host."""
        return evaluator(f, self, slope=False)

    def slope(self, f: Nonlinearity) -> Callable[[Array], Array]:
        """σ′ on tensors."""
        return evaluator(f, self, slope=True)

    def describe(self) -> dict[str, str]:
        """Versions and device, for the record."""
        torch = self.torch
        where = torch.cuda.get_device_name() if self.name == "cuda" else "CPU"
        versions = {"numpy": np.__version__, "torch": str(torch.__version__)}
        return {**versions, "python": platform.python_version(), "blas": f"torch on {where}"}


def _strips(size: int) -> Iterator[tuple[int, int]]:
    """Bands of rows of a square matrix."""
    step = max(LEAST_STRIP, -(-size // STRIPS))
    for start in range(0, size, step):
        yield start, min(size, start + step)
