"""How far a sweep is, and why some of its units have no number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .earlier import Earlier, earlier_results
from .identity import Numerics
from .plan import Plan
from .store import Store
from .table import MISSING

STATES = ("ok", "refused", "failed", MISSING)


@dataclass(frozen=True)
class SweepStatus:
    """Units by task and state, reasons with their numbers, and what computed the results."""

    by_task: Mapping[str, Mapping[str, int]]
    reasons: Mapping[tuple[str, str, str], int]  # task, state and error
    executions: int
    seconds: float  # of computing, over all workers
    origins: tuple[Mapping[str, str], ...]
    numerics: Mapping[str, Numerics]  # by task
    earlier: tuple[Earlier, ...]  # what other numerics have stored of the same units

    def count(self, state: str) -> int:
        """Units in a state."""
        return sum(states[state] for states in self.by_task.values())

    @property
    def total(self) -> int:
        """All units."""
        return sum(map(self.count, STATES))

    def as_dict(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        reasons = [
            {"task": task, "status": state, "error": error, "units": units}
            for (task, state, error), units in self.reasons.items()
        ]
        return {
            "units": self.total,
            **{state: self.count(state) for state in STATES},
            "tasks": {name: dict(states) for name, states in self.by_task.items()},
            "reasons": reasons,
            "executions": self.executions,
            "seconds": self.seconds,
            "origins": [dict(origin) for origin in self.origins],
            "numerics": dict(self.numerics),
            "earlier": [each.as_dict() for each in self.earlier],
        }


def make_status(plan: Plan, store: Store | None) -> SweepStatus:
    """The state of every unit; without a store all are missing."""
    names = [task.name for task in plan.sweep.tasks]
    counts = {name: Counter[str]() for name in names}
    reasons: Counter[tuple[str, str, str]] = Counter()
    executions, seconds, origins = 0, 0.0, dict[int, Mapping[str, str]]()
    for unit in plan.units:
        counts[names[unit.task]][MISSING] += 1
    for row in store.fetch([unit.key for unit in plan.units]) if store is not None else ():
        task = names[plan.units[row.place].task]
        counts[task][MISSING] -= 1
        counts[task][row.status] += 1
        executions, seconds = executions + row.executions, seconds + row.seconds
        origins[row.origin] = {}
        if row.status != "ok":
            reasons[task, row.status, row.error] += 1
    known = store.origins() if store is not None else {}
    return SweepStatus(
        by_task={name: {state: counts[name][state] for state in STATES} for name in names},
        reasons=dict(reasons.most_common()),
        executions=executions,
        seconds=seconds,
        origins=tuple(known[number] for number in sorted(origins)),
        numerics=plan.numerics,
        earlier=tuple(earlier_results(plan, store)) if store is not None else (),
    )
