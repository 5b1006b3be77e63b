"""What goes beyond the Problem: inputs, labels and steps outside the theory's assumptions."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from ...core.checks import number, readable, whole_number
from ...core.errors import InvalidProblem
from ...core.problem import Problem
from ...core.results import Note, equal_values
from ...core.types import FloatArray
from ...functions.targets import Teacher
from .laws import checked_covariance, eigenpairs, parse_mixture

LAWS = ("gaussian", "rademacher", "uniform", "student_t(df)", "mixture(K, s)", "sphere")
_PLAIN = ("gaussian", "rademacher", "uniform", "sphere")
_STUDENT = re.compile(r"student_t\(\s*([0-9.eE+]+)\s*\)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """How the experiment departs from theory, section 1; the default does not.

    inputs
        Law of the inputs' coordinates (mean 0, variance 1): `gaussian`, `rademacher`, `uniform`,
        `student_t(df)` with df > 2; `sphere` (radius √d); `mixture(K, s)`, K Gaussian clusters, 2
        if left out, at the corners of a regular simplex of radius s in the first K − 1
        coordinates, each scaled to variance 1; or an array (rows, d) from which the samples are
        taken without replacement.
    spectrum, covariance
        Eigenvalues of the inputs' covariance, each for an equal share of the coordinates; or the
        covariance itself, a matrix (d, d).
    direction
        The target lies along this eigenvector of the covariance, 1 that of the largest eigenvalue
        (without a covariance, along this coordinate); by default along a random direction.
    teacher
        A target in place of the problem's, which may have several directions itself.
    corrupted
        Fraction of the training labels replaced by the label of an unrelated Gaussian input.
        Test labels are never corrupted.
    data
        `fresh`: the readout is fitted on a sample of its own; `same`: on the step's sample.
    steps
        A number of steps of size η each, or one multiple of η for each step.
    batches
        `fresh` or `same`: what the steps after the first are computed on.
    """

    inputs: Any = "gaussian"
    spectrum: tuple[float, ...] | None = None
    covariance: Any = None
    direction: int | None = None
    teacher: Teacher | None = None
    corrupted: float = 0.0
    data: str = "fresh"
    steps: int | tuple[float, ...] = 1
    batches: str = "fresh"

    def __post_init__(self) -> None:
        if not isinstance(self.inputs, str):
            object.__setattr__(self, "inputs", _checked_array(self.inputs))
        elif self.law is None:
            raise InvalidProblem(
                "inputs", f"must be one of {', '.join(LAWS)}, or an array", self.inputs
            )
        if self.spectrum is not None:
            object.__setattr__(self, "spectrum", _checked_spectrum(self.spectrum))
        if self.covariance is not None:
            if self.spectrum is not None:
                rule = "must not be given together with spectrum"
                raise InvalidProblem("covariance", rule, np.shape(self.covariance))
            object.__setattr__(self, "covariance", checked_covariance(self.covariance))
            self.eigenpairs  # noqa: B018 refused here, if at all
        if self.direction is not None:
            object.__setattr__(self, "direction", whole_number("direction", self.direction))
        if self.teacher is not None and not isinstance(self.teacher, Teacher):
            raise InvalidProblem("teacher", "must be a Teacher", self.teacher)
        number("corrupted", self.corrupted, "must be in [0, 1]", lambda v: 0 <= v <= 1)
        for name in ("data", "batches"):
            if getattr(self, name) not in ("fresh", "same"):
                raise InvalidProblem(name, "must be fresh or same", getattr(self, name))
        object.__setattr__(self, "steps", _checked_steps(self.steps))

    @cached_property
    def law(self) -> tuple[str, float] | None:
        """Name and parameter of the inputs' law, None for an array or an unknown name."""
        if not isinstance(self.inputs, str):
            return None
        if self.inputs in _PLAIN:
            return self.inputs, 0.0
        if self.mixture is not None:
            return "gaussian", 0.0
        match = _STUDENT.fullmatch(self.inputs.strip())
        if match is None:
            return None
        try:
            df = float(match.group(1))
        except ValueError:
            return None
        if not 2 < df < math.inf:
            raise InvalidProblem("inputs", "student_t needs df > 2 for a variance", self.inputs)
        return "student_t", df

    @cached_property
    def mixture(self) -> tuple[int, float] | None:
        """Clusters and separation, where the inputs are a mixture."""
        return parse_mixture(self.inputs) if isinstance(self.inputs, str) else None

    @cached_property
    def eigenpairs(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues of the given covariance, descending, and eigenvectors as rows."""
        return eigenpairs(self.covariance)

    @cached_property
    def root(self) -> FloatArray:
        """The symmetric root of the given covariance."""
        values, vectors = self.eigenpairs
        return np.asarray((vectors.T * np.sqrt(values)) @ vectors)

    def axis(self, d: int) -> FloatArray:
        """The chosen direction of the target, (1, d)."""
        assert self.direction is not None
        if self.covariance is not None:
            return self.eigenpairs[1][self.direction - 1 : self.direction]
        variances = np.ones(d) if self.spectrum is None else self.variances(d)
        chosen = np.argsort(-variances, kind="stable")[self.direction - 1]
        return np.eye(1, d, chosen)

    def variances(self, d: int) -> FloatArray:
        """Variance of each of d coordinates: every eigenvalue takes an equal share of them."""
        return np.array(self.spectrum)[np.arange(d) * len(self.spectrum or ()) // d]

    @property
    def multiples(self) -> tuple[float, ...]:
        """Size of each step as a multiple of η."""
        return (1.0,) * self.steps if isinstance(self.steps, int) else self.steps

    def directions(self, problem: Problem) -> int:
        """How many directions the target has."""
        return problem.directions if self.teacher is None else self.teacher.directions

    def teacher_of(self, problem: Problem) -> Teacher | None:
        """The target of several directions, where there is one."""
        return problem.teacher if self.teacher is None else self.teacher

    @property
    def departures(self) -> tuple[Note, ...]:
        """In words, where the theory's assumptions are left; empty when they hold.

        There it claims nothing, so that these notes admit any error.
        """
        named = self.inputs if isinstance(self.inputs, str) else "a given array"
        shaped = self.spectrum is not None or self.covariance is not None
        checks = (
            (named != "gaussian", f"inputs are {named}: the theory assumes Gaussian inputs"),
            (shaped, "inputs have a covariance: the theory assumes identity"),
            (
                self.direction is not None and (shaped or named != "gaussian"),
                f"the target lies along eigenvector {self.direction}: the theory has a random one",
            ),
            (self.teacher is not None, "a teacher replaces the problem's target"),
            (self.corrupted > 0, f"{self.corrupted:.3g} of the training labels are corrupted"),
            (
                self.data == "same",
                "the readout reuses the step's sample: the theory has a fresh one",
            ),
            (len(self.multiples) > 1, f"{len(self.multiples)} steps: the theory takes one"),
        )
        return tuple(Note(text, size=math.inf) for departs, text in checks if departs)

    @property
    def given(self) -> dict[str, Any]:
        """What differs from the default, ready for JSON; of arrays their shape."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {f.name: f.default for f in fields(self)}
        return {name: _shown(v) for name, v in found.items() if not equal_values(v, plain[name])}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Setting) and equal_values(self, other)

    def __hash__(self) -> int:
        return hash((self.corrupted, self.data, self.steps, self.batches))


def _shown(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return f"array {value.shape}"
    return list(value) if isinstance(value, tuple) else value


def _checked_array(inputs: Any) -> FloatArray:
    with readable("inputs", "must be a law's name or an array (rows, d)", inputs):
        array = np.array(inputs, dtype=np.float64)
    if array.ndim != 2 or array.size == 0:
        raise InvalidProblem("inputs", "must be an array (rows, d)", array.shape)
    if not np.all(np.isfinite(array)):
        raise InvalidProblem("inputs", "must be finite", "non-finite entries")
    array.setflags(write=False)
    return array


def _checked_spectrum(spectrum: Any) -> tuple[float, ...]:
    with readable("spectrum", "must be a list of eigenvalues", spectrum):
        values = tuple(float(v) for v in spectrum)
    if not values or not all(math.isfinite(v) and v >= 0 for v in values) or not any(values):
        raise InvalidProblem("spectrum", "must be eigenvalues >= 0, not all 0", spectrum)
    return values


def _checked_steps(steps: Any) -> int | tuple[float, ...]:
    rule = "must be a whole number >= 1 or one multiple of the step size for each step"
    if isinstance(steps, (int, np.integer)) and not isinstance(steps, bool):
        if steps < 1:
            raise InvalidProblem("steps", rule, steps)
        return int(steps)
    with readable("steps", rule, steps):
        values = tuple(float(v) for v in steps)
    if not values or not all(math.isfinite(v) and v >= 0 for v in values):
        raise InvalidProblem("steps", rule, steps)
    return values
