"""The tasks that need the theory alone: its verbs, problem by problem."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from ...core.errors import InvalidProblem
from ...core.problem import Problem
from ...core.results import Result
from ...theory import Baselines, Limit, Prediction, Spectrum, baselines, limit, spectrum
from ...theory.limits import checked_degree
from ...theory.predict import solve
from ...theory.prediction import answered
from .base import Part, Task, Unit, Values

Verb = Callable[[Problem], Result]
_OF_BULK = ("edge", "margin", "count")
_OF_SPIKES = ("location", "degree", "resolved")


class TheoryTask(Task):
    """A verb at every problem; what it raises is that unit's own affair."""

    batch = 20

    @abstractmethod
    def verb(self, problems: Sequence[Problem]) -> Verb:
        """What answers for each of some problems, which it is asked in this order."""

    def values(self, found: Any) -> Values:
        """The numbers as they are, lists of notes and of powers as text."""
        return {
            name: "; ".join(map(str, value)) if isinstance(value, list) else value
            for name, value in found.as_dict().items()
        }

    def compute(self, units: Sequence[Unit]) -> list[Values | Exception]:
        problems = [unit.problem for unit in units]
        answer = self.verb(problems)
        found: list[Values | Exception] = []
        for problem in problems:
            try:
                found.append(self.values(answer(problem)))
            except Exception as error:
                found.append(error)
        return found


class Predict(TheoryTask):
    """Errors at finite n, solved in large batches."""

    name = "predict"
    batch = 1000
    meanings = Prediction.MEANINGS

    def verb(self, problems: Sequence[Problem]) -> Verb:
        outcomes = iter(solve(problems))
        return lambda _: answered(next(outcomes))


@dataclass(frozen=True, kw_only=True)
class LimitTask(TheoryTask):
    """Errors as n → ∞."""

    name = "limit"
    meanings = Limit.MEANINGS
    degree: int | Literal["maximal"] | None = None
    norm_growth: bool = False

    def __post_init__(self) -> None:
        checked_degree(self.degree)
        if not isinstance(self.norm_growth, bool):
            raise InvalidProblem("norm_growth", "must be true or false", self.norm_growth)

    def options(self, problem: Problem, part: Part) -> Mapping[str, Any]:
        return vars(self)

    def verb(self, problems: Sequence[Problem]) -> Verb:
        return partial(limit, **vars(self))


class BaselinesTask(TheoryTask):
    """Test errors of simpler predictors."""

    name = "baselines"
    meanings = Baselines.MEANINGS

    def verb(self, problems: Sequence[Problem]) -> Verb:
        return baselines


class SpectrumTask(TheoryTask):
    """The upper end: edge, number of resolved spikes, and some of every spike, largest first."""

    name = "spectrum"
    batch = 4
    meanings: ClassVar[Mapping[str, str]] = {
        **{name: Spectrum.MEANINGS[name] for name in _OF_BULK},
        **{
            f"{name}_{rank}": f"{Spectrum.MEANINGS[name]} (number {rank})"
            for rank in range(1, 7)
            for name in _OF_SPIKES
        },
    }

    def verb(self, problems: Sequence[Problem]) -> Verb:
        return spectrum

    def values(self, found: Any) -> Values:
        values = {name: getattr(found, name) for name in _OF_BULK}
        for rank, spike in enumerate(found.spikes, start=1):
            values |= {f"{name}_{rank}": getattr(spike, name) for name in _OF_SPIKES}
        return values
