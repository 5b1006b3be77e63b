"""Axes of grids, written alike on the command line, in sweep files, in Python and on the page.

v1,v2,…                      a list
START:STOP:COUNT             equally spaced; as a table {start, stop, count}
log:START:STOP:COUNT         on a log scale; {…, scale = "log"}
START:STOP:step=STEP         in steps; {start, stop, step}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..conventions import RATIOS
from .checks import known_keys, listed, one_of, table, whole_number
from .errors import InvalidProblem
from .problem import FIELDS
from .types import FloatArray

MAX_POINTS = 1_000_000  # of an axis or a grid: each takes a few kilobytes of memory
SCALES = ("linear", "log")
NAMES = (*FIELDS, *RATIOS)  # what may be varied
_SIZES = ("n", "d", "width", "n_step")
_TEXT_FIELDS = (  # whose values are text
    *("activation", "target", "residual", "initial", "loss", "rows", "batches"),
)
_LISTS = ("step_sizes", "target_mass")  # whose values are lists of numbers
_RANGE_KEYS = ("start", "stop", "count", "step", "scale")
_SYNTAX = "START:STOP:COUNT, log:START:STOP:COUNT, START:STOP:step=STEP or v1,v2,…"


def read_axis(path: str, text: str) -> tuple[str, tuple[Any, ...]]:
    """The field and the values of an axis given as `FIELD=VALUES`."""
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not values.strip():
        raise InvalidProblem(path, f"must read FIELD=VALUES: FIELD={_SYNTAX}", text)
    if name not in NAMES:
        raise InvalidProblem(path, f"must name a field ({', '.join(NAMES)})", name)
    try:
        return name, axis_values(path, name, values.strip())
    except InvalidProblem as error:
        raise InvalidProblem(error.parameter, error.rule, text) from None


def axis_values(path: str, field: str, value: Any, *, distinct: bool = True) -> tuple[Any, ...]:
    """The values of an axis given as text, as a list or as the table of a range.

    Two equal values are refused if `distinct`, unless a size was rounded to both.
    """
    if isinstance(value, str):
        value = _from_text(path, field, value)
    if isinstance(value, Mapping):
        points = field_values(field, spaced(path, table(path, value)))
        return tuple(dict.fromkeys(points)) if distinct else points
    values = listed(path, value)
    if distinct and _repeats(values):
        raise InvalidProblem(path, "must have distinct values", values)
    return tuple(values)


def _from_text(path: str, field: str, text: str) -> dict[str, Any] | list[Any]:
    """The table or the list that a text stands for."""
    if ":" not in text or field in ("readout", "covariance"):
        return [read_value(field, part.strip()) for part in text.split(",")]
    parts = text.split(":")
    scale = "log" if parts[0].strip() == "log" else "linear"
    ends, (kind, _, step) = parts[scale == "log" : -1], parts[-1].partition("=")
    by_step = kind.strip() == "step" and bool(step)
    numbers = [read_number(part.strip()) for part in (*ends, step if by_step else parts[-1])]
    if len(numbers) != 3 or not all(map(_is_finite, numbers)):
        raise InvalidProblem(path, f"must read {_SYNTAX}, in numbers", text)
    start, stop, last = numbers
    if by_step:
        return {"start": start, "stop": stop, "step": last, "scale": scale}
    if not 1 <= last <= MAX_POINTS or last != int(last):
        raise InvalidProblem(path, f"must have a COUNT from 1 to {MAX_POINTS}", text)
    return {"start": start, "stop": stop, "count": int(last), "scale": scale}


def spaced(path: str, value: dict[str, Any]) -> FloatArray:
    """The points of a range: {start, stop, count, scale} or {start, stop, step}."""
    known_keys(path, value, _RANGE_KEYS)
    start, stop = (finite(f"{path}.{end}", value.get(end)) for end in ("start", "stop"))
    scale = one_of(f"{path}.scale", value.get("scale", "linear"), SCALES)
    if ("count" in value) == ("step" in value):
        raise InvalidProblem(path, "must have either count or step", value)
    if "step" in value:
        if scale == "log":
            raise InvalidProblem(f"{path}.step", "needs a linear scale", value["step"])
        return _stepped(path, start, stop, finite(f"{path}.step", value["step"]))
    count = point_count(f"{path}.count", value["count"])
    if scale == "linear":
        return np.linspace(start, stop, count)
    check_log_ends(path, start, stop)
    return np.geomspace(start, stop, count)


def _stepped(path: str, start: float, stop: float, step: float) -> FloatArray:
    if step == 0 or (stop - start) / step < 0:
        raise InvalidProblem(f"{path}.step", "must have the sign of stop − start", step)
    steps = (stop - start) / step
    if steps > MAX_POINTS:
        raise InvalidProblem(f"{path}.step", f"must give at most {MAX_POINTS:.0e} values", step)
    return start + step * np.arange(math.floor(steps + 1e-9) + 1, dtype=np.float64)


def _repeats(values: list[Any]) -> bool:
    try:
        return len(set(values)) < len(values)
    except TypeError:  # laws as lists of pairs
        return len(set(map(repr, values))) < len(values)


def field_values(field: str, points: FloatArray) -> tuple[Any, ...]:
    """Points as values of a field: sizes are rounded, other numbers have twelve digits."""
    if field in _SIZES:
        return tuple(round(p) for p in points.tolist())
    return tuple(float(f"{p:.12g}") for p in points.tolist())  # so that 0.3 reads 0.3


def finite(path: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidProblem(path, "must be a number", value)
    if not math.isfinite(value):
        raise InvalidProblem(path, "must be finite", value)
    return float(value)


def check_log_ends(path: str, low: float, high: float) -> None:
    """Refuse ends of a log scale that are not above 0."""
    if not (low > 0 and high > 0):
        raise InvalidProblem(path, "must have ends > 0 on a log scale", [low, high])


def point_count(path: str, value: Any) -> int:
    """A number of points, from 1 to MAX_POINTS."""
    count = whole_number(path, value)
    if count > MAX_POINTS:
        raise InvalidProblem(path, f"must be at most {MAX_POINTS:.0e}", value)
    return count


def read_value(name: str, text: Any) -> Any:
    """The value of a field from its text; text that cannot be read is left to Problem's checks."""
    if not isinstance(text, str) or name in _TEXT_FIELDS:
        return text
    if name == "readout":
        return read_law(text) if ":" in text else text
    if name == "covariance":
        return _read_covariance(text)
    if name in _LISTS:
        return [read_number(part.strip()) for part in text.split(",")]
    if name in ("centre", "intercept"):
        return {"true": True, "false": False}.get(text.lower(), text)
    return read_number(text)


def read_number(text: str) -> Any:
    """A whole number, a number, or the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def read_law(text: str) -> list[tuple[float, float]]:
    """The pairs of a readout law written as `value:probability,value:probability,…`."""
    try:
        pairs = [tuple(map(float, pair.split(":"))) for pair in text.split(",")]
        return [(value, probability) for value, probability in pairs]
    except ValueError:
        rule = "must be a name or value:probability pairs such as -1:0.5,1:0.5"
        raise InvalidProblem("readout", rule, text) from None


def _read_covariance(text: str) -> Any:
    """`power(a)`, pairs `eigenvalue:share,…`, or eigenvalues `v1,v2,…`."""
    if "power" in text:
        return text
    parts = [
        [read_number(number.strip()) for number in part.split(":")] for part in text.split(",")
    ]
    return parts if ":" in text else [number for (number,) in parts]


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
