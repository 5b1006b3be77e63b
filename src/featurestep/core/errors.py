"""The errors that the package raises; each names its cause."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.parse import unquote, urlsplit


class FeaturestepError(Exception):
    """Base of every error that this package raises on purpose."""

    is_request = False  # True if the request is wrong, False if computing the answer failed


class InvalidProblem(FeaturestepError, ValueError):
    """A parameter breaks its rule; the message has the parameter, the rule and the value."""

    is_request = True

    def __init__(self, parameter: str, rule: str, value: object) -> None:
        self.parameter = parameter
        self.rule = rule
        self.value = value
        super().__init__(f"{parameter} {rule}; got {_short(value)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.parameter, self.rule, self.value)


class InaccurateQuadrature(InvalidProblem):
    """A user's function cannot be integrated to the required accuracy."""


class NotConverged(FeaturestepError, ArithmeticError):
    """A solver did not reach its tolerance; `solution` is the last iterate, if there is one."""

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
    """Two expressions for the training loss disagree: the solution is wrong."""


class StoreError(FeaturestepError):
    """The store cannot be opened, read or written; its content is unchanged."""


class StoreInUse(StoreError):
    """Another process is writing to the store."""


class EngineError(FeaturestepError):
    """The engine cannot start, or its workers ended and cannot be restarted."""


class CannotStart(FeaturestepError):
    """Worker processes do not start; the message has the reason."""


def install_command(extra: str) -> str:
    """The command that adds an extra to this installation, by where pip took the package from."""
    try:
        found = json.loads(distribution("featurestep").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        found = {}
    url = str(found.get("url", ""))
    if "dir_info" in found:
        editable = "--editable " * bool(found["dir_info"].get("editable"))
        return f"pip install {editable}'{unquote(urlsplit(url).path)}[{extra}]'"
    if "vcs_info" in found:
        return f"pip install 'featurestep[{extra}] @ {found['vcs_info'].get('vcs')}+{url}'"
    return f"pip install 'featurestep[{extra}]'"


class NonFiniteFeatures(FeaturestepError, ArithmeticError):
    """A feature, label or gradient came out infinite or NaN; the message says where."""


class SingularSystem(FeaturestepError, ArithmeticError):
    """The ridge system is singular to working precision; the message has the numbers."""


class InsufficientMemory(FeaturestepError, MemoryError):
    """The run would need more memory than allowed; refused before anything is allocated."""

    is_request = True


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."
