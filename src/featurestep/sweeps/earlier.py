"""What a store has of a sweep from other numerics: never served unasked, and never lost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..errors import InvalidProblem
from .identity import Numerics
from .plan import Plan
from .store import Store


@dataclass(frozen=True)
class Earlier:
    """Units of one task that other numerics have stored."""

    task: str
    numerics: Numerics
    units: int
    package: str  # the version of featurestep behind the newest
    finished: float  # seconds since 1970

    def __str__(self) -> str:
        day = datetime.fromtimestamp(self.finished, UTC).date()
        made = f"featurestep {self.package}, {day}"
        return f"{self.units} of {self.task} stored by numerics {self.numerics} ({made})"

    def as_dict(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return {
            "task": self.task,
            "numerics": str(self.numerics),
            "units": self.units,
            "featurestep": self.package,
        }


def earlier_results(plan: Plan, store: Store) -> list[Earlier]:
    """What is stored of a plan's units by numerics that are not the plan's, the newest first."""
    own, origins = plan.numerics, store.origins()
    names = [task.name for task in plan.sweep.tasks]
    found = []
    for version in store.versions():
        if version.task not in names or version.numerics == own[version.task]:
            continue
        task = names.index(version.task)
        units = plan.under({version.task: version.numerics}).units_of(task)
        count = len(store.statuses({unit.key for unit in units}))
        if count:
            package = origins[version.origin].get("featurestep", "unknown")
            found.append(Earlier(version.task, version.numerics, count, package, version.finished))
    return found


def under_numerics(plan: Plan, store: Store, tags: Collection[str]) -> Plan:
    """The plan with its results as the numerics named have stored them."""
    if not tags:
        return plan
    stored = earlier_results(plan, store)
    known = dict.fromkeys(str(each.numerics) for each in stored)
    for tag in tags:
        if tag not in known:
            rule = f"must be others that have results here ({', '.join(known) or 'there are none'})"
            raise InvalidProblem("numerics", rule, tag)
    chosen = [each for each in reversed(stored) if str(each.numerics) in tags]
    return plan.under({each.task: each.numerics for each in chosen})
