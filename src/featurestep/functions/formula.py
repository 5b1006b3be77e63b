"""Functions as text: sums of Hermite polynomials, and targets as formulas in z1, z2, z3.

    sum     := term (('+' | '-') term)*
    term    := factor (('*' | '/') factor)*
    factor  := ('+' | '-') factor | operand ('^' factor)?
    operand := number | name | function '(' sum ')' | '(' sum ')'

Python's parser reads them after a scan that refuses everything outside this grammar. Nothing is
compiled or run: the tree is evaluated here, with the words and operators of a `Vocabulary`.

In a Hermite sum a product may have at most one Hermite polynomial, and divisors, powers and
roots are of numbers, so that it is a linear combination of H_0, H_1, … A formula in z1, z2, z3 is
evaluated on arrays.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import InvalidProblem
from ..core.types import FloatArray

VARIABLES = ("z1", "z2", "z3")
MAX_DEGREE = 20
LARGEST = 1e6
_CONSTANTS = {"pi": math.pi}
LARGEST_NUMBER = 1e30
_MAX_LENGTH = 400
_MAX_DEPTH = 40
_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<symbol>\*\*|[-+*/^()])",
    re.ASCII,
)
_BINARY = ("+", "-", "*", "/", "^", "**")
OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


class FormulaError(Exception):
    """What is wrong with an expression and, once known, at which character."""

    def __init__(self, reason: str, at: int | None = None) -> None:
        self.reason, self.at = reason, at
        super().__init__(reason if at is None else f"at character {at + 1}: {reason}")


class Vocabulary(NamedTuple):
    """Values of the names and numbers in an expression, and its functions and operators."""

    names: Mapping[str, Any]
    functions: Mapping[str, Callable[[Any], Any]]
    number: Callable[[float], Any]
    operators: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = OPERATORS


def parse(text: str, words: Vocabulary) -> ast.expr:
    """The syntax tree of a text; FormulaError outside the grammar.

    `col_offset` of a node is its place in the text, where ^ has one character.
    """
    if len(text) > _MAX_LENGTH:
        raise FormulaError(f"at most {_MAX_LENGTH} characters")
    _scan(text, words)
    plain = _TOKEN.sub(_without_leading_zeros, re.sub(r"\s", " ", text)).replace("^", "**")
    tree = ast.parse(f"({plain})", mode="eval").body
    places = [at for at, letter in enumerate(text) for _ in ("**" if letter == "^" else "*")]
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            node.col_offset = places[node.col_offset - 1]
    return tree


def evaluate(node: ast.expr, words: Vocabulary, depth: int = 0) -> Any:
    """The value of a tree. A long sum nests to the left, and is evaluated without recursion."""
    if depth > _MAX_DEPTH:
        raise FormulaError("nested too deeply", node.col_offset)
    chain: list[ast.BinOp] = []
    while isinstance(node, ast.BinOp):
        chain.append(node)
        node = node.left
    value = _operand(node, words, depth)
    for step in reversed(chain):
        right = evaluate(step.right, words, depth + 1)
        value = _at(step.right, words.operators[type(step.op)], value, right)
    return value


def _operand(node: ast.expr, words: Vocabulary, depth: int) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        if not node.value <= LARGEST_NUMBER:
            raise FormulaError(f"numbers go up to {LARGEST_NUMBER:.0e}", node.col_offset)
        return words.number(float(node.value))
    if isinstance(node, ast.Name):
        return words.names[node.id]
    if isinstance(node, ast.UnaryOp):
        value = evaluate(node.operand, words, depth + 1)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        argument = evaluate(node.args[0], words, depth + 1)
        return _at(node, words.functions[node.func.id], argument)
    raise FormulaError(
        f"unexpected {type(node).__name__}", node.col_offset
    )  # no scan lets it through


def _at(node: ast.expr, call: Callable[..., Any], *arguments: Any) -> Any:
    """call(*arguments); a FormulaError gets the node's place in the text."""
    try:
        return call(*arguments)
    except FormulaError as fault:
        raise FormulaError(fault.reason, node.col_offset) from None


def _without_leading_zeros(token: re.Match[str]) -> str:
    """A token without leading zeros, which Python refuses (007), padded to the same length."""
    if token.lastgroup != "number":
        return token.group()
    digits = token.group().lstrip("0")
    whole = digits.removeprefix(".")[:1].isdigit()  # .5 is a number, "", . and e3 are not
    return (digits if whole else f"0{digits}").rjust(len(token.group()))


def _scan(text: str, words: Vocabulary) -> None:
    """Refuse a text outside the grammar, at the first token that is wrong."""
    wants_operand, depth, previous, at = True, 0, "", 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _TOKEN.match(text, at)
        token, kind = (match.group(), match.lastgroup) if match else (text[at], None)
        if wants_operand:
            allowed = kind in ("number", "word") or token in ("+", "-", "(")
        else:
            closes_or_calls = depth > 0 if token == ")" else previous in words.functions
            allowed = token in _BINARY or (token in ("(", ")") and closes_or_calls)
        if not allowed:
            raise FormulaError(f"unexpected {token!r}", at)
        if kind == "word":
            _check_word(token, at, text[at + len(token) :], words)
        depth += (token == "(") - (token == ")")
        if depth > _MAX_DEPTH:
            raise FormulaError("nested too deeply", at)
        wants_operand = kind == "symbol" and token != ")"
        previous, at = token, at + len(token)
    if not previous:
        raise FormulaError("nothing given")
    if wants_operand or depth:
        raise FormulaError("ends too early")


def _check_word(word: str, at: int, rest: str, words: Vocabulary) -> None:
    """Refuse an unknown word: a function if a bracket follows, else a name."""
    is_call = rest.lstrip().startswith("(")
    if word not in (words.functions if is_call else words.names):
        needs = "" if is_call or word not in words.functions else " without an argument"
        raise FormulaError(f"unexpected {word!r}{needs}", at)


def hermite_formula(text: str, parameter: str, names: tuple[str, ...] = ()) -> tuple[float, ...]:
    """Coefficients c_0, c_1, … of a Hermite sum; InvalidProblem if the text is none."""
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
    """A function of some of z1, z2, z3, of an array (rows, len(labels))."""

    labels: tuple[str, ...]  # the variables that the text names
    _tree: ast.expr = field(repr=False)
    _functions: Mapping[str, Callable[[Any], Any]] = field(repr=False)

    @property
    def canonical(self) -> str:
        """The formula as text with uniform spaces and brackets."""
        return ast.unparse(self._tree)

    def __call__(self, z: FloatArray) -> FloatArray:
        """Values (rows,); not finite where a division, a root or a logarithm is not."""
        columns = np.ascontiguousarray(z.T)
        names = {**_CONSTANTS, **dict(zip(self.labels, columns, strict=True))}
        with np.errstate(all="ignore"):
            result = evaluate(self._tree, Vocabulary(names, self._functions, np.float64))
        return np.array(np.broadcast_to(result, len(z)))


def formula(text: str, functions: Mapping[str, Callable[[Any], Any]]) -> Formula:
    """The function of a formula in z1, z2, z3; InvalidProblem if the text is none.

    It may use `sqrt`, `exp`, `log`, `cos`, the Hermite polynomials H0(z1), H1(z1), … and the given
    functions.

    >>> formula("z1 + z2^2 - 1", {})(np.array([[1.0, 3.0], [0.0, 2.0]]))
    array([9., 3.])
    """
    rule = f"must be a formula in {', '.join(VARIABLES)} such as '{' + '.join(VARIABLES)}'"
    known = {**_FUNCTIONS, **functions}
    names = {**_CONSTANTS, **dict.fromkeys(VARIABLES, np.zeros(1))}
    # Formulas do not branch, so that one evaluation, at any point, finds every error.
    tree, _ = _read(text, "target", rule, Vocabulary(names, known, np.float64))
    mentioned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return Formula(tuple(name for name in VARIABLES if name in mentioned), tree, known)


def _read(text: str, parameter: str, rule: str, words: Vocabulary) -> tuple[ast.expr, Any]:
    """The tree of a text and its value; InvalidProblem with what is wrong and where."""
    too_high = next((m for m in re.finditer(r"\bH(\d+)", text) if int(m[1]) > MAX_DEGREE), None)
    try:
        if too_high is not None:
            raise FormulaError(f"degrees go up to {MAX_DEGREE}", too_high.start())
        tree = parse(text, words)
        with np.errstate(all="ignore"):
            return tree, evaluate(tree, words)
    except FormulaError as fault:
        raise InvalidProblem(parameter, f"{rule} ({fault})", text) from None


# The value of a Hermite sum is the array of its coefficients, so that + and − are NumPy's.
_HERMITES = np.eye(MAX_DEGREE + 1)


def _constant(value: float) -> FloatArray:
    return np.asarray(value * _HERMITES[0])


def _number(c: FloatArray, what: str) -> float:
    if np.any(c[1:]):
        raise FormulaError(f"{what} must be a number")
    return float(c[0])


def _product(a: FloatArray, b: FloatArray) -> FloatArray:
    if np.any(a[1:]) and np.any(b[1:]):
        raise FormulaError("a product may have one Hermite polynomial at most")
    return np.asarray(a * b[0] if np.any(a[1:]) else b * a[0])


def _quotient(a: FloatArray, b: FloatArray) -> FloatArray:
    divisor = _number(b, "a divisor")
    if divisor == 0.0:
        raise FormulaError("division by zero")
    return np.asarray(a / divisor)


def _power(a: FloatArray, b: FloatArray) -> FloatArray:
    base, exponent = _number(a, "what has a power"), _number(b, "a power")
    return _constant(float(np.float64(base) ** exponent))


def _root(c: FloatArray) -> FloatArray:
    radicand = _number(c, "the argument of sqrt")
    if radicand < 0:
        raise FormulaError("sqrt of a negative number")
    return _constant(radicand**0.5)


_HERMITE_SUMS = Vocabulary(
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
