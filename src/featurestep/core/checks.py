"""Checks of a user's input: numbers, words, lists, tables and paths of files.

Each returns the value as its type, or raises InvalidProblem with the parameter (for a table's key
its path, such as `axes.ridge`), the rule and the value.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .errors import InvalidProblem

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MAX_SIZE = 10**15
Made = TypeVar("Made", bound="DataclassInstance")


def _is_number(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    return isinstance(value, (int, float, np.integer, np.floating))


@contextmanager
def readable(name: str, rule: str, value: Any) -> Iterator[None]:
    """Turn a TypeError or ValueError, from reading a value, into InvalidProblem with this rule."""
    try:
        yield
    except (TypeError, ValueError):
        raise InvalidProblem(name, rule, value) from None


def positive(name: str, value: Any) -> float:
    """A number > 0."""
    return number(name, value, "must be > 0", lambda v: v > 0)


def non_negative(name: str, value: Any) -> float:
    """A number ≥ 0."""
    return number(name, value, "must be >= 0", lambda v: v >= 0)


def whole_number(name: str, value: Any) -> int:
    """A whole number from 1 to MAX_SIZE, also if written as 1e6."""
    rule = f"must be a whole number from 1 to {MAX_SIZE:.0e}"
    if not _is_number(value):
        raise InvalidProblem(name, rule, value)
    if not 1 <= value <= MAX_SIZE or value != int(value):
        raise InvalidProblem(name, rule, value)
    return int(value)


def number(name: str, value: Any, rule: str, test: Callable[[float], bool]) -> float:
    """A finite real number for which `test`, in words the rule, is true."""
    if not _is_number(value):
        raise InvalidProblem(name, f"{rule} (a number)", value)
    if not math.isfinite(value) or not test(float(value)):
        raise InvalidProblem(name, rule, value)
    return float(value)


def one_of(name: str, value: Any, known: Collection[str]) -> str:
    """One of the known words."""
    if not isinstance(value, str) or value not in known:
        raise InvalidProblem(name, f"must be one of {', '.join(known)}", value)
    return value


def rounded(name: str, what: str, value: float) -> int:
    """A size that was computed from a ratio, rounded to a whole number."""
    if not 0.5 <= value <= MAX_SIZE:
        raise InvalidProblem(name, f"must give {what} between 1 and {MAX_SIZE:.0e}", value)
    return max(1, round(value))


def table(path: str, value: Any) -> dict[str, Any]:
    """A table (mapping) whose keys are text, as a dict."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidProblem(path, "must be a table", value)
    return dict(value)


def filled_table(path: str, value: Any) -> dict[str, Any]:
    """A table that is not empty."""
    found = table(path, value)
    if not found:
        raise InvalidProblem(path, "must not be empty", found)
    return found


def known_keys(path: str, value: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse a table with a key that is not known."""
    for key in value:
        if key not in known:
            where = f"{path}.{key}" if path else key
            raise InvalidProblem(
                where, f"is not a known name here ({', '.join(known)})", value[key]
            )


def text(path: str, value: Any) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidProblem(path, "must be text", value)
    return value


def listed(path: str, value: Any) -> list[Any]:
    """A list that is not empty; from Python also a tuple or an array."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InvalidProblem(path, "must be a list", value)
    values = list(value)
    if not values:
        raise InvalidProblem(path, "must not be empty", values)
    return values


@contextmanager
def within(path: str) -> Iterator[None]:
    """Put the path of a table before the parameter of every InvalidProblem raised inside."""
    try:
        yield
    except InvalidProblem as error:
        raise InvalidProblem(f"{path}.{error.parameter}", error.rule, error.value) from None


def from_table(path: str, kind: type[Made], value: Any) -> Made:
    """A dataclass made from a table whose keys are its fields."""
    options = table(path, value)
    known_keys(path, options, [f.name for f in fields(kind)])
    with within(path):
        return kind(**options)


def check_file(parameter: str, path: str | Path, endings: Iterable[str] = ()) -> None:
    """Refuse a path at which no file can be written, or with none of the endings, if given."""
    target, allowed = Path(path), tuple(endings)
    if allowed and target.suffix.lower() not in allowed:
        raise InvalidProblem(parameter, f"must end in {', '.join(allowed)}", str(path))
    if not os.path.isdir(target.parent):
        raise InvalidProblem(parameter, "must be in a directory that exists", str(path))
    if os.path.isdir(target):
        raise InvalidProblem(parameter, "must be a file, not a directory", str(path))


def write_whole(parameter: str, path: Path, content: bytes) -> None:
    """Write a file under a temporary name, then rename it: readers never see half of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        os.replace(partial, path)
    except OSError as error:
        raise unwritable(parameter, error, path) from None
    finally:
        with suppress(OSError):
            partial.unlink()


def unwritable(parameter: str, error: OSError, path: object) -> InvalidProblem:
    """The error for a file or folder that cannot be written."""
    return InvalidProblem(parameter, f"must be writable ({error.strerror})", str(path))
