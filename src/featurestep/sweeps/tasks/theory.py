"""The tasks that need the theory alone: its verbs, problem by problem."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from ...core.errors import InvalidProblem
from ...core.extensions import LOSS
from ...core.problem import Problem
from ...core.results import Result
from ...theory import (
    Baselines,
    Limit,
    LossBaselines,
    LossPrediction,
    Prediction,
    Spectrum,
    baselines,
    limit,
    spectrum,
)
from ...theory.limits import checked_degree
from ...theory.predict import solve
from ...theory.prediction import answered, answered_loss
from .base import Part, Task, Unit, Values

Answering = Callable[[Problem], Result]
_OF_BULK = ("edge", "margin", "count")
_OF_SPIKES = ("location", "degree", "resolved")
_PROBE = {"n": 120, "d": 60, "width": 90, "step_exponent": 0.3, "ridge": 0.05}
_PROBES: dict[str, dict[str, Any]] = {  # what each changes
    "tanh": {},
    "relu": {"activation": "relu", "target": "H1 + 0.5*H2", "noise_std": 0.3},
    "rademacher": {"activation": "erf", "readout": "rademacher", "n": 60, "step_exponent": 0.46},
    "formula": {"activation": "abs(z-0.5)", "target": "sin(2*z)", "centre": True},
    "full residual": {"residual": "full", "initial": "gaussian"},
    "two directions": {"target": "z1*z2 + z1", "readout": "uniform"},
    "large": {"n": 4000, "n_step": 2000, "d": 1000, "width": 3000, "step_exponent": 0.1},
    "no step": {"step_exponent": None, "step_size": 0.0},
    "same rows": {"rows": "same"},
    "half of the rows": {"rows": "half", "initial": "gaussian", "readout": "rademacher"},
    "two steps": {"steps": 2},
    "covariance": {"covariance": [2.0, 1.0, 0.5], "target_direction": 1},
    "logistic": {"loss": "logistic", "intercept": True, "noise_std": 0.3, "flip": 0.1},
    "hinge": {"loss": "hinge", "target": "H0/2 + H1", "residual": "full", "noise_std": 0.3},
    "squared hinge": {"loss": "squared_hinge", "readout": "rademacher", "noise_std": 0.3},
    "huber": {"loss": "huber", "noise_std": 0.3},
}
_BOTH = (True, False)


class TheoryTask(Task):
    """A verb at every problem; what it raises is that unit's own affair."""

    batch = 20
    probed: ClassVar[Sequence[str]] = tuple(_PROBES)

    def answer_probes(self) -> Mapping[str, Values | Exception]:
        return self.compute_problems(probe_problems(self.probed))

    @abstractmethod
    def verb(self, problems: Sequence[Problem]) -> Answering:
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


def probe_problems(names: Sequence[str]) -> dict[str, Problem]:
    """Some of the theory's probe problems."""
    return {name: Problem(**{**_PROBE, **_PROBES[name]}) for name in names}


class Predict(TheoryTask):
    """Errors at finite n, solved in large batches."""

    name = "predict"
    batch = 1000
    known = (LOSS, {"steps"}, {"covariance"}, {"rows", "intercept"})
    meanings = Prediction.MEANINGS
    loss_meanings = LossPrediction.MEANINGS

    def verb(self, problems: Sequence[Problem]) -> Answering:
        kinds = {square: [p for p in problems if p.has_square_loss is square] for square in _BOTH}
        outcomes = {square: iter(solve(some)) for square, some in kinds.items()}

        def answer(problem: Problem) -> Result:
            outcome = next(outcomes[problem.has_square_loss])
            return answered(outcome) if problem.has_square_loss else answered_loss(outcome)

        return answer


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

    def answer_probes(self) -> Mapping[str, Values | Exception]:
        problems = probe_problems(self.probed)
        grown = LimitTask(norm_growth=True).compute_problems(problems)
        named = {f"{name}, with norm growth": found for name, found in grown.items()}
        return {**LimitTask().compute_problems(problems), **named}

    def options(self, problem: Problem, part: Part) -> Mapping[str, Any]:
        return vars(self)

    def verb(self, problems: Sequence[Problem]) -> Answering:
        return partial(limit, **vars(self))


class BaselinesTask(TheoryTask):
    """Test errors of simpler predictors."""

    name = "baselines"
    known = (LOSS, {"rows", "intercept"})
    probed = tuple(  # those of other losses take a second or two each
        name for name, changes in _PROBES.items() if changes.get("loss", "huber") == "huber"
    )
    meanings = Baselines.MEANINGS
    loss_meanings = LossBaselines.MEANINGS

    def verb(self, problems: Sequence[Problem]) -> Answering:
        return baselines


class SpectrumTask(TheoryTask):
    """The upper end: edge, number of resolved spikes, and some of every spike, largest first."""

    name = "spectrum"
    batch = 4
    known = ({"steps"}, {"rows"})
    probed = ("tanh", "rademacher")  # half a second each
    meanings: ClassVar[Mapping[str, str]] = {
        **{name: Spectrum.MEANINGS[name] for name in _OF_BULK},
        **{
            f"{name}_{rank}": f"{Spectrum.MEANINGS[name]} (number {rank})"
            for rank in range(1, 7)
            for name in _OF_SPIKES
        },
    }

    def verb(self, problems: Sequence[Problem]) -> Answering:
        return spectrum

    def values(self, found: Any) -> Values:
        values = {name: getattr(found, name) for name in _OF_BULK}
        for rank, spike in enumerate(found.spikes, start=1):
            values |= {f"{name}_{rank}": getattr(spike, name) for name in _OF_SPIKES}
        return values
