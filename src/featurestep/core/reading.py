"""Small readers of lists, and of a sweep file's tables: every refusal names the path of its key."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .errors import InvalidProblem

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Made = TypeVar("Made", bound="DataclassInstance")


def table(path: str, value: Any) -> dict[str, Any]:
    """A table, with plain text as keys."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidProblem(path, "must be a table", value)
    return dict(value)


def filled(path: str, value: Any) -> dict[str, Any]:
    """A table that is not empty."""
    found = table(path, value)
    if not found:
        raise InvalidProblem(path, "must not be empty", found)
    return found


def known_keys(path: str, value: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse a key that means nothing."""
    for key in value:
        if key not in known:
            where = f"{path}.{key}" if path else key
            raise InvalidProblem(where, f"is not known here ({', '.join(known)})", value[key])


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
    """Refusals get the path of the table that their parameter stands in."""
    try:
        yield
    except InvalidProblem as error:
        raise InvalidProblem(f"{path}.{error.parameter}", error.rule, error.value) from None


def made(path: str, kind: type[Made], value: Any) -> Made:
    """An object whose fields are the options of a table."""
    options = table(path, value)
    known_keys(path, options, [f.name for f in fields(kind)])
    with within(path):
        return kind(**options)
