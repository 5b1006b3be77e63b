"""Functions as text: sums of Hermite polynomials, and targets as formulas in z1, z2, z3.

In a Hermite sum a product may have one Hermite polynomial at most, and divisors, powers and
roots are of numbers, so the result is always a linear combination of H_0, H_1, … A formula in
variables is evaluated on arrays.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..core.errors import InvalidProblem
from ..core.types import FloatArray
from .expression import OPERATORS, Fault, Words, evaluate, parse

VARIABLES = ("z1", "z2", "z3")
MAX_DEGREE = 20
LARGEST = 1e6
_CONSTANTS = {"pi": math.pi}


def hermite_formula(text: str, parameter: str, names: tuple[str, ...] = ()) -> tuple[float, ...]:
    """Coefficients c_0, c_1, … of a Hermite sum, or InvalidProblem that says what is wrong."""
    known = f"one of {', '.join(names)}, or " if names else ""
    rule = f"must be {known}a Hermite sum such as 'H1 + 0.5*H2'"
    coefficients = _read(text, parameter, rule, _HERMITE_SUMS)[1]
    if not np.all(np.abs(coefficients) <= LARGEST):
        raise InvalidProblem(parameter, f"must have coefficients of at most {LARGEST:.0e}", text)
    used = np.flatnonzero(coefficients)
    if used.size == 0:
        raise InvalidProblem(parameter, "must not be the zero function", text)
    return tuple(float(c) for c in coefficients[: used[-1] + 1])


@dataclass(frozen=True, eq=False)
class Formula:
    """A function of some of z1, z2, z3, called with an array (rows, labels)."""

    labels: tuple[str, ...]  # the variables that the text names
    _tree: ast.expr = field(repr=False)
    _functions: Mapping[str, Callable[[Any], Any]] = field(repr=False)

    @property
    def canonical(self) -> str:
        """The text with one spelling for spaces and brackets."""
        return ast.unparse(self._tree)

    def __call__(self, z: FloatArray) -> FloatArray:
        """The value of each row; not finite where a division, a root or a logarithm is not."""
        columns = np.ascontiguousarray(z.T)
        names = {**_CONSTANTS, **dict(zip(self.labels, columns, strict=True))}
        with np.errstate(all="ignore"):
            result = evaluate(self._tree, Words(names, self._functions, np.float64))
        return np.array(np.broadcast_to(result, len(z)))


def formula(text: str, functions: Mapping[str, Callable[[Any], Any]]) -> Formula:
    """The target that a text in z1, z2, z3 writes, or InvalidProblem that says what is wrong.

    It may use `sqrt`, `exp`, `log`, `cos`, the Hermite polynomials H0(z1), H1(z1), … and the
    functions given.

    >>> formula("z1 + z2^2 - 1", {})(np.array([[1.0, 3.0], [0.0, 2.0]]))
    array([9., 3.])
    """
    rule = f"must be a formula in {', '.join(VARIABLES)} such as '{' + '.join(VARIABLES)}'"
    known = {**_FUNCTIONS, **functions}
    names = {**_CONSTANTS, **dict.fromkeys(VARIABLES, np.zeros(1))}
    # Nothing in a formula branches, so that one evaluation, anywhere, meets every fault.
    tree, _ = _read(text, "target", rule, Words(names, known, np.float64))
    mentioned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return Formula(tuple(name for name in VARIABLES if name in mentioned), tree, known)


def _read(text: str, parameter: str, rule: str, words: Words) -> tuple[ast.expr, Any]:
    """The tree of a text and its value, or the refusal that says what is wrong and where."""
    too_high = next((m for m in re.finditer(r"\bH(\d+)", text) if int(m[1]) > MAX_DEGREE), None)
    try:
        if too_high is not None:
            raise Fault(f"degrees go up to {MAX_DEGREE}", too_high.start())
        tree = parse(text, words)
        with np.errstate(all="ignore"):
            return tree, evaluate(tree, words)
    except Fault as fault:
        raise InvalidProblem(parameter, f"{rule} ({fault})", text) from None


# Of a Hermite sum the value is the array of its coefficients, so that sums are NumPy's own.
_HERMITES = np.eye(MAX_DEGREE + 1)


def _constant(value: float) -> FloatArray:
    return np.asarray(value * _HERMITES[0])


def _number(c: FloatArray, what: str) -> float:
    if np.any(c[1:]):
        raise Fault(f"{what} must be a number")
    return float(c[0])


def _product(a: FloatArray, b: FloatArray) -> FloatArray:
    if np.any(a[1:]) and np.any(b[1:]):
        raise Fault("a product may have one Hermite polynomial at most")
    return np.asarray(a * b[0] if np.any(a[1:]) else b * a[0])


def _quotient(a: FloatArray, b: FloatArray) -> FloatArray:
    divisor = _number(b, "a divisor")
    if divisor == 0.0:
        raise Fault("division by zero")
    return np.asarray(a / divisor)


def _power(a: FloatArray, b: FloatArray) -> FloatArray:
    base, exponent = _number(a, "what has a power"), _number(b, "a power")
    return _constant(float(np.float64(base) ** exponent))


def _root(c: FloatArray) -> FloatArray:
    radicand = _number(c, "the argument of sqrt")
    if radicand < 0:
        raise Fault("sqrt of a negative number")
    return _constant(radicand**0.5)


_HERMITE_SUMS = Words(
    names={
        **{name: _constant(value) for name, value in _CONSTANTS.items()},
        **{f"H{k}": row for k, row in enumerate(_HERMITES)},
    },
    functions={"sqrt": _root},
    number=_constant,
    operators={**OPERATORS, ast.Mult: _product, ast.Div: _quotient, ast.Pow: _power},
)


def _hermite(degree: int, x: FloatArray) -> FloatArray:
    return np.asarray(np.polynomial.hermite_e.hermeval(x, [0.0] * degree + [1.0]))


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "cos": np.cos,
    **{f"H{k}": partial(_hermite, k) for k in range(MAX_DEGREE + 1)},
}
