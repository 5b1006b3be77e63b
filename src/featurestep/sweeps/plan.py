"""From a sweep to its units of work (points, keys, bundles that travel together), and their run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from .engines import Engine
from .identity import Numerics, describe, key_of, portable, under
from .job import Job
from .numerics import UNSTORED
from .spec import Sweep
from .store import MISSING, Store
from .tasks import Task, Unit
from .verb import Progress, Watcher

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

    Its numerics are those of a store in memory; `status.current_plan` has those of a file.
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


def open_store(sweep: Sweep) -> Store:
    """The sweep's store, for its one driver."""
    if sweep.store is None:
        return Store.in_memory()
    check_file("store", sweep.store)
    return Store.for_writing(sweep.store)


def execute(
    plan: Plan, store: Store, engine: Engine, *, retry: bool = False, watch: Watcher | None = None
) -> Progress:
    """Compute and store the missing units; with `retry` also those that failed."""
    descriptions = {unit.key: unit.description for unit in plan.units}
    wanted = (MISSING, "failed") if retry else (MISSING,)
    missing = {unit.key for unit, row in store.of(plan.units) if row.status in wanted}
    progress = Progress(len(descriptions), len(descriptions) - len(missing))
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
