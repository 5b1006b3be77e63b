"""How far a sweep is, as it tells those who wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .job import Report


@dataclass(frozen=True)
class Progress:
    """How far a sweep is, in units."""

    total: int
    known: int  # stored before this run began
    ok: int = 0
    refused: int = 0
    failed: int = 0

    @property
    def done(self) -> int:
        """Units that are stored by now."""
        return self.known + self.ok + self.refused + self.failed

    def after(self, report: Report) -> Progress:
        """With the units of one more report."""
        counts = Counter(outcome.status for outcome in report.outcomes)
        return replace(
            self,
            ok=self.ok + counts["ok"],
            refused=self.refused + counts["refused"],
            failed=self.failed + counts["failed"],
        )


Watcher = Callable[[Progress], None]
