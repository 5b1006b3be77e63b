"""The named activations, and the one way from a user's word to a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.checks import readable
from ..core.errors import InvalidProblem
from ..core.types import FloatArray
from .formula import hermite_formula
from .nonlinearity import (
    Analytic,
    Erf,
    HermiteSum,
    Nonlinearity,
    PiecewiseLinear,
    Sine,
    UserFunction,
)
from .quadrature import normal_density
from .special import ndtr

LEAKY_SLOPE = 0.01


def _sigmoid(s: FloatArray) -> FloatArray:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * s))


def _softplus(s: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(s, 0.0) + np.log1p(np.exp(-np.abs(s))))


def _silu_slope(s: FloatArray) -> FloatArray:
    sigmoid = _sigmoid(s)
    return sigmoid * (1.0 + s * (1.0 - sigmoid))


NAMED: dict[str, Nonlinearity] = {
    f.name: f
    for f in (
        Analytic("tanh", np.tanh, lambda s: 1.0 - np.tanh(s) ** 2),
        Erf("erf"),
        PiecewiseLinear("relu", 0.0, 0.0, ((0.0, 1.0),)),
        PiecewiseLinear("leaky_relu", LEAKY_SLOPE, 0.0, ((0.0, 1.0 - LEAKY_SLOPE),)),
        Analytic("softplus", _softplus, _sigmoid, is_ramp=True),
        Analytic(
            "gelu",
            lambda s: s * ndtr(s),
            lambda s: ndtr(s) + s * normal_density(s),
            is_ramp=True,
        ),
        Analytic("silu", lambda s: s * _sigmoid(s), _silu_slope, is_ramp=True),
        Analytic("sigmoid", _sigmoid, lambda s: _sigmoid(s) * (1.0 - _sigmoid(s))),
        Sine("sin"),
        PiecewiseLinear("hard_tanh", 0.0, -1.0, ((-1.0, 1.0), (1.0, -1.0))),
        PiecewiseLinear("abs", -1.0, 0.0, ((0.0, 2.0),)),
        PiecewiseLinear("identity", 1.0, 0.0, ()),
    )
}


def function(
    call: Callable[[FloatArray], Any],
    *,
    derivative: Callable[[FloatArray], Any] | None = None,
    kinks: Iterable[float] = (),
    name: str | None = None,
) -> UserFunction:
    """Wrap a vectorised callable for use as an activation or a target.

    Kinks and jumps must be declared; one that was not is found and refused. Without a
    derivative, simulations use a fourth-order difference.

    >>> function(lambda s: np.maximum(s - 0.5, 0.0), kinks=(0.5,)).kinks
    (0.5,)
    """
    if not callable(call):
        raise InvalidProblem("function", "must be callable", call)
    if derivative is not None and not callable(derivative):
        raise InvalidProblem("derivative", "must be callable", derivative)
    if name is not None and not isinstance(name, str):
        raise InvalidProblem("name", "must be text", name)
    label = name or _name_of(call)
    return UserFunction(label, call, derivative, _checked_kinks(kinks), label)


def _checked_kinks(kinks: Iterable[float]) -> tuple[float, ...]:
    with readable("kinks", "must be a list of numbers", kinks):
        values = tuple(sorted(float(k) for k in kinks))
    if not all(np.isfinite(values)):
        raise InvalidProblem("kinks", "must be finite", kinks)
    return values


def resolve(spec: object, parameter: str) -> Nonlinearity:
    """The function behind a name, a Hermite sum, a callable or a ready-made function."""
    if isinstance(spec, Nonlinearity):
        return spec
    if isinstance(spec, str):
        return _from_text(spec, parameter)
    if callable(spec):
        return _from_callable(spec, parameter)
    raise InvalidProblem(
        parameter, "must be a name, a Hermite sum such as 'H1 + 0.5*H2', or a callable", spec
    )


@lru_cache(maxsize=256)
def _from_text(text: str, parameter: str) -> Nonlinearity:
    name = text.strip()
    if name in NAMED:
        return NAMED[name]
    coefficients = hermite_formula(name, parameter, tuple(NAMED))
    return HermiteSum(name, coefficients)


@lru_cache(maxsize=64)
def _from_callable(call: Callable[[FloatArray], FloatArray], parameter: str) -> Nonlinearity:
    return UserFunction(_name_of(call), call, None, (), parameter)


def _name_of(call: object) -> str:
    return str(getattr(call, "__name__", "function"))
