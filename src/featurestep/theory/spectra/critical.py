"""How large a step must be for degree-k features: when spikes leave the bulk, what is learned.

Both searches look at steps with equal ratios, and go to the first between which a number passes a
bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ...core.checks import whole_number
from ...core.display import Table, describe
from ...core.errors import FeaturestepError, InvalidProblem
from ...core.problem import Grid, Problem, interval
from ...core.results import GridResult, Progress, Result, over_grid, verb
from ...core.spiked import spiked_weights
from ...core.types import FloatArray
from ...functions.nonlinearity import normalised_hermite
from ...functions.quadrature import stretched_normal
from ...functions.roots import find_root
from ..limits import learned_powers
from ..predict import predict, solve
from ..prediction import Prediction, answered
from ..validity import spectrum_notes
from .model import HIGHEST, build_model
from .spikes import edge_and_spikes, strengths

_LOWEST = 1e-3  # smallest step searched
_HIGHEST = 4.0  # largest step searched, in units of √N
_SCAN, _CURVE = 13, 33  # steps that are looked at, for spikes and for halves
_PRESENT = 1e-9  # coefficients below it count as none
_BEYOND_THRESHOLD = 1.02  # factor on the critical step at which the new spike is looked at
_MAX_SPIKES = HIGHEST + 1  # that are followed


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


@verb()
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
    thresholds = spike_thresholds(problem, largest)
    halves = Halves(problem, largest, degrees)
    powers = learned_powers(problem, degrees)
    steps = []
    for k in range(1, degrees + 1):
        half, note = halves.find(k)
        step = thresholds.get(k)
        notes = [] if step else [f"no spike of degree {k} up to η = {largest:.4g}"]
        notes += [note] if note else []
        notes += _notes(problem.replace(step_size=step)) if step else ()
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


def _notes(problem: Problem) -> tuple[str, ...]:
    return spectrum_notes(problem, spiked_weights(problem))


def _places(largest: float, count: int) -> FloatArray:
    """Logarithms of steps."""
    return np.linspace(math.log(_LOWEST), math.log(largest), count)


def _at(problem: Problem, place: float) -> Problem:
    return problem.replace(step_size=math.exp(place))


def _crossing(gap: Callable[[float], float], low: float, high: float) -> float:
    """The step at which a gap vanishes between two places."""
    return math.exp(find_root(gap, low, high, absolute=1e-6))


def spike_thresholds(problem: Problem, largest: float) -> dict[int, float]:
    """The smallest step at which a spike of each degree leaves the bulk."""
    found: dict[int, float] = {}
    places = _places(largest, _SCAN)
    scan = [_tried(_at(problem, place)) for place in places]
    for (low, before), (high, after) in pairwise(zip(places, scan, strict=True)):
        if before is None or after is None:
            continue
        for i in np.flatnonzero((before < 1.0) & (after > 1.0)):
            threshold = _threshold(problem, int(i), float(low), float(high))
            if threshold is not None:
                found.setdefault(*threshold)
    return found


def _tried(problem: Problem) -> FloatArray | None:
    """Strengths at the end of the bulk."""
    try:
        return strengths(build_model(problem), _MAX_SPIKES)
    except FeaturestepError:
        return None


def _threshold(problem: Problem, rank: int, low: float, high: float) -> tuple[int, float] | None:
    """The degree, and the step at which the strength of a rank passes 1.

    A strength grows like a power of the step. The new spike's degree is that just beyond.
    """

    def gap(t: float) -> float:
        found = strengths(build_model(_at(problem, t)), _MAX_SPIKES)
        return math.log(max(float(found[rank]), 1e-300))

    try:
        step = _crossing(gap, low, high)
        beyond = problem.replace(step_size=_BEYOND_THRESHOLD * step)
        spikes = edge_and_spikes(build_model(beyond)).spikes
    except FeaturestepError:
        return None
    return (spikes[rank].degree, step) if rank < len(spikes) else None


class Halves:
    """How much of each degree of the target is learned, as a function of the step."""

    def __init__(self, problem: Problem, largest: float, degrees: int) -> None:
        self.problem, self.degrees = problem, degrees
        self.places = _places(largest, _CURVE)
        outcomes = solve([_at(problem, t) for t in self.places])
        self.shares: list[FloatArray | None] = []
        for outcome in outcomes:
            try:
                self.shares.append(self._share(answered(outcome)))
            except FeaturestepError:
                self.shares.append(None)

    def _share(self, found: Prediction) -> FloatArray:
        """E[M H_k]/E[y H_k | κ] for k = 1, 2, …; NaN where the target has no such part."""
        kappa, weight = _rule(found)
        hermite = normalised_hermite(self.degrees, kappa)[1:]
        target = hermite @ (weight * found.target_along(kappa))
        learned = hermite @ (weight * found.learned(kappa))
        present = np.abs(target) > _PRESENT
        return np.asarray(np.where(present, learned / np.where(present, target, 1.0), np.nan))

    def find(self, degree: int) -> tuple[float | None, str]:
        """The first step at which half of a degree is learned, or why there is none."""
        k = degree - 1
        known = [(t, float(s[k])) for t, s in zip(self.places, self.shares, strict=True)
                 if s is not None]  # fmt: skip
        if not known or all(math.isnan(share) for _, share in known):
            return None, f"the target has no part of degree {degree} along the learned direction"
        if known[0][1] >= 0.5:
            return None, f"half of degree {degree} is learned without a step"
        for (low, before), (high, after) in pairwise(known):
            if before < 0.5 <= after:
                return self._root(k, low, high), ""
        best = max(share for _, share in known)
        return None, f"at most {best:.0%} of degree {degree} is learned"

    def _root(self, k: int, low: float, high: float) -> float:
        def gap(t: float) -> float:
            return float(self._share(predict(_at(self.problem, t)))[k]) - 0.5

        return _crossing(gap, low, high)


def _rule(found: Prediction) -> tuple[FloatArray, FloatArray]:
    """Nodes in κ that resolve the learned function."""
    scale = 0.5 / max(0.5, float(np.abs(found.groups.shift).max()))
    return stretched_normal(((0.0, scale),), 1.0, 0.2, 9.0)
