"""How large a step must be for degree-k features: when spikes leave the bulk, what is learned."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...core.checks import whole_number
from ...core.display import Table, describe
from ...core.errors import InvalidProblem
from ...core.problem import Grid, Problem, interval
from ...core.results import GridResult, Progress, Result, over_grid, verb
from ...core.types import FloatArray
from ..limits import learned_powers
from .model import spectrum_notes
from .outliers import HIGHEST
from .steps import Halves, births

_HIGHEST = 4.0  # largest step searched, in units of √N


@dataclass(frozen=True)
class CriticalStep:
    """The steps that one degree needs; None, with the reason in `notes`, where there is none."""

    degree: int
    spike_step: float | None  # η at which the degree's spike leaves the bulk
    spike_exponent: float | None  # α at this n, η = step_scale·n^α
    half_step: float | None  # η at which half of the target's degree-k part along κ is learned
    half_exponent: float | None
    published_exponent: float | None  # α beyond which the degree is learned as n → ∞
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class CriticalSteps(Result):
    """Critical steps of one problem, degree by degree; `steps` has each degree whole."""

    MEANINGS: ClassVar[Mapping[str, str]] = {
        "spike_step": "step size η at which the degree's spike leaves the bulk",
        "spike_exponent": "the same as an exponent α at this n, η = step_scale·n^α",
        "half_step": "step size at which half of the target's part of the degree is learned",
        "half_exponent": "the same as an exponent",
        "published_exponent": "exponent beyond which the degree is learned as n → ∞",
    }
    DIMS: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(MEANINGS, ("degree",))
    COLUMNS: ClassVar[tuple[str, ...]] = ("spike_step", "half_step")

    problem: Problem
    steps: tuple[CriticalStep, ...]
    largest_step: float  # the end of the search

    def __getattr__(self, name: str) -> FloatArray:
        """A number by degree; NaN where there is none."""
        if name not in self.MEANINGS:
            raise AttributeError(name)
        values = [getattr(step, name) for step in self.steps]
        return np.array([np.nan if value is None else value for value in values])

    @property
    def coordinates(self) -> dict[str, Any]:
        """The degrees."""
        return {"degree": [step.degree for step in self.steps]}

    @property
    def notes(self) -> tuple[str, ...]:
        """Why a degree has no step, and how far to trust those that have one."""
        return tuple(f"degree {s.degree}: {note}" for s in self.steps for note in s.notes)

    def heading(self) -> list[str]:
        """The problem without its step, which does not matter."""
        return describe(self.problem, ("step_size", "step_exponent", "step_scale"))

    def tables(self) -> list[Table]:
        """A row for each degree."""
        header = ("degree", "spike leaves at η", "α", "half learned at η", "α", "published α")
        rows = [
            (s.degree, s.spike_step, s.spike_exponent, s.half_step, s.half_exponent,
             s.published_exponent)
            for s in self.steps
        ]  # fmt: skip
        return [Table.of(header, rows)]

    def __iter__(self) -> Iterator[CriticalStep]:
        return iter(self.steps)

    def __getitem__(self, degree: int) -> CriticalStep:
        """The entry of a degree, counted from 1."""
        if not 1 <= degree <= len(self.steps):
            raise InvalidProblem("degree", f"must be from 1 to {len(self.steps)}", degree)
        return self.steps[degree - 1]

    def as_dict(self) -> dict[str, Any]:
        """The numbers and notes, ready for JSON."""
        rows = [{**vars(step), "notes": list(step.notes)} for step in self.steps]
        return {"largest_step": self.largest_step, "degrees": rows, "notes": list(self.notes)}


@verb
def critical_steps(
    problem: Problem | Grid, *, degrees: int = 4, progress: Progress | None = None
) -> CriticalSteps | GridResult:
    """How large must the step be to learn features of degree 1, 2, …?

    For each degree: the step at which its spike leaves the bulk, and the step at which half of the
    target's part of that degree, as seen along the learned direction, is learned by the network.
    Steps are searched from 0.001 to 4√width; the problem's own step does not matter.
    """
    if whole_number("degrees", degrees) > HIGHEST:
        raise InvalidProblem("degrees", f"must be from 1 to {HIGHEST}", degrees)
    if isinstance(problem, Grid):
        return over_grid(CriticalSteps, problem, partial(critical_steps, degrees=degrees), progress)
    largest = _HIGHEST * math.sqrt(problem.width)
    born = births(problem, largest)
    halves = Halves(problem, largest, degrees)
    powers = learned_powers(problem, degrees)
    steps = []
    for k in range(1, degrees + 1):
        half, note = halves.find(k)
        step = born.get(k)
        notes = [] if step else [f"no spike of degree {k} up to η = {largest:.4g}"]
        notes += [note] if note else []
        notes += spectrum_notes(problem.replace(step_size=step)) if step else ()
        steps.append(
            CriticalStep(
                degree=k,
                spike_step=step,
                spike_exponent=_exponent(problem, step),
                half_step=half,
                half_exponent=_exponent(problem, half),
                published_exponent=interval(k)[0] if k in powers else None,
                notes=tuple(notes),
            )
        )
    return CriticalSteps(problem, tuple(steps), largest)


def _exponent(problem: Problem, step: float | None) -> float | None:
    """α with step_scale·n^α = step."""
    if step is None or step <= 0.0:
        return None
    return math.log(step / problem.step_scale) / math.log(problem.n)
