"""Activations on torch tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...functions.activations import Erf, HermiteSum, PiecewiseLinear, Sine
from ...functions.nonlinearity import Nonlinearity, Shifted
from ...functions.sampled import Analytic, UserFunction
from .backend import Array, Backend

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
