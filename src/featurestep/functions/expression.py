"""Expressions as text, read by Python's own parser after a scan that lets nothing else through.

    sum     := term (('+' | '-') term)*
    term    := factor (('*' | '/') factor)*
    factor  := ('+' | '-') factor | operand ('^' factor)?
    operand := number | name | function '(' sum ')' | '(' sum ')'

Nothing is ever compiled or run: the scan admits the words it was given, and the walk over the
tree admits the operators above. What a word stands for is the reader's business, so that sums
of Hermite polynomials and functions of several variables are one grammar.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

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


class Fault(Exception):
    """What is wrong with an expression; whoever knows the place in the text adds it."""

    def __init__(self, reason: str, at: int | None = None) -> None:
        self.reason, self.at = reason, at
        super().__init__(reason if at is None else f"at character {at + 1}: {reason}")


class Words(NamedTuple):
    """What the words of an expression stand for, how a number enters, and what operators do."""

    names: Mapping[str, Any]
    functions: Mapping[str, Callable[[Any], Any]]
    number: Callable[[float], Any]
    operators: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = OPERATORS


def parse(text: str, words: Words) -> ast.expr:
    """The tree of a text, each node with its place in it; Fault for all outside the grammar."""
    if len(text) > _MAX_LENGTH:
        raise Fault(f"at most {_MAX_LENGTH} characters")
    _scan(text, words)
    plain = _TOKEN.sub(_without_leading_zeros, re.sub(r"\s", " ", text)).replace("^", "**")
    tree = ast.parse(f"({plain})", mode="eval").body
    places = [at for at, letter in enumerate(text) for _ in ("**" if letter == "^" else "*")]
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            node.col_offset = places[node.col_offset - 1]
    return tree


def evaluate(node: ast.expr, words: Words, depth: int = 0) -> Any:
    """The value of a tree; a long sum is a chain to the left, walked without recursion."""
    if depth > _MAX_DEPTH:
        raise Fault("nested too deeply", node.col_offset)
    chain: list[ast.BinOp] = []
    while isinstance(node, ast.BinOp):
        chain.append(node)
        node = node.left
    value = _operand(node, words, depth)
    for step in reversed(chain):
        right = evaluate(step.right, words, depth + 1)
        value = _at(step.right, words.operators[type(step.op)], value, right)
    return value


def _operand(node: ast.expr, words: Words, depth: int) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        if not node.value <= LARGEST_NUMBER:
            raise Fault(f"numbers go up to {LARGEST_NUMBER:.0e}", node.col_offset)
        return words.number(float(node.value))
    if isinstance(node, ast.Name):
        return words.names[node.id]
    if isinstance(node, ast.UnaryOp):
        value = evaluate(node.operand, words, depth + 1)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        argument = evaluate(node.args[0], words, depth + 1)
        return _at(node, words.functions[node.func.id], argument)
    raise Fault(f"unexpected {type(node).__name__}", node.col_offset)  # no scan lets it through


def _at(node: ast.expr, call: Callable[..., Any], *arguments: Any) -> Any:
    """A call whose fault, if it has one, gets its place."""
    try:
        return call(*arguments)
    except Fault as fault:
        raise Fault(fault.reason, node.col_offset) from None


def _without_leading_zeros(token: re.Match[str]) -> str:
    """A token as Python takes it: 007 is no number there; the length is kept, for the places."""
    if token.lastgroup != "number":
        return token.group()
    digits = token.group().lstrip("0")
    whole = digits.removeprefix(".")[:1].isdigit()  # .5 is a number, "", . and e3 are not
    return (digits if whole else f"0{digits}").rjust(len(token.group()))


def _scan(text: str, words: Words) -> None:
    """Refuse every text outside the grammar, at the first token that cannot stand there."""
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
            raise Fault(f"unexpected {token!r}", at)
        if kind == "word":
            _check_word(token, at, text[at + len(token) :], words)
        depth += (token == "(") - (token == ")")
        if depth > _MAX_DEPTH:
            raise Fault("nested too deeply", at)
        wants_operand = kind == "symbol" and token != ")"
        previous, at = token, at + len(token)
    if not previous:
        raise Fault("nothing given")
    if wants_operand or depth:
        raise Fault("ends too early")


def _check_word(word: str, at: int, rest: str, words: Words) -> None:
    """A word with a bracket behind it is a function; any other stands for a value."""
    is_call = rest.lstrip().startswith("(")
    if word not in (words.functions if is_call else words.names):
        needs = "" if is_call or word not in words.functions else " without an argument"
        raise Fault(f"unexpected {word!r}{needs}", at)
