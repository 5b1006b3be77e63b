"""The experiment on torch tensors: a GPU, or torch's own CPU kernels.

Random numbers are drawn on the host all the same, so a seed means one experiment everywhere.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
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
)
from .backend import Array, by_eigenvectors, refuse_indefinite, refuse_singular

ROOT_TWO = 2.0**0.5
ROOT_TAU = (2.0 * np.pi) ** 0.5


class TorchBackend:
    """Torch tensors on one device."""

    def __init__(self, device: str, dtype: str) -> None:
        try:
            torch: Any = import_module("torch")
            xp: Any = import_module("array_api_compat.torch")
        except ImportError:
            raise InvalidProblem("device", "needs torch to be installed", device) from None
        if device == "cuda" and not torch.cuda.is_available():
            raise InvalidProblem("device", "needs a CUDA GPU that torch can see", device)
        self.name = device if device == "cuda" else "torch"
        self.dtype = dtype
        self.itemsize = np.dtype(dtype).itemsize
        self._torch = torch
        self._xp = xp
        self._like = {"dtype": getattr(torch, dtype), "device": torch.device(device)}

    def empty(self, *shape: int) -> Array:
        """Uninitialised."""
        return self._xp.empty(shape, **self._like)

    def zeros(self, *shape: int) -> Array:
        """All 0."""
        return self._xp.zeros(shape, **self._like)

    def put(self, values: np.ndarray[Any, Any]) -> Array:
        """From float64 on the host."""
        return self._torch.from_numpy(np.array(values)).to(**self._like)

    def get(self, values: Array) -> np.ndarray[Any, Any]:
        """To float64 on the host."""
        return np.asarray(values.cpu().numpy(), dtype=np.float64)

    def product(self, left: Array, right: Array, out: Array) -> Array:
        """out = left · rightᵀ."""
        return self._torch.mm(left, right.T, out=out)

    def add_product(self, out: Array, left: Array, right: Array) -> None:
        """out += leftᵀ · right."""
        out.addmm_(left.T, right)

    def add_gram(self, out: Array, F: Array, *, fresh: bool = False) -> None:
        """out += FᵀF, or out = FᵀF if fresh."""
        out.addmm_(F.T, F, beta=0.0 if fresh else 1.0)

    def outer_gram(self, F: Array) -> Array:
        """FFᵀ."""
        return F @ F.T

    def solve(
        self, gram: Array, shifts: list[float], rhs: list[Array], overwrite: bool
    ) -> list[Array]:
        """(gram + shift·I)⁻¹ rhs for each shift."""
        pairs = list(zip(shifts, rhs, strict=True))
        if by_eigenvectors(len(shifts)):
            values, Q = self._torch.linalg.eigh(gram)
            refuse_indefinite(self.get(values), min(shifts), self.dtype)
            return [Q @ ((Q.T @ b) / (values + shift)[:, None]) for shift, b in pairs]
        return [self._cholesky(gram, shift, b) for shift, b in pairs]

    def _cholesky(self, gram: Array, shift: float, rhs: Array) -> Array:
        shifted = gram.clone()
        shifted.diagonal().add_(shift)
        factor, info = self._torch.linalg.cholesky_ex(shifted)
        pivots = factor.diagonal().abs()
        refuse_singular(int(info), self.get(pivots), shift, self.dtype)
        return self._torch.cholesky_solve(rhs, factor)

    def eigen(self, gram: Array, top: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """All eigenvalues, descending, and the vectors of the first `top`, as rows."""
        values, Q = self._torch.linalg.eigh(gram)
        vectors = Q[:, len(gram) - top :].T.flip(0)
        return self.get(values.flip(0)), self.get(vectors)

    def each(self, f: Callable[..., None], arrays: Sequence[Array], parallel: bool) -> None:
        """f on the whole arrays at once: the device does the rest."""
        f(*arrays)

    def value(self, f: Nonlinearity) -> Callable[[Array], Array]:
        """σ on tensors; a user's function is evaluated by NumPy on the host."""
        return _evaluator(f, self, slope=False)

    def slope(self, f: Nonlinearity) -> Callable[[Array], Array]:
        """σ′ on tensors."""
        return _evaluator(f, self, slope=True)

    def describe(self) -> dict[str, str]:
        """Versions and device, for the record."""
        torch = self._torch
        where = torch.cuda.get_device_name() if self.name == "cuda" else "CPU"
        versions = {"numpy": np.__version__, "torch": str(torch.__version__)}
        return {**versions, "python": platform.python_version(), "blas": f"torch on {where}"}


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
    xp = backend._xp
    if isinstance(f, Sine):
        return lambda s: xp.cos(s) if slope else xp.sin(s)
    if isinstance(f, (Analytic, Erf)) and f.name in _NAMED:
        pair = _NAMED[f.name]
        torch = backend._torch
        return lambda s: pair[slope](torch, s)
    on_host = f.derivative if slope else f
    return lambda s: backend.put(on_host(backend.get(s)))


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
