"""A task made for tests: it counts its executions, fails where told, and may kill its worker."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from featurestep import NotConverged
from featurestep.sweeps import Task, Unit, Values


@dataclass(frozen=True, kw_only=True)
class Chore(Task):
    """Twice the ridge of every problem."""

    name = "chore"
    batch = 4
    meanings = {"double": "twice the ridge"}  # noqa: RUF012
    log: str | None = None  # a file with the ridge of every execution
    kill: float | None = None  # a ridge that kills its worker
    once: str | None = None  # a file that is made by the first kill and prevents others
    fail: float | None = None  # a ridge that raises
    refuse: float | None = None  # a ridge that has no answer
    pause: float = 0.0

    def answer_probes(self) -> dict[str, Values]:
        return {"chore": {"double": 2.0}}

    def compute(self, units: Sequence[Unit]) -> list[Values | Exception]:
        return [self._one(unit.problem.ridge) for unit in units]

    def _one(self, ridge: float) -> Any:
        time.sleep(self.pause)
        if self.log is not None:
            with open(self.log, "a") as log:
                log.write(f"{ridge}\n")
        if ridge == self.kill and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if ridge == self.fail:
            raise ZeroDivisionError("no luck")
        if ridge == self.refuse:
            return NotConverged("the equations have no solution")
        return {"double": 2 * ridge}
