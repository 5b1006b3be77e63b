"""A task without work, in a module that workers can import: what is left is the overhead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from featurestep.sweeps import Task, Unit, Values


@dataclass(frozen=True, kw_only=True)
class Idle(Task):
    name: ClassVar[str] = "idle"
    batch: ClassVar[int] = 1  # every unit travels alone
    meanings: ClassVar[Mapping[str, str]] = {}

    def answer_probes(self) -> Mapping[str, Values | Exception]:
        return {"idle": {"answer": 0.0}}

    def compute(self, units: Sequence[Unit]) -> list[Values | Exception]:
        return [{"ridge": unit.problem.ridge} for unit in units]
