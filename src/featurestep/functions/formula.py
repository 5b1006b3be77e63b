"""Hermite sums as text: a grammar of our own, never `eval`.

    sum     := term (('+' | '-') term)*
    term    := factor (('*' | '/') factor)*
    factor  := ('+' | '-') factor | number | 'H' digits | 'sqrt' '(' sum ')' | '(' sum ')'

A product may have one Hermite polynomial at most, and divisors and roots are numbers, so the
result is always a linear combination of H_0, H_1, …
"""

from __future__ import annotations

import re

import numpy as np

from ..errors import InvalidProblem
from ..types import FloatArray

MAX_DEGREE = 20
LARGEST = 1e6
LARGEST_NUMBER = 1e30
_MAX_LENGTH = 400
_MAX_DEPTH = 40
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<hermite>H\d+)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<symbol>[-+*/()]))"
)


def hermite_formula(text: str, parameter: str, names: tuple[str, ...] = ()) -> tuple[float, ...]:
    """Coefficients c_0, c_1, … of a Hermite sum, or InvalidProblem that says what is wrong."""
    parser = _Parser(text, parameter, names)
    with np.errstate(all="ignore"):
        coefficients = parser.parse()
    if not np.all(np.abs(coefficients) <= LARGEST):
        raise InvalidProblem(parameter, f"must have coefficients of at most {LARGEST:.0e}", text)
    used = np.flatnonzero(coefficients)
    if used.size == 0:
        raise InvalidProblem(parameter, "must not be the zero function", text)
    return tuple(float(c) for c in coefficients[: used[-1] + 1])


class _Parser:
    """Recursive descent over the tokens; every value is a vector of coefficients."""

    def __init__(self, text: str, parameter: str, names: tuple[str, ...]) -> None:
        self.text = text
        self.parameter = parameter
        self.names = names
        self.depth = 0
        self.position = 0
        self.tokens = self._tokenise()

    def fail(self, reason: str) -> InvalidProblem:
        known = f"one of {', '.join(self.names)}, or " if self.names else ""
        rule = f"must be {known}a Hermite sum such as 'H1 + 0.5*H2' ({reason})"
        return InvalidProblem(self.parameter, rule, self.text)

    def _tokenise(self) -> list[tuple[str, str]]:
        if len(self.text) > _MAX_LENGTH:
            raise self.fail(f"at most {_MAX_LENGTH} characters")
        tokens, at = [], 0
        stripped = self.text.rstrip()
        while at < len(stripped):
            match = _TOKEN.match(stripped, at)
            if match is None:
                raise self.fail(f"unexpected {stripped[at:].strip()[:1]!r}")
            tokens.append((str(match.lastgroup), match.group(str(match.lastgroup))))
            at = match.end()
        if not tokens:
            raise self.fail("nothing given")
        return tokens

    def parse(self) -> FloatArray:
        value = self.sum()
        if self.position < len(self.tokens):
            raise self.fail(f"unexpected {self.tokens[self.position][1]!r}")
        return value

    def peek(self) -> str:
        return self.tokens[self.position][1] if self.position < len(self.tokens) else ""

    def take(self) -> tuple[str, str]:
        if self.position >= len(self.tokens):
            raise self.fail("ends too early")
        self.position += 1
        return self.tokens[self.position - 1]

    def sum(self) -> FloatArray:
        value = self.term()
        while self.peek() in ("+", "-"):
            sign = 1.0 if self.take()[1] == "+" else -1.0
            value = value + sign * self.term()
        return value

    def term(self) -> FloatArray:
        value = self.factor()
        while self.peek() in ("*", "/"):
            operator = self.take()[1]
            right = self.factor()
            value = self.product(value, right) if operator == "*" else self.quotient(value, right)
        return value

    def product(self, left: FloatArray, right: FloatArray) -> FloatArray:
        if np.any(left[1:]) and np.any(right[1:]):
            raise self.fail("a product may have one Hermite polynomial at most")
        return np.asarray(left * right[0] if np.any(left[1:]) else right * left[0])

    def quotient(self, left: FloatArray, right: FloatArray) -> FloatArray:
        divisor = self.number(right, "a divisor")
        if divisor == 0.0:
            raise self.fail("division by zero")
        return np.asarray(left / divisor)

    def number(self, value: FloatArray, what: str) -> float:
        if np.any(value[1:]):
            raise self.fail(f"{what} must be a number")
        return float(value[0])

    def factor(self) -> FloatArray:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.fail("nested too deeply")
        try:
            return self._factor()
        finally:
            self.depth -= 1

    def _factor(self) -> FloatArray:
        kind, word = self.take()
        if kind == "number":
            if not float(word) <= LARGEST_NUMBER:
                raise self.fail(f"numbers go up to {LARGEST_NUMBER:.0e}")
            return np.asarray(self.unit(0) * float(word))
        if kind == "hermite":
            degree = int(word[1:])
            if degree > MAX_DEGREE:
                raise self.fail(f"degrees go up to {MAX_DEGREE}")
            return self.unit(degree)
        if word in ("+", "-"):
            return np.asarray(self.factor() * (1.0 if word == "+" else -1.0))
        if word == "(":
            return self.closed()
        if word == "sqrt" and self.peek() == "(":
            self.take()
            radicand = self.number(self.closed(), "the argument of sqrt")
            if radicand < 0:
                raise self.fail("sqrt of a negative number")
            return np.asarray(self.unit(0) * radicand**0.5)
        raise self.fail(f"unexpected {word!r}")

    def closed(self) -> FloatArray:
        value = self.sum()
        if self.take()[1] != ")":
            raise self.fail("missing ')'")
        return value

    @staticmethod
    def unit(degree: int) -> FloatArray:
        vector = np.zeros(MAX_DEGREE + 1)
        vector[degree] = 1.0
        return vector
