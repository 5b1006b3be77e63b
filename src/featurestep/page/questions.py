"""What the page may ask, checked before anything is done, and which question is its latest."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..errors import InvalidProblem
from .state import MAX_QUERY

_NAME = re.compile(r"[A-Za-z0-9_-]{1,24}")
_MOST = 10**9  # questions of one page
_PAGES = 1024  # lanes of open pages that are told apart
Rule = tuple[str, Callable[[Any], bool]]

_LENGTH = f"must be text of at most {MAX_QUERY} characters"
_QUERY: Rule = (_LENGTH, lambda value: isinstance(value, str) and len(value) <= MAX_QUERY)
_TOKEN: Rule = ("must be a name", lambda value: type(value) is str and bool(_NAME.fullmatch(value)))
# What one lane's panels show of a state; who is overtaken by the same page is dropped.
QUESTION: dict[str, Rule] = {
    "lane": ("must be main or spectrum", lambda value: value in ("main", "spectrum")),
    "q": _QUERY,
    "seq": (f"must be from 0 to {_MOST}", lambda value: type(value) is int and 0 <= value <= _MOST),
    "how": ("must be draft, close or full", lambda value: value in ("draft", "close", "full")),
    "page": _TOKEN,
}
# Start a simulation of a state, look at one, or cancel it.
START: dict[str, Rule] = {"action": ("must be start", lambda value: value == "start"), "q": _QUERY}
WATCH: dict[str, Rule] = {
    "action": ("must be start, look or cancel", lambda value: value in ("look", "cancel")),
    "job": _TOKEN,
}


def checked(body: Any, rules: dict[str, Rule]) -> dict[str, Any]:
    """A request's JSON with exactly these members, each as its rule has it, or InvalidProblem."""
    if not isinstance(body, dict) or set(body) != set(rules):
        raise InvalidProblem("body", f"must be JSON of {', '.join(rules)}", type(body).__name__)
    for name, (rule, fits) in rules.items():
        if not fits(body[name]):
            raise InvalidProblem(name, rule, body[name])
    return body


class Latest:
    """The newest question of each lane of each page: who asks anew no longer waits for the old."""

    def __init__(self) -> None:
        self._numbers: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, page: str, lane: str, number: int) -> Callable[[], bool]:
        """Take in a question; the function returned tells whether it is still the newest."""
        key = (page, lane)
        with self._lock:
            self._numbers[key] = max(number, self._numbers.pop(key, 0))
            while len(self._numbers) > _PAGES:
                self._numbers.popitem(last=False)

        def wanted() -> bool:
            return self._numbers.get(key, number) <= number

        return wanted
