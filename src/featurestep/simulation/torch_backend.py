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

from ..core.errors import InvalidProblem, install_command
from ..functions.activations import Erf, HermiteSum, PiecewiseLinear, Sine
from ..functions.nonlinearity import Analytic, Nonlinearity, Shifted, UserFunction
from .backend import EIGEN_FLOPS, USABLE_SHARE, Array, Backend, Factored, Limits, usable_memory

ROOT_TWO = 2.0**0.5
ROOT_TAU = (2.0 * np.pi) ** 0.5


def evaluator(f: Nonlinearity, backend: Backend, slope: bool) -> Callable[[Array], Array]:
    """σ or its slope on tensors; what torch does not know is evaluated by NumPy on the host."""
    if isinstance(f, Shifted):
        base, offset = evaluator(f.base, backend, slope), 0.0 if slope else f.offset
        return lambda s: base(s) - offset
    if isinstance(f, PiecewiseLinear):
        return _piecewise(f, slope)
    if isinstance(f, HermiteSum):
        coefficients = np.array(f.coefficients)
        if slope:
            coefficients = np.polynomial.hermite_e.hermeder(coefficients)
        return lambda s: _hermite_sum(coefficients, s)
    torch = backend.xp
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
    function: Callable[[Array], Array], on_host: Callable[[Array], Array], backend: Backend
) -> bool:
    """Whether a user's function maps the device's tensors to what it makes of NumPy's arrays."""
    probe = backend.put(np.linspace(-3.0, 3.0, 13))
    try:
        values = function(probe)
    except Exception:
        return False
    if not isinstance(values, backend.xp.Tensor) or values.shape != probe.shape:
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


STRIPS, LEAST_STRIP = 8, 512  # of a Gram matrix's lower triangle, and the least width of one
CUDA_EIGEN_FLOPS = 20.0  # an eigendecomposition takes as long as 60 factorisations there
CUDA_STREAMS = 2  # factorisations side by side on a GPU: one alone leaves much of it idle
PIECE_BYTES = {"cuda": 256 << 20, "torch": 1 << 20}  # of elementwise work done at a time


class TorchBackend(Backend):
    """Torch tensors on one device."""

    def __init__(self, device: str, dtype: str, solver: TorchBackend | None = None) -> None:
        try:
            torch: Any = import_module("torch")
        except ImportError:
            rule = f"needs torch: {install_command('gpu')}"
            raise InvalidProblem("device", rule, device) from None
        if device == "cuda" and not torch.cuda.is_available():
            raise InvalidProblem("device", "needs a CUDA GPU that torch can see", device)
        super().__init__(dtype, solver)
        self.name = device if device == "cuda" else "torch"
        self.xp = torch
        self.device = torch.device(device)
        self.eigen_flops = CUDA_EIGEN_FLOPS if device == "cuda" else EIGEN_FLOPS
        self._like = {"dtype": getattr(torch, dtype), "device": self.device}
        self._wide = {"dtype": torch.float64, "device": self.device}
        self._scratch: list[Array] = []
        self._lanes = [
            torch.cuda.Stream(self.device) for _ in range(CUDA_STREAMS * (device == "cuda"))
        ]
        self.at_once = max(1, len(self._lanes))

    @property
    def limits(self) -> Limits:
        """On a GPU, shares of what no one holds now, or torch holds and does not use."""
        if self.name != "cuda":
            return Limits(batch=64 << 20, most=usable_memory())
        cuda = self.xp.cuda
        unused = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        free = int(USABLE_SHARE * (cuda.mem_get_info(self.device)[0] + unused))
        return Limits(
            buffers=free // 8,
            grams=free // 2,
            rows=8192,
            workspace=5 * PIECE_BYTES["cuda"],
            batch=free // 4,
            most=free,
        )

    def synchronise(self) -> None:
        if self.name == "cuda":
            self.xp.cuda.synchronize(self.device)

    def put(self, values: np.ndarray[Any, Any]) -> Array:
        return self.xp.from_numpy(np.array(values)).to(**self._like)

    def get(self, values: Array) -> np.ndarray[Any, Any]:
        return np.asarray(values.cpu().numpy(), dtype=np.float64)

    def wide(self, values: Array) -> Array:
        """The same in float64 on the device, from there or from the host."""
        if isinstance(values, np.ndarray):
            values = self.xp.from_numpy(values)
        return values.to(**self._wide)

    def cast(self, values: Array) -> Array:
        return values.to(self._like["dtype"])

    def inner(self, left: Array, right: Array) -> Array:
        step = self._piece(left)
        pieces = zip(left.split(step, -2), right.split(step, -2), strict=True)
        return sum((a * b).sum((-2, -1), dtype=self.xp.float64) for a, b in pieces)

    def product(self, left: Array, right: Array, out: Array | None = None) -> Array:
        return self.xp.matmul(left, right.mT, out=out)

    def add_product(self, out: Array, left: Array, right: Array) -> None:
        if out.dim() == 2:
            out.addmm_(left.mT, right)
        else:
            out.baddbmm_(left.mT, right)

    def add_gram(self, out: Array, F: Array) -> None:
        """By strips, each as long as the triangle is there: little more than half of a product."""
        if out.dim() > 2:
            out.baddbmm_(F.mT, F)
            return
        for start, stop in _strips(len(out)):
            out[start:stop, :stop].addmm_(F[:, start:stop].T, F[:, :stop])

    def outer_gram(self, F: Array) -> Array:
        if F.dim() > 2:
            return F @ F.mT
        out = self.empty(len(F), len(F))
        for start, stop in _strips(len(F)):
            self.xp.mm(F[start:stop], F[:stop].T, out=out[start:stop, :stop])
        return out

    def _in_basis(self, Q: Array, values: Array, rhs: Array) -> Array:
        return Q @ ((Q.mT @ rhs) / values[..., None])

    def _factored_apart(self, gram: Array, pairs: list[tuple[float, Array]]) -> list[Factored]:
        """In turn on the lanes, each on a copy of its own; none is waited for."""
        lanes, cuda = self._lanes[: len(pairs)], self.xp.cuda
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

    def _factored(self, A: Array, shift: float, rhs: Array) -> Factored:
        U, info = self.cholesky(A, shift)
        pivots = U.diagonal(dim1=-2, dim2=-1).abs()
        return Factored(self.cholesky_solve(U, rhs), pivots, info)

    def cholesky(self, A: Array, shift: float) -> tuple[Array, Array]:
        A.diagonal(dim1=-2, dim2=-1).add_(shift)
        U = A.mT
        info = self.xp.empty(A.shape[:-2], dtype=self.xp.int32, device=self.device)
        self.xp.linalg.cholesky_ex(U, upper=True, out=(U, info))
        return U, info

    def cholesky_solve(self, U: Array, rhs: Array) -> Array:
        return self.xp.cholesky_solve(rhs, U, upper=True)

    def orthonormal(self, Z: Array) -> tuple[np.ndarray[Any, Any], Array]:
        Q, R = self.xp.linalg.qr(Z.T)
        return self.get(R.T), Q.T.contiguous()

    def eigenbasis(self, gram: Array) -> tuple[Array, Array]:
        return tuple(self.xp.linalg.eigh(gram))

    def eigen(self, gram: Array, top: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        values, Q = self.eigenbasis(gram)
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

    def value(self, f: Nonlinearity, *, slope: bool = False) -> Callable[[Array], Array]:
        """A user's function is evaluated by NumPy on the host."""
        return evaluator(f, self, slope)

    def describe(self) -> dict[str, str]:
        """Versions and device, for the record."""
        torch = self.xp
        where = torch.cuda.get_device_name() if self.name == "cuda" else "CPU"
        versions = {"numpy": np.__version__, "torch": str(torch.__version__)}
        return {**versions, "python": platform.python_version(), "blas": f"torch on {where}"}


def _strips(size: int) -> Iterator[tuple[int, int]]:
    """Bands of rows of a square matrix."""
    step = max(LEAST_STRIP, -(-size // STRIPS))
    for start in range(0, size, step):
        yield start, min(size, start + step)
