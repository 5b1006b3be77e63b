"""A task: what to compute at every point, how its units travel, and what they depend on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from ...core.errors import InvalidProblem
from ...core.extensions import require_known
from ...core.problem import Problem

Values = dict[str, Any]  # numbers, text or None by quantity


class Part(NamedTuple):
    """Which of a point's units: simulations have one for each variant and seed."""

    variant: str | None = None
    seed: int | None = None


class Unit(NamedTuple):
    """One result to have: the part of a task to do at a point, and the key it is stored under."""

    task: Task
    point: int
    problem: Problem
    part: Part
    description: str
    key: bytes


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """One kind of work. The fields of a subclass are its options in a sweep file."""

    name: ClassVar[str]
    batch: ClassVar[int]  # units of one job
    meanings: ClassVar[Mapping[str, str]]  # of its quantities
    known: ClassVar[Sequence[Collection[str]]] = ()  # fields it knows, see core.extensions
    loss_meanings: ClassVar[Mapping[str, str]] = {}  # with another loss than the square

    @property
    def probes(self) -> str:
        """The name of its probe problems; tasks of one name have the same."""
        return self.name

    @abstractmethod
    def answer_probes(self) -> Mapping[str, Values | Exception]:
        """Answers of small fixed problems, whatever the task's options (see `identity`).

        Together they should take a fraction of a second, and go through all code that decides
        numbers. Answers of probes that are added later are added to what a store knows.
        """

    @property
    def parts(self) -> Sequence[Part]:
        """The units of every point."""
        return (Part(),)

    def options(self, problem: Problem, part: Part) -> Mapping[str, Any]:
        """What a unit's result depends on besides its problem."""
        return {}

    def check(self, problem: Problem) -> None:
        """Refuse a problem that the task can never do, before anything starts."""
        require_known(problem, f"the task {self.name}", *self.known)

    def bundles(self, units: Sequence[Unit]) -> Iterator[Sequence[Unit]]:
        """The units that travel together; it must not depend on who computes them."""
        for start in range(0, len(units), self.batch):
            yield units[start : start + self.batch]

    def compute_problems(self, problems: Mapping[str, Problem]) -> dict[str, Values | Exception]:
        """Results of the first part at some problems, for `answer_probes`.

        Problems that the task refuses always are left out.
        """
        units = {}
        for name, problem in problems.items():
            with suppress(InvalidProblem):
                self.check(problem)
                units[name] = Unit(self, 0, problem, self.parts[0], "", b"")
        return dict(zip(units, self.compute(list(units.values())), strict=True))

    @abstractmethod
    def compute(self, units: Sequence[Unit]) -> list[Values | Exception]:
        """A result, or the error that refuses it, for each unit of a bundle."""
