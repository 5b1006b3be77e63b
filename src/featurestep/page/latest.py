"""Which question of a page is its latest: who asks something new no longer waits for the old."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

_PAGES = 1024  # lanes of open pages that are told apart


class Latest:
    """The number of the newest question of each lane of each page."""

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
