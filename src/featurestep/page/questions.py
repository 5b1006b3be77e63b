"""What the page may ask, checked to the last member before anything is done."""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar

from ..errors import InvalidProblem
from .state import MAX_QUERY

MOST = 10**9  # questions of one page
_NAME = re.compile(r"[A-Za-z0-9_-]{1,24}")
_Asked = TypeVar("_Asked", "Question", "Order")


@dataclass(frozen=True)
class Question:
    """What one lane's panels show of a state; who is overtaken by the same page is dropped."""

    lane: str
    q: str
    seq: int
    draft: bool
    page: str

    def __post_init__(self) -> None:
        _check("lane", _one_of(self.lane, ("main", "spectrum")), "must be main or spectrum")
        _check("q", _is_query(self.q), f"must be text of at most {MAX_QUERY} characters")
        _check("seq", _is_count(self.seq), f"must be a whole number from 0 to {MOST}")
        _check("draft", isinstance(self.draft, bool), "must be true or false")
        _check("page", _is_name(self.page), "must be a page's name")


@dataclass(frozen=True)
class Order:
    """Start a simulation of a state, look at one, or cancel it."""

    action: str
    q: str = ""
    job: str | None = None

    def __post_init__(self) -> None:
        actions = ("start", "look", "cancel")
        _check("action", _one_of(self.action, actions), "must be start, look or cancel")
        _check("q", _is_query(self.q), f"must be text of at most {MAX_QUERY} characters")
        _check("job", self.job is None or _is_name(self.job), "must be a job's name")


def read(kind: type[_Asked], body: Any) -> _Asked:
    """The question behind a request's JSON, or InvalidProblem."""
    if not isinstance(body, dict):
        raise InvalidProblem("body", "must be a JSON object", body)
    named = {field.name: field for field in fields(kind)}
    for name in body:
        _check("body", name in named, f"must have no members but {', '.join(named)}")
    for name, field in named.items():
        _check(name, name in body or field.default is not MISSING, "must be given")
    return kind(**body)


def _check(name: str, fits: bool, rule: str) -> None:
    if not fits:
        raise InvalidProblem(name, rule, "something else")


def _one_of(value: Any, options: tuple[str, ...]) -> bool:
    return isinstance(value, str) and value in options


def _is_query(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_QUERY


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST
