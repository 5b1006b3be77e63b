"""One language for axes: the command line, sweep files, Python and the page write them alike.

v1,v2,…                      a list, as text or as one
START:STOP:COUNT             equally spaced; {start, stop, count} in a file
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

MAX_POINTS = 1_000_000  # a few kilobytes of a driver's memory each
SCALES = ("linear", "log")
NAMES = (*FIELDS, *RATIOS)  # what may be varied
_SIZES = ("n", "d", "width", "n_step")
_WORDS = ("activation", "target", "residual", "initial")
_RANGE = ("start", "stop", "count", "step", "scale")
_TEXT = "START:STOP:COUNT, log:START:STOP:COUNT, START:STOP:step=STEP or v1,v2,…"


def read_axis(path: str, text: str) -> tuple[str, tuple[Any, ...]]:
    """The field and its values behind `FIELD=VALUES`."""
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not values.strip():
        raise InvalidProblem(path, f"must read FIELD=VALUES: FIELD={_TEXT}", text)
    if name not in NAMES:
        raise InvalidProblem(path, f"must name a field ({', '.join(NAMES)})", name)
    try:
        return name, axis_values(path, name, values.strip())
    except InvalidProblem as error:
        raise InvalidProblem(error.parameter, error.rule, text) from None


def axis_values(path: str, field: str, value: Any, *, distinct: bool = True) -> tuple[Any, ...]:
    """The values of one field: text, a list, or the table of a range."""
    if isinstance(value, str):
        value = _from_text(path, field, value)
    if isinstance(value, Mapping):
        points = placed(field, spaced(path, table(path, value)))
        # rounding may have made some equal
        return tuple(dict.fromkeys(points)) if distinct else points
    values = listed(path, value)
    if distinct and _repeats(values):
        raise InvalidProblem(path, "must have distinct values", values)
    return tuple(values)


def _from_text(path: str, field: str, text: str) -> dict[str, Any] | list[Any]:
    """A text as the table or the list that it stands for."""
    if ":" not in text or field == "readout":
        return [value_of(field, part.strip()) for part in text.split(",")]
    parts = text.split(":")
    scale = "log" if parts[0].strip() == "log" else "linear"
    ends, (kind, _, step) = parts[scale == "log" : -1], parts[-1].partition("=")
    by_step = kind.strip() == "step" and bool(step)
    numbers = [number(part.strip()) for part in (*ends, step if by_step else parts[-1])]
    if len(numbers) != 3 or not all(map(_is_finite, numbers)):
        raise InvalidProblem(path, f"must read {_TEXT}, in numbers", text)
    start, stop, last = numbers
    if by_step:
        return {"start": start, "stop": stop, "step": last, "scale": scale}
    if not 1 <= last <= MAX_POINTS or last != int(last):
        raise InvalidProblem(path, f"must have a COUNT from 1 to {MAX_POINTS}", text)
    return {"start": start, "stop": stop, "count": int(last), "scale": scale}


def spaced(path: str, value: dict[str, Any]) -> FloatArray:
    """{start, stop, count}, on a log scale if asked, or {start, stop, step}."""
    known_keys(path, value, _RANGE)
    start, stop = (finite(f"{path}.{end}", value.get(end)) for end in ("start", "stop"))
    scale = one_of(f"{path}.scale", value.get("scale", "linear"), SCALES)
    if ("count" in value) == ("step" in value):
        raise InvalidProblem(path, "must have either count or step", value)
    if "step" in value:
        if scale == "log":
            raise InvalidProblem(f"{path}.step", "goes with a linear scale", value["step"])
        return _stepped(path, start, stop, finite(f"{path}.step", value["step"]))
    count = count_of(f"{path}.count", value["count"])
    if scale == "linear":
        return np.linspace(start, stop, count)
    positive_ends(path, start, stop)
    return np.geomspace(start, stop, count)


def _stepped(path: str, start: float, stop: float, step: float) -> FloatArray:
    if step == 0 or (stop - start) / step < 0:
        raise InvalidProblem(f"{path}.step", "must lead from start to stop", step)
    steps = (stop - start) / step
    if steps > MAX_POINTS:
        raise InvalidProblem(f"{path}.step", f"must give at most {MAX_POINTS:.0e} values", step)
    return start + step * np.arange(math.floor(steps + 1e-9) + 1, dtype=np.float64)


def _repeats(values: list[Any]) -> bool:
    try:
        return len(set(values)) < len(values)
    except TypeError:  # laws as lists of pairs
        return len(set(map(repr, values))) < len(values)


def placed(field: str, points: FloatArray) -> tuple[Any, ...]:
    """Points as a field takes them: sizes are whole numbers, others have twelve digits."""
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


def positive_ends(path: str, low: float, high: float) -> None:
    """Refuse ends that have no logarithm."""
    if not (low > 0 and high > 0):
        raise InvalidProblem(path, "must have ends > 0 on a log scale", [low, high])


def count_of(path: str, value: Any) -> int:
    """How many points."""
    count = whole_number(path, value)
    if count > MAX_POINTS:
        raise InvalidProblem(path, f"must be at most {MAX_POINTS:.0e}", value)
    return count


def value_of(name: str, text: Any) -> Any:
    """A text as the value a field takes; what cannot be read is left to the field's checks."""
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


def law(text: str) -> list[tuple[float, float]]:
    """`value:probability,value:probability,…` as pairs."""
    try:
        pairs = [tuple(map(float, pair.split(":"))) for pair in text.split(",")]
        return [(value, probability) for value, probability in pairs]
    except ValueError:
        rule = "must be a name or value:probability pairs such as -1:0.5,1:0.5"
        raise InvalidProblem("readout", rule, text) from None


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
