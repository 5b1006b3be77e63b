"""How far a sweep is, why some of its units have no number, and what other numerics have left.

What others stored is never served unasked, and never lost.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import InvalidProblem
from .identity import Numerics
from .numerics import answers_of, difference
from .plan import Plan
from .store import MISSING, Store, Version

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
    earlier: tuple[Version, ...]  # what other numerics have stored of the same units

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


def make_status(plan: Plan, store: Store) -> SweepStatus:
    """The state of every unit; in an empty store all are missing."""
    states: Counter[tuple[str, str]] = Counter()
    reasons: Counter[tuple[str, str, str]] = Counter()
    executions, seconds, origins = 0, 0.0, set[str]()
    for unit, row in store.of(plan.units):
        states[unit.task.name, row.status] += 1
        executions, seconds = executions + row.executions, seconds + row.seconds
        origins.add(row.origin)
        if row.error:
            reasons[unit.task.name, row.status, row.error] += 1
    return SweepStatus(
        by_task={
            task.name: {state: states[task.name, state] for state in STATES}
            for task in plan.sweep.tasks
        },
        reasons=dict(reasons.most_common()),
        executions=executions,
        seconds=seconds,
        origins=tuple(json.loads(content) for content in sorted(origins) if content),
        numerics=plan.numerics,
        earlier=tuple(earlier_results(plan, store)),
    )


def current_plan(plan: Plan, store: Store) -> Plan:
    """The plan with the numerics under which a store has, or will have, this version's results."""
    if not store.is_kept:
        return plan
    tags = {
        task.name: store.numerics_of(task.probes, answers_of(task)) for task in plan.sweep.tasks
    }
    return plan.under(tags, is_current=True)


def earlier_results(plan: Plan, store: Store) -> list[Version]:
    """What is stored of a plan's units by numerics that are not the plan's, the newest first."""
    own, found = plan.numerics, []
    tasks = {task.name: task for task in plan.sweep.tasks}
    for version in store.versions():
        name = version.task
        if name not in own or version.numerics == own[name]:
            continue
        units = plan.under({name: version.numerics}, is_current=False).units
        keys = {unit.key for unit in units if unit.task.name == name}
        count = sum(row.status != MISSING for row in store.fetch(keys))
        if count:
            answers = store.answers(tasks[name].probes).get(str(version.numerics))
            gap = None if answers is None else difference(answers_of(tasks[name]), answers)
            found.append(version._replace(units=count, difference=gap))
    return found


def under_numerics(plan: Plan, store: Store, tags: Collection[str]) -> Plan:
    """The plan with its results as the numerics named have stored them."""
    if not tags:
        return plan
    stored = earlier_results(plan, store)
    known = dict.fromkeys(str(each.numerics) for each in stored)
    for tag in tags:
        if tag not in known:
            rule = f"must be a tag with results here ({', '.join(known) or 'there are none'})"
            raise InvalidProblem("numerics", rule, tag)
    chosen = [each for each in reversed(stored) if str(each.numerics) in tags]
    return plan.under({each.task: each.numerics for each in chosen}, is_current=False)
