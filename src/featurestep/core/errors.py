"""Everything the package refuses, as typed errors that name the cause."""

from __future__ import annotations

from typing import Any


class FeaturestepError(Exception):
    """Base of every error this package raises on purpose."""

    is_request = False  # whether the fault is in what was asked, not in what came of it


class InvalidProblem(FeaturestepError, ValueError):
    """A parameter breaks its rule: one line with the parameter, the rule and the value got."""

    is_request = True

    def __init__(self, parameter: str, rule: str, value: object) -> None:
        self.parameter = parameter
        self.rule = rule
        self.value = value
        super().__init__(f"{parameter} {rule}; got {_short(value)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.parameter, self.rule, self.value)


class InaccurateQuadrature(InvalidProblem):
    """A user's function could not be integrated to the promised accuracy."""


class NotConverged(FeaturestepError, ArithmeticError):
    """A solver stopped short of its tolerance; carries the solution it refuses."""

    def __init__(
        self,
        message: str,
        *,
        residual: float = float("nan"),
        iterations: int = 0,
        solution: object = None,
    ) -> None:
        self.message = message
        self.residual = residual
        self.iterations = iterations
        self.solution = solution
        super().__init__(message)


class InconsistentSolution(NotConverged):
    """The two expressions for the training loss disagree, so no number can be trusted."""


class StoreError(FeaturestepError):
    """The store cannot be opened, read or written; what it already holds is left as it is."""


class StoreInUse(StoreError):
    """Another driver is writing to the store."""


class EngineError(FeaturestepError):
    """The engine cannot start or has lost its workers for good."""


class CannotStart(FeaturestepError):
    """Worker processes do not start, for the reason told."""


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."
