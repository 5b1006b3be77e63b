"""What the page may ask, checked before anything is done, and which question is its latest."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..core.errors import InvalidProblem
from .state import MAX_QUERY, Choice, Limits, Number, Text

LANES = ("main", "spectrum")
HOW = ("draft", "full")  # how exactly: what follows a slider, and what is shown at rest
_PAGES = 1024  # lanes of open pages that are told apart
_QUERY = Text(MAX_QUERY)
_NAME = Text(24, "[A-Za-z0-9_-]+")
# What one lane's panels show of a state; who is overtaken by the same page is dropped.
QUESTION: dict[str, Limits] = {
    "lane": Choice(LANES),
    "q": _QUERY,
    "seq": Number(0, 10**9, whole=True),
    "how": Choice(HOW),
    "page": _NAME,
}
# Start a simulation of a state, look at one, or cancel it.
START: dict[str, Limits] = {"action": Choice(("start",)), "q": _QUERY}
WATCH: dict[str, Limits] = {"action": Choice(("look", "cancel")), "job": _NAME}


def checked(body: Any, limits: dict[str, Limits]) -> dict[str, Any]:
    """A request's JSON with exactly these members, each within its limits, or InvalidProblem."""
    if not isinstance(body, dict) or set(body) != set(limits):
        raise InvalidProblem("body", f"must be JSON of {', '.join(limits)}", type(body).__name__)
    return {name: each.check(name, body[name]) for name, each in limits.items()}


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
