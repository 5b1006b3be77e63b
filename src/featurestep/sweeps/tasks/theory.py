"""The tasks that need the theory alone: predict, limit and baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ...errors import InvalidProblem
from ...problem import Problem
from ...theory import Baselines, Limit, Prediction, baselines, limit
from ...theory.engine import solve
from ...theory.limits import checked_degree
from ...theory.predict import prediction
from .base import Task, Values, Work, each


@dataclass(frozen=True, kw_only=True)
class Predict(Task):
    """Errors at finite n, solved in large batches."""

    name: ClassVar[str] = "predict"
    batch: ClassVar[int] = 1000
    meanings: ClassVar[Mapping[str, str]] = Prediction.MEANINGS

    def compute(self, work: Sequence[Work]) -> list[Values | Exception]:
        outcomes = iter(solve([unit.problem for unit in work]))
        return each(work, lambda problem: _joined(prediction(problem, next(outcomes)).as_dict()))


@dataclass(frozen=True, kw_only=True)
class LimitTask(Task):
    """Errors as n → ∞."""

    name: ClassVar[str] = "limit"
    batch: ClassVar[int] = 20
    meanings: ClassVar[Mapping[str, str]] = Limit.MEANINGS
    degree: int | Literal["maximal"] | None = None
    norm_growth: bool = False

    def __post_init__(self) -> None:
        checked_degree(self.degree)
        if not isinstance(self.norm_growth, bool):
            raise InvalidProblem("norm_growth", "must be true or false", self.norm_growth)

    def options(self, work: Work) -> Mapping[str, Any]:
        return {"degree": self.degree, "norm_growth": self.norm_growth}

    def compute(self, work: Sequence[Work]) -> list[Values | Exception]:
        return each(work, self._one)

    def _one(self, problem: Problem) -> Values:
        found = limit(problem, degree=self.degree, norm_growth=self.norm_growth)
        return _joined(found.as_dict())


@dataclass(frozen=True, kw_only=True)
class BaselinesTask(Task):
    """Test errors of simpler predictors."""

    name: ClassVar[str] = "baselines"
    batch: ClassVar[int] = 20
    meanings: ClassVar[Mapping[str, str]] = Baselines.MEANINGS

    def compute(self, work: Sequence[Work]) -> list[Values | Exception]:
        return each(work, lambda problem: _joined(baselines(problem).as_dict()))


def _joined(values: Mapping[str, Any]) -> Values:
    """The numbers as they are, lists of notes and of powers as text."""
    return {
        name: "; ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in values.items()
    }
