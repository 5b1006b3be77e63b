"""The experiment on torch tensors: a GPU, or torch's own CPU kernels.

Every operation takes matrices with further axes in front: several draws at once. Work is queued
on the device in order and the host waits for none of it until it asks for numbers.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...errors import InvalidProblem
from ...functions.nonlinearity import (
    Analytic,
    Erf,
    HermiteSum,
    Nonlinearity,
    PiecewiseLinear,
    Shifted,
    Sine,
    UserFunction,
)
from .backend import (
    EIGEN_FLOPS,
    Array,
    Limits,
    by_eigenvectors,
    make_backend,
    refuse_indefinite,
    refuse_singular,
)
from .memory import usable_memory

STRIPS, LEAST_STRIP = 8, 512  # of a Gram matrix's lower triangle, and the least width of one
CUDA_EIGEN_FLOPS = 20.0  # an eigendecomposition takes as long as 60 factorisations there
SHARE = 0.9  # of a device's free memory that a run may take
PIECE_BYTES = {"cuda": 256 << 20, "torch": 1 << 20}  # of elementwise work done at a time
ROOT_TWO = 2.0**0.5
ROOT_TAU = (2.0 * np.pi) ** 0.5


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
        self._scratch: Array = None

    @property
    def limits(self) -> Limits:
        """On a GPU, shares of the memory that is free now."""
        if self.name != "cuda":
            return Limits(batch=64 << 20, most=usable_memory())
        free = int(SHARE * self.free_memory())
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
        return 1 if ridges == 1 else 2

    def synchronise(self) -> None:
        """Wait for what was asked for."""
        if self.name == "cuda":
            self.torch.cuda.synchronize(self.device)

    def free_memory(self) -> int:
        """Bytes of the GPU that no one holds, or that torch holds and does not use."""
        cuda = self.torch.cuda
        unused = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        return int(cuda.mem_get_info(self.device)[0] + unused)

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

    def wide_empty(self, *shape: int) -> Array:
        """Uninitialised float64."""
        return self.torch.empty(shape, **self._wide)

    def cast(self, values: Array) -> Array:
        """The same in this backend's precision; not copied where it is so already."""
        return values.to(self._like["dtype"])

    def where(self, condition: Array, yes: Array, no: Array) -> Array:
        """Either, elementwise."""
        return self.torch.where(condition, yes, no)

    def stack(self, arrays: Sequence[Array]) -> Array:
        """Along a new last axis."""
        return self.torch.stack(list(arrays), dim=-1)

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
            return [self._cholesky(gram, *pairs[0])]
        return [self._cholesky(self._copy(gram), shift, b) for shift, b in pairs]

    def _copy(self, gram: Array) -> Array:
        """Of the matrix, in memory that is kept from call to call."""
        if self._scratch is None or self._scratch.shape != gram.shape:
            self._scratch = None  # freed before the next is asked for
            self._scratch = self.empty(*gram.shape)
        return self._scratch.copy_(gram)

    def _cholesky(self, A: Array, shift: float, rhs: Array) -> Array:
        """Factored in place: what is lower in rows is upper in columns, as the library wants it."""
        A.diagonal(dim1=-2, dim2=-1).add_(shift)
        U = A.mT
        info = self.torch.empty(A.shape[:-2], dtype=self.torch.int32, device=self.device)
        self.torch.linalg.cholesky_ex(U, upper=True, out=(U, info))
        pivots = self.get(U.diagonal(dim1=-2, dim2=-1).abs())
        refuse_singular(int(info.max()), pivots, shift, self.dtype)
        return self.torch.cholesky_solve(rhs, U, upper=True)

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
        return _evaluator(f, self, slope=False)

    def slope(self, f: Nonlinearity) -> Callable[[Array], Array]:
        """σ′ on tensors."""
        return _evaluator(f, self, slope=True)

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


def _evaluator(f: Nonlinearity, backend: TorchBackend, slope: bool) -> Callable[[Array], Array]:
    if isinstance(f, Shifted):
        base, offset = _evaluator(f.base, backend, slope), 0.0 if slope else f.offset
        return lambda s: base(s) - offset
    if isinstance(f, PiecewiseLinear):
        return _piecewise(f, slope)
    if isinstance(f, HermiteSum):
        coefficients = np.array(f.coefficients)
        if slope:
            coefficients = np.polynomial.hermite_e.hermeder(coefficients)
        return lambda s: _hermite_sum(coefficients, s)
    torch = backend.torch
    if isinstance(f, Sine):
        return lambda s: torch.cos(s) if slope else torch.sin(s)
    if isinstance(f, (Analytic, Erf)) and f.name in _NAMED:
        pair = _NAMED[f.name]
        return lambda s: pair[slope](torch, s)
    on_host = f.derivative if slope else f
    if isinstance(f, UserFunction):
        native = f.slope_function if slope else f.function
        if native is not None and _takes_tensors(native, on_host, backend):
            return native
    return lambda s: backend.wide(on_host(backend.get(s))).to(s.dtype)


def _takes_tensors(
    function: Callable[[Array], Array], on_host: Callable[[Array], Array], backend: TorchBackend
) -> bool:
    """Whether a user's function maps the device's tensors to what it makes of NumPy's arrays."""
    probe = backend.put(np.linspace(-3.0, 3.0, 13))
    try:
        values = function(probe)
    except Exception:
        return False
    if not isinstance(values, backend.torch.Tensor) or values.shape != probe.shape:
        return False
    if values.dtype != probe.dtype or values.device != probe.device:
        return False
    expected = on_host(backend.get(probe))
    return bool(np.allclose(backend.get(values), expected, rtol=1e-5, atol=1e-6))


def _piecewise(f: PiecewiseLinear, slope: bool) -> Callable[[Array], Array]:
    def evaluate(s: Array) -> Array:
        out = 0.0 * s + f.slope if slope else f.slope * s + f.intercept
        for kink, weight in f.corners:
            ramp = s - kink
            # A bool tensor times a number would fall to torch's default precision.
            out = out + weight * ((ramp > 0).to(s.dtype) if slope else ramp.clamp_min(0.0))
        return out

    return evaluate


def _hermite_sum(coefficients: np.ndarray[Any, Any], s: Array) -> Array:
    """Σ c_k H_k(s) by the recurrence H_{k+1} = sH_k − kH_{k−1}."""
    below, here = 0.0 * s, 0.0 * s + 1.0
    total = float(coefficients[0]) * here
    for k in range(1, len(coefficients)):
        below, here = here, s * here - (k - 1) * below
        total = total + float(coefficients[k]) * here
    return total


def _gelu_slope(torch: Any, s: Array) -> Array:
    return 0.5 * (1.0 + torch.erf(s / ROOT_TWO)) + s * torch.exp(-0.5 * s * s) / ROOT_TAU


def _silu_slope(torch: Any, s: Array) -> Array:
    sigmoid = torch.sigmoid(s)
    return sigmoid * (1.0 + s * (1.0 - sigmoid))


_Pair = tuple[Callable[[Any, Array], Array], Callable[[Any, Array], Array]]
_NAMED: dict[str, _Pair] = {
    "tanh": (lambda t, s: t.tanh(s), lambda t, s: 1.0 - t.tanh(s) ** 2),
    "erf": (lambda t, s: t.erf(s), lambda t, s: 2.0 / np.pi**0.5 * t.exp(-s * s)),
    "softplus": (
        lambda t, s: s.clamp_min(0.0) + t.log1p(t.exp(-s.abs())),
        lambda t, s: t.sigmoid(s),
    ),
    "gelu": (lambda t, s: 0.5 * s * (1.0 + t.erf(s / ROOT_TWO)), _gelu_slope),
    "silu": (lambda t, s: s * t.sigmoid(s), _silu_slope),
    "sigmoid": (lambda t, s: t.sigmoid(s), lambda t, s: t.sigmoid(s) * (1.0 - t.sigmoid(s))),
}
