"""The command line's values: text to numbers, laws, axes and bounds."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from ..conventions import RATIOS
from ..errors import InvalidProblem
from ..problem import FIELDS

MAX_POINTS = 100_000
_MEMORY = re.compile(r"([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*(?:([kmgt])(i)?)?b?", re.IGNORECASE)
_SIZES = ("n", "d", "width", "n_step")
_WORDS = ("activation", "target", "residual", "initial")


def parse_axis(text: str) -> tuple[str, tuple[Any, ...]]:
    """`FIELD=START:STOP:COUNT`, `FIELD=log:START:STOP:COUNT` or `FIELD=v1,v2,…`."""
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not values.strip():
        rule = "must read FIELD=START:STOP:COUNT, FIELD=log:START:STOP:COUNT or FIELD=v1,v2,…"
        raise InvalidProblem("--over", rule, text)
    known = (*FIELDS, *RATIOS)
    if name not in known:
        raise InvalidProblem("--over", f"must name a field ({', '.join(known)})", name)
    if ":" not in values:
        return name, tuple(value_of(name, part.strip()) for part in values.split(","))
    points = _points(text, values.strip())
    if name in _SIZES:
        return name, tuple(dict.fromkeys(round(point) for point in points))
    return name, tuple(points)


def parse_search(text: str) -> tuple[str, tuple[Any, Any] | None]:
    """`NAME` or `NAME=LOW:HIGH`."""
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals:
        return name, None
    bounds = tuple(map(number, values.split(":")))
    if len(bounds) != 2 or not all(map(_is_finite, bounds)):
        raise InvalidProblem("--best", "must read NAME or NAME=LOW:HIGH", text)
    return name, (bounds[0], bounds[1])


def _points(text: str, values: str) -> list[float]:
    """Equally spaced points, on a log scale if asked."""
    parts = values.split(":")
    is_log = parts[0] == "log"
    numbers = [number(part) for part in parts[is_log:]]
    if len(numbers) != 3 or not all(map(_is_finite, numbers)):
        raise InvalidProblem("--over", "must read FIELD=[log:]START:STOP:COUNT in numbers", text)
    start, stop, count = numbers
    if not 1 <= count <= MAX_POINTS or count != int(count):
        raise InvalidProblem("--over", f"must have a COUNT from 1 to {MAX_POINTS}", text)
    if is_log and not (start > 0 and stop > 0):
        raise InvalidProblem("--over", "must have START and STOP > 0 for log", text)
    spaced = np.geomspace if is_log else np.linspace
    rounded = (float(f"{point:.12g}") for point in spaced(start, stop, int(count)))
    return list(rounded)


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def value_of(name: str, text: Any) -> Any:
    """An option's text as the value a problem takes; what cannot be read is left to its checks."""
    if not isinstance(text, str) or name in _WORDS:
        return text
    if name == "readout":
        return law(text) if ":" in text else text
    if name == "centre":
        return {"true": True, "false": False}.get(text.lower(), text)
    return number(text)


def number(text: str) -> Any:
    """A whole number, a number, or the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


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


def law(text: str) -> list[tuple[float, float]]:
    """`value:probability,value:probability,…` as pairs."""
    try:
        pairs = [tuple(map(float, pair.split(":"))) for pair in text.split(",")]
        return [(value, probability) for value, probability in pairs]
    except ValueError:
        rule = "must be a name or value:probability pairs such as -1:0.5,1:0.5"
        raise InvalidProblem("readout", rule, text) from None
