"""The one way from a user's word to a target: a function of one direction, or of several."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from .activations import NAMED, function, resolve
from .formula import MAX_DEGREE, Formula, formula
from .hermite import ZERO
from .nonlinearity import HermiteSum, Nonlinearity, normalised_hermite
from .quadrature import gauss_hermite
from .special import factorials
from .teacher import Teacher

_NAMES_ONE = re.compile(r"\bz\d+\b")


def resolve_target(spec: object) -> Nonlinearity | Teacher:
    """The target behind a name, a Hermite sum, a formula in z1, z2, z3, a callable or a Teacher."""
    if isinstance(spec, Teacher):
        return spec if spec.directions > 1 else _single(spec)
    if isinstance(spec, str) and _NAMES_ONE.search(spec):
        return _from_formula(spec.strip())
    return resolve(spec, "target")


def target_formula(spec: object) -> str | None:
    """A formula in z1, z2, z3 in its one spelling, None where the target is something else."""
    if not isinstance(spec, str) or not _NAMES_ONE.search(spec):
        return None
    return formula(spec.strip(), NAMED).canonical


@lru_cache(maxsize=64)
def _single(teacher: Teacher) -> Nonlinearity:
    """A teacher of one direction is a function like any other."""
    return function(lambda t: teacher(t.reshape(-1, 1)).reshape(t.shape), name="target")


@lru_cache(maxsize=256)
def _from_formula(text: str) -> Nonlinearity | Teacher:
    """A target of the directions that the text names."""
    call = formula(text, NAMED)
    if len(call.labels) > 1:
        return Teacher(len(call.labels), call, name=text)
    polynomial = _coefficients(call)
    if polynomial is not None:
        return HermiteSum(text, polynomial)
    return _single(Teacher(1, call, name=text))


def _coefficients(call: Formula) -> tuple[float, ...] | None:
    """Hermite coefficients of a polynomial in one direction, None for other functions."""
    z, w = gauss_hermite(2 * MAX_DEGREE)
    values = call(z[:, None])
    if not np.all(np.isfinite(values)):
        return None
    basis = normalised_hermite(MAX_DEGREE, z)
    c = basis @ (w * values)
    size = np.sqrt(w @ values**2)
    c[np.abs(c) < ZERO * size] = 0.0
    missed = np.abs(values - c @ basis) * np.sqrt(w)
    if not np.any(c) or missed.max() > 10.0 * ZERO * size:
        return None
    plain = c / np.sqrt(factorials(MAX_DEGREE + 1))
    return tuple(float(v) for v in plain[: np.flatnonzero(plain)[-1] + 1])
