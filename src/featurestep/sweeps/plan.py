"""From a sweep to its units of work (points, keys, bundles that travel together), and their run.

The state of a sweep: how far it is, why some of its units have no number, and what other numerics
have left. What others stored is never served unasked, and never lost.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from ..conventions import RATIOS
from ..core.axes import MAX_POINTS
from ..core.checks import check_file, within
from ..core.errors import InvalidProblem
from ..core.problem import Problem
from ..core.results import all_square
from .engines import Engine, Job, Report
from .identity import UNSTORED, Numerics, answers_of, describe, difference, key_of, portable, under
from .spec import Sweep
from .store import MISSING, Store, Version
from .tasks import Task, Unit

_NEEDED = (
    *(("n",), ("d", "phi"), ("width", "psi"), ("ridge",)),
    ("step_exponent", "step_size", "step_sizes"),
)


@dataclass(frozen=True)
class Plan:
    """Every unit of a sweep, in order: task by task, point by point, part by part."""

    sweep: Sweep
    problems: tuple[Problem, ...]
    units: tuple[Unit, ...]
    numerics: Mapping[str, Numerics]  # of each task's results, by its name
    is_current: bool = True  # False if some of them are not this version's

    def under(self, numerics: Mapping[str, Numerics], *, is_current: bool) -> Plan:
        """The same units with results of other numerics; tasks not named keep their own."""
        units = tuple(_retagged(unit, numerics) for unit in self.units)
        named = {**self.numerics, **numerics}
        return replace(self, units=units, numerics=named, is_current=is_current)

    def by_task(self) -> Iterator[tuple[Task, list[Unit]]]:
        """Each task with its units: points × parts."""
        for task, units in groupby(self.units, attrgetter("task")):
            yield task, list(units)

    def jobs(self, missing: Iterable[bytes]) -> Iterator[Job]:
        """The missing units in their bundles, each key once.

        Bundles are cut before anything is left out, so that a resumed sweep computes the rest in
        the company it would have had, and ends with the same digits.
        """
        left = set(missing)
        for task, units in self.by_task():
            for bundle in task.bundles(units):
                wanted = {unit.key: unit for unit in bundle if unit.key in left}
                left -= wanted.keys()
                if wanted:
                    yield Job(tuple(wanted.values()))


def _retagged(unit: Unit, numerics: Mapping[str, Numerics]) -> Unit:
    if unit.task.name not in numerics:
        return unit
    description = under(unit.description, numerics[unit.task.name])
    return unit._replace(key=key_of(description), description=description)


def make_plan(sweep: Sweep) -> Plan:
    """Build and check every problem, and name every unit; nothing is computed.

    Its numerics are those of a store in memory; `current_plan` has those of a file.
    """
    per_point = sum(len(task.parts) for task in sweep.tasks)
    size = per_point * math.prod(sweep.shape)
    if size > MAX_POINTS:
        raise InvalidProblem("sweep", f"must have at most {MAX_POINTS:.0e} units of work", size)
    problems = tuple(_problems(sweep))
    for task in sweep.tasks:
        with within(f"tasks.{task.name}"):
            for problem in problems:
                task.check(problem)
    all_square(problems)  # or none is
    numerics = {task.name: UNSTORED for task in sweep.tasks}
    return Plan(sweep, problems, tuple(_units(sweep.tasks, problems)), numerics)


def _units(tasks: Sequence[Task], problems: Sequence[Problem]) -> Iterator[Unit]:
    for task in tasks:
        parts = task.parts
        for point, problem in enumerate(problems):
            for part in parts:
                options = task.options(problem, part)
                description = describe(problem, task.name, options, UNSTORED)
                yield Unit(task, point, problem, part, description, key_of(description))


def _problems(sweep: Sweep) -> Iterator[Problem]:
    """The problem at every point, refusals with the path of the field behind them."""
    paths = {
        name: dimension.path_of(name) for dimension in sweep.dimensions for name in dimension.fields
    }
    known = {*sweep.problem, *paths}
    for names in _NEEDED:
        if not known.intersection(names):
            rule = f"{''.join(f'or problem.{name} ' for name in names[1:])}must be given"
            raise InvalidProblem(f"problem.{names[0]}", rule, None)
    for point in range(math.prod(sweep.shape)):
        try:
            yield portable(_problem(sweep, sweep.changes(point)))
        except InvalidProblem as error:
            path = paths.get(error.parameter, f"problem.{error.parameter}")
            raise InvalidProblem(path, error.rule, error.value) from None


def _problem(sweep: Sweep, changes: Mapping[str, Any]) -> Problem:
    """The base with some fields changed; a varied step replaces the base's own, however given."""
    if sweep.grid is not None:
        return sweep.grid.base.replace(**sweep.grid.fixed, **changes)
    given = dict(sweep.problem)
    if "step_sizes" in changes:
        for name in ("step_exponent", "step_scale", "step_size", "steps"):
            given.pop(name, None)
    elif "step_size" in changes:
        given.pop("step_exponent", None)
        given.pop("step_scale", None)
    elif "step_exponent" in changes:
        given.pop("step_size", None)
    given.update(changes)
    if not any(name in given for name in RATIOS):
        return Problem(**given)
    for name, partner in (("phi", "psi"), ("psi", "phi")):
        if name not in given:
            raise InvalidProblem(name, f"must be given together with {partner}", None)
    return Problem.from_ratios(**given)


@dataclass(frozen=True)
class SweepProgress:
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

    def after(self, report: Report) -> SweepProgress:
        """With the units of one more report."""
        counts = Counter(outcome.status for outcome in report.outcomes)
        return replace(self, **{name: getattr(self, name) + counts[name] for name in counts})


Watcher = Callable[[SweepProgress], None]


def open_store(sweep: Sweep) -> Store:
    """The sweep's store, for its one driver."""
    if sweep.store is None:
        return Store.in_memory()
    check_file("store", sweep.store)
    return Store.for_writing(sweep.store)


def execute(
    plan: Plan, store: Store, engine: Engine, *, retry: bool = False, watch: Watcher | None = None
) -> SweepProgress:
    """Compute and store the missing units; with `retry` also those that failed."""
    descriptions = {unit.key: unit.description for unit in plan.units}
    wanted = (MISSING, "failed") if retry else (MISSING,)
    missing = {unit.key for unit, row in store.of(plan.units) if row.status in wanted}
    progress = SweepProgress(len(descriptions), len(descriptions) - len(missing))
    if watch is not None:
        watch(progress)
    if not missing:
        return progress
    with closing(engine(plan.jobs(missing))) as reports:
        for report in reports:
            store.record(report, descriptions)
            progress = progress.after(report)
            if watch is not None:
                watch(progress)
    return progress


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
