"""What a sweep can compute, by name: one class each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.checks import from_table, listed, one_of, table
from ...core.errors import InvalidProblem
from .base import Part, Task, Unit, Values
from .simulate import Simulate
from .theory import BaselinesTask, LimitTask, Predict, SpectrumTask

__all__ = ["TASKS", "Part", "Task", "Unit", "Values", "read_tasks"]

TASKS: dict[str, type[Task]] = {
    kind.name: kind for kind in (Predict, LimitTask, BaselinesTask, SpectrumTask, Simulate)
}


def read_tasks(value: Any) -> tuple[Task, ...]:
    """The tasks of a file: a list of names, or a table of options for each."""
    if not isinstance(value, Mapping):
        names = [one_of("tasks", name, TASKS) for name in listed("tasks", value)]
        value = {name: {} for name in names}
        if len(value) < len(names):
            raise InvalidProblem("tasks", "must name each task once", names)
    tasks = table("tasks", value)
    if not tasks:
        raise InvalidProblem("tasks", f"must name some of {', '.join(TASKS)}", tasks)
    found = []
    for name, options in tasks.items():
        if name not in TASKS:
            raise InvalidProblem(f"tasks.{name}", f"is not a task ({', '.join(TASKS)})", options)
        found.append(from_table(f"tasks.{name}", TASKS[name], options))
    return tuple(found)
