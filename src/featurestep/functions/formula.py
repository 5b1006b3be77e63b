"""Functions as text: sums of Hermite polynomials, and formulas in z, or in z1, z2, z3.

    sum     := term (('+' | '-') term)*
    term    := factor (('*' | '/') factor)*
    factor  := ('+' | '-') factor | operand ('^' factor)?
    operand := number | name | function '(' sum (',' sum)? ')' | '(' sum ')'

Python's parser reads them after a scan that refuses everything outside this grammar. Nothing is
compiled or run: the tree is evaluated here, with the words and operators of a `Vocabulary`.

In a Hermite sum a product may have at most one Hermite polynomial, and divisors, powers and
roots are of numbers, so that it is a linear combination of H_0, H_1, … A formula is evaluated on
arrays; in a formula of one variable H2 stands for H2(z), and kinks are found from its functions.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import InvalidProblem
from ..core.types import FloatArray
from .roots import find_root

VARIABLES = ("z1", "z2", "z3")
ONE_VARIABLE = "z"  # of activations, and of targets of one direction
_PAIRS: Mapping[str, Callable[..., Any]] = {"max": np.maximum, "min": np.minimum}
_KINK_RANGE, _KINK_CELLS = 40.0, 16_001  # where kinks are searched for, and in how many steps
MAX_DEGREE = 20
LARGEST = 1e6
_CONSTANTS = {"pi": math.pi}
LARGEST_NUMBER = 1e30
_MAX_LENGTH = 400
_MAX_DEPTH = 40
_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<symbol>\*\*|[-+*/^(),])",
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
    functions: Mapping[str, Callable[..., Any]]
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
        arguments = [evaluate(argument, words, depth + 1) for argument in node.args]
        if len(arguments) != _arity(node.func.id):
            needs = "two arguments" if node.func.id in _PAIRS else "one argument"
            raise FormulaError(f"{node.func.id} takes {needs}", node.col_offset)
        return _at(node, words.functions[node.func.id], *arguments)
    raise FormulaError(
        f"unexpected {type(node).__name__}", node.col_offset
    )  # no scan lets it through


def _arity(name: str) -> int:
    return 2 if name in _PAIRS else 1


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
    wants_operand, previous, at = True, "", 0
    calls: list[str] = []  # the word before each open bracket
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _TOKEN.match(text, at)
        token, kind = (match.group(), match.lastgroup) if match else (text[at], None)
        if wants_operand:
            allowed = kind in ("number", "word") or token in ("+", "-", "(")
        else:
            closes_or_calls = bool(calls) if token == ")" else previous in words.functions
            allowed = token in _BINARY or (token in ("(", ")") and closes_or_calls)
            allowed |= token == "," and bool(calls) and calls[-1] in _PAIRS
        if not allowed:
            raise FormulaError(f"unexpected {token!r}", at)
        if kind == "word":
            _check_word(token, at, text[at + len(token) :], words)
        if token == "(":
            calls.append(previous if not wants_operand else "")
        elif token == ")":
            calls.pop()
        if len(calls) > _MAX_DEPTH:
            raise FormulaError("nested too deeply", at)
        wants_operand = kind == "symbol" and token != ")"
        previous, at = token, at + len(token)
    if not previous:
        raise FormulaError("nothing given")
    if wants_operand or calls:
        raise FormulaError("ends too early")


def _check_word(word: str, at: int, rest: str, words: Vocabulary) -> None:
    """Refuse an unknown word: a function if a bracket follows, else a name."""
    is_call = rest.lstrip().startswith("(")
    if word not in (words.functions if is_call else words.names):
        needs = "" if is_call or word not in words.functions else " without an argument"
        known = [*words.functions] if is_call else [*words.names, *words.functions]
        raise FormulaError(f"unexpected {word!r}{needs}{suggestion(word, known)}", at)


_OTHER_NAMES = {  # of what is known here, as papers and programs call it
    "swish": "silu",
    "linear": "identity",
    "logistic": "sigmoid",
    "hardtanh": "hard_tanh",
    "train": "simulate",
    "plot": "figure",
    "page": "explore",
}


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?` for a word that is close to a known one, else nothing."""
    lower = {name.lower(): name for name in known}
    other = _OTHER_NAMES.get(word.lower())
    if other in lower:
        return f"; did you mean {other!r}?"
    close = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.7)
    return f"; did you mean {lower[close[0]]!r}?" if close and lower[close[0]] != word else ""


def hermite_formula(text: str, parameter: str, names: tuple[str, ...] = ()) -> tuple[float, ...]:
    """Coefficients c_0, c_1, … of a Hermite sum; InvalidProblem if the text is none."""
    known = f"one of {', '.join(names)}, " if names else ""
    rule = f"must be {known}a Hermite sum such as 'H1 + 0.5*H2' or a formula such as 'z^3 - z'"
    coefficients = _read(text, parameter, rule, _HERMITE_SUMS)[1]
    if not np.all(np.abs(coefficients) <= LARGEST):
        raise InvalidProblem(parameter, f"must have coefficients of at most {LARGEST:.0e}", text)
    used = np.flatnonzero(coefficients)
    if used.size == 0:
        raise InvalidProblem(parameter, "must not be the zero function", text)
    return tuple(float(c) for c in coefficients[: used[-1] + 1])


@dataclass(frozen=True, eq=False)
class Formula:
    """A function of z or of some of z1, z2, z3, of an array (rows, len(labels))."""

    labels: tuple[str, ...]  # the variables that the text names
    _tree: ast.expr = field(repr=False)
    _functions: Mapping[str, Callable[..., Any]] = field(repr=False)

    @property
    def canonical(self) -> str:
        """The formula as text with uniform spaces and brackets."""
        return ast.unparse(self._tree)

    def __call__(self, z: FloatArray) -> FloatArray:
        """Values (rows,); not finite where a division, a root or a logarithm is not."""
        return np.array(np.broadcast_to(self._value(self._tree, z), len(z)))

    def _value(self, tree: ast.expr, z: FloatArray) -> Any:
        """The value of a part of the formula, at an array (rows, len(labels))."""
        columns = np.ascontiguousarray(z.T)
        names = {**_CONSTANTS, **dict(zip(self.labels, columns, strict=True))}
        if len(self.labels) == 1:
            names |= {f"H{k}": _hermite(k, columns[0]) for k in self._hermite_names()}
        with np.errstate(all="ignore"):
            return evaluate(tree, Vocabulary(names, self._functions, np.float64))

    def _hermite_names(self) -> set[int]:
        words = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        return {k for k in range(MAX_DEGREE + 1) if f"H{k}" in words}

    def kinks(self, kinks_of: Mapping[str, tuple[float, ...]]) -> tuple[float, ...]:
        """Where a formula of one variable has kinks, from those of its functions.

        The argument of a function passes one of the function's kinks there; that of max and min is
        the difference of the two.
        """
        z = np.linspace(-_KINK_RANGE, _KINK_RANGE, _KINK_CELLS)
        found: list[float] = []
        for node in ast.walk(self._tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            for kink in (0.0,) if node.func.id in _PAIRS else kinks_of.get(node.func.id, ()):

                def gap(place: FloatArray, call: ast.Call = node, kink: float = kink) -> FloatArray:
                    values = [self._value(a, np.reshape(place, (-1, 1))) for a in call.args]
                    difference = values[0] - (values[1] if len(values) > 1 else kink)
                    return np.array(np.broadcast_to(difference, np.size(place)), dtype=np.float64)

                found.extend(_zeros(gap, z))
        return tuple(sorted({round(place, 12) for place in found}))


def formula(
    text: str, functions: Mapping[str, Callable[[Any], Any]], parameter: str = "target"
) -> Formula:
    """The function of a formula in z, or in z1, z2, z3; InvalidProblem if the text is none.

    It may use `sqrt`, `exp`, `log`, `cos`, `max`, `min`, the Hermite polynomials H0(z1), H1(z1), …
    and the given functions.

    >>> formula("z1 + z2^2 - 1", {})(np.array([[1.0, 3.0], [0.0, 2.0]]))
    array([9., 3.])
    """
    is_activation = parameter == "activation"
    variables = (ONE_VARIABLE,) if is_activation else (ONE_VARIABLE, *VARIABLES)
    rule = "must be a formula in z such as 'relu(z) - 0.4'"
    if not is_activation:
        rule = f"must be a formula in z, or in {', '.join(VARIABLES)} such as 'z1 + z1*z2'"
    known = {**_FUNCTIONS, **functions}
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    used = tuple(name for name in variables if name in words)
    hermites = {f"H{k}": np.zeros(1) for k in range(MAX_DEGREE + 1)} if len(used) == 1 else {}
    names = {**_CONSTANTS, **hermites, **dict.fromkeys(variables, np.zeros(1))}
    # Formulas do not branch, so that one evaluation, at any point, finds every error.
    tree, _ = _read(text, parameter, rule, Vocabulary(names, known, np.float64))
    if ONE_VARIABLE in used and len(used) > 1:
        raise InvalidProblem(parameter, f"{rule} (z beside {used[1]}: write z1)", text)
    return Formula(used, tree, known)


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
    base, exponent = _number(a, "the base of a power"), _number(b, "an exponent")
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


def _zeros(gap: Callable[[FloatArray], FloatArray], z: FloatArray) -> list[float]:
    """Places at which a function changes its sign or is 0, between or at the points z."""
    values = gap(z)
    if not np.any(values):  # 0 everywhere: no kink
        return []
    at = np.flatnonzero(values == 0.0)
    change = np.flatnonzero(values[1:] * values[:-1] < 0.0)
    between = find_root(gap, z[change], z[change + 1]) if change.size else np.zeros(0)
    return [*map(float, z[at]), *map(float, between)]


def _hermite(degree: int, x: FloatArray) -> FloatArray:
    return np.asarray(np.polynomial.hermite_e.hermeval(x, [0.0] * degree + [1.0]))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "cos": np.cos,
    **_PAIRS,
    **{f"H{k}": partial(_hermite, k) for k in range(MAX_DEGREE + 1)},
}
