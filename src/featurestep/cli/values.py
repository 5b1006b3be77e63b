"""The command line's values: text to numbers, lists and bounds."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

from ..axes import number
from ..errors import InvalidProblem

_MEMORY = re.compile(r"([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*(?:([kmgt])(i)?)?b?", re.IGNORECASE)


def parse_search(text: str) -> tuple[str, tuple[Any, Any] | None]:
    """`NAME` or `NAME=LOW:HIGH`."""
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals:
        return name, None
    bounds = tuple(map(number, values.split(":")))
    if len(bounds) != 2 or not all(isinstance(b, (int, float)) and isfinite(b) for b in bounds):
        raise InvalidProblem("--best", "must read NAME or NAME=LOW:HIGH", text)
    return name, (bounds[0], bounds[1])


def numbers(text: str) -> list[Any]:
    """`v1,v2,…`, each as `number` reads it."""
    return [number(part.strip()) for part in text.split(",")]


def one_or_list(text: str) -> Any:
    """A number, or a list of them."""
    return numbers(text) if "," in text else number(text)


def memory(text: str) -> float:
    """Bytes behind `2GB`, `500 MiB` or a plain number of them."""
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        raise InvalidProblem("max_memory", "must read as 2GB, 500MiB or a number of bytes", text)
    digits, prefix, binary = match.groups()
    base = 1024 if binary else 1000
    return float(digits) * float(base) ** " kmgt".index((prefix or " ").lower())
