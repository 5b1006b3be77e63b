"""A task: what to compute at every point, how its units travel, and what they depend on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

from ...problem import Problem
from ...reading import known_keys, within
from ..numerics import fingerprint

Values = dict[str, Any]  # numbers, text or None by quantity


class Part(NamedTuple):
    """Which of a point's units: simulations have one for each variant and seed."""

    variant: str | None = None
    seed: int | None = None


class Work(NamedTuple):
    """One unit of work: a problem and the part of the task to do there."""

    problem: Problem
    part: Part


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """One kind of work. The fields of a subclass are its options in a sweep file."""

    name: ClassVar[str]
    batch: ClassVar[int]  # units of one job
    meanings: ClassVar[Mapping[str, str]]  # of its quantities
    engine: ClassVar[str] = "theory"  # or "simulation": where its numbers come from

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Self:
        """The task with the options of a file; every refusal names the option's path."""
        path = f"tasks.{cls.name}"
        known_keys(path, options, [f.name for f in fields(cls)])
        with within(path):
            return cls(**options)

    @property
    def numerics(self) -> str:
        """The fingerprint of the code behind its numbers."""
        return fingerprint(type(self), self.engine)

    @property
    def parts(self) -> Sequence[Part]:
        """The units of every point."""
        return (Part(),)

    def options(self, work: Work) -> Mapping[str, Any]:
        """What a unit's result depends on besides its problem."""
        return {}

    def check(self, problem: Problem) -> None:  # noqa: B027 most tasks take every problem
        """Refuse a problem that the task can never do, before anything starts."""

    def bundles(self, work: Sequence[Work]) -> Iterator[list[int]]:
        """Which units travel together, as indices; it must not depend on who computes them."""
        for start in range(0, len(work), self.batch):
            yield list(range(start, min(start + self.batch, len(work))))

    @abstractmethod
    def compute(self, work: Sequence[Work]) -> list[Values | Exception]:
        """A result, or the error that refuses it, for each unit of a bundle."""


def each(work: Sequence[Work], one: Any) -> list[Values | Exception]:
    """one(problem) for every unit; what it raises is that unit's own affair."""
    found: list[Values | Exception] = []
    for unit in work:
        try:
            found.append(one(unit.problem))
        except Exception as error:
            found.append(error)
    return found
