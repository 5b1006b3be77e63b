"""How large a step must be for degree-k features: when spikes leave the bulk, what is learned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ...checks import whole_number
from ...errors import FeaturestepError, InvalidProblem
from ...functions.nonlinearity import normalised_hermite
from ...functions.quadrature import stretched_normal
from ...problem import Problem
from ...regime import interval
from ...roots import root_between
from ...threads import one_thread
from ...types import FloatArray
from ..engine import solve
from ..predict import Prediction, predict, prediction
from ..spike_functions import learned_powers
from .continued import Equations
from .edges import right_edge
from .notes import spectrum_notes
from .outliers import HIGHEST, strengths
from .solve import outlook
from .typical import typical_batch

_LOWEST = 1e-3  # smallest step searched
_HIGHEST = 4.0  # largest step searched, in units of √N
_SCAN = 13
_CURVE = 65
_BORN = 1.1  # factor on the critical step at which a new spike's degree is read off
_PRESENT = 1e-9  # coefficients below it count as none


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


@dataclass(frozen=True)
class CriticalSteps:
    """Critical steps of one problem, degree by degree."""

    problem: Problem
    steps: tuple[CriticalStep, ...]
    largest_step: float  # the end of the search

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
        return {"largest_step": self.largest_step, "degrees": rows}


def critical_steps(problem: Problem, *, degrees: int = 4) -> CriticalSteps:
    """How large must the step be to learn features of degree 1, 2, …?

    For each degree: the step at which its spike leaves the bulk, and the step at which half of the
    target's part of that degree, as seen along the learned direction, is learned by the network.
    Steps are searched from 0.001 to 4√width; the problem's own step does not matter.
    """
    if not isinstance(problem, Problem):
        raise InvalidProblem("problem", "must be a Problem", problem)
    if whole_number("degrees", degrees) > HIGHEST:
        raise InvalidProblem("degrees", f"must be from 1 to {HIGHEST}", degrees)
    largest = _HIGHEST * math.sqrt(problem.width)
    births = _births(problem, largest)
    halves = _Halves(problem, largest, degrees)
    powers = learned_powers(problem, degrees)
    steps = []
    for k in range(1, degrees + 1):
        half, note = halves.find(k)
        birth = births.get(k)
        notes = [] if birth is not None else [f"no spike of degree {k} up to η = {largest:.4g}"]
        if note:
            notes.append(note)
        at_birth = validity_at(problem, birth)
        steps.append(
            CriticalStep(
                degree=k,
                spike_step=birth,
                spike_exponent=_exponent(problem, birth),
                half_step=half,
                half_exponent=_exponent(problem, half),
                published_exponent=interval(k)[0] if k in powers else None,
                notes=(*notes, *at_birth),
            )
        )
    return CriticalSteps(problem, tuple(steps), largest)


def validity_at(problem: Problem, step: float | None) -> tuple[str, ...]:
    """Validity notes of the problem at another step."""
    if step is None:
        return ()
    moved = problem.replace(step_size=step)
    return spectrum_notes(moved)


def _exponent(problem: Problem, step: float | None) -> float | None:
    """α with step_scale·n^α = step."""
    if step is None or step <= 0.0:
        return None
    return math.log(step / problem.step_scale) / math.log(problem.n)


def _births(problem: Problem, largest: float) -> dict[int, float]:
    """The smallest step at which a spike of each degree leaves the bulk."""
    found: dict[int, float] = {}
    most = HIGHEST + 1

    def strength(log_step: float) -> FloatArray:
        moved = problem.replace(step_size=math.exp(log_step))
        with one_thread(), np.errstate(all="ignore"):
            equations = Equations(typical_batch(moved))
            values = strengths(equations, right_edge(equations), most)
        return np.pad(values, (0, most - values.size))

    places = np.linspace(math.log(_LOWEST), math.log(largest), _SCAN)
    scan = [_try(strength, place) for place in places]
    for (low, before), (high, after) in pairwise(zip(places, scan, strict=True)):
        if before is None or after is None:
            continue
        for i in np.flatnonzero((before < 1.0) & (after > 1.0)):
            step = _crossing(partial(_entry, strength, int(i)), float(low), float(high))
            degree = _degree_born(problem, step, int(i))
            if degree is not None:
                found.setdefault(degree, step)
    return found


def _entry(function: Callable[[float], FloatArray], i: int, place: float) -> float:
    return float(function(place)[i])


def _try(function: Callable[[float], FloatArray], place: float) -> FloatArray | None:
    try:
        return function(place)
    except FeaturestepError:
        return None


def _crossing(strength: Callable[[float], float], low: float, high: float) -> float:
    """The step at which a strength passes 1: it grows like a power of the step."""

    def gap(t: float) -> float:
        return math.log(max(strength(t), 1e-300))

    return math.exp(root_between(gap, low, high, absolute=1e-7))


def _degree_born(problem: Problem, step: float, rank: int) -> int | None:
    """The degree of the spike that has just left the bulk."""
    spikes = outlook(problem.replace(step_size=_BORN * step)).spikes
    return spikes[rank].degree if rank < len(spikes) else None


class _Halves:
    """How much of each degree of the target is learned, as a function of the step."""

    def __init__(self, problem: Problem, largest: float, degrees: int) -> None:
        self.problem, self.degrees = problem, degrees
        self.places = np.linspace(math.log(_LOWEST), math.log(largest), _CURVE)
        moved = [problem.replace(step_size=math.exp(t)) for t in self.places]
        outcomes = solve(moved)
        self.shares: list[FloatArray | None] = []
        for each, outcome in zip(moved, outcomes, strict=True):
            try:
                self.shares.append(self._share(prediction(each, outcome)))
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
            found = predict(self.problem.replace(step_size=math.exp(t)))
            return float(self._share(found)[k]) - 0.5

        return math.exp(root_between(gap, low, high, absolute=1e-6))


def _rule(found: Prediction) -> tuple[FloatArray, FloatArray]:
    """Nodes in κ that resolve the learned function."""
    scale = 0.5 / max(0.5, float(np.abs(found.groups.shift).max()))
    return stretched_normal(((0.0, scale),), 1.0, 0.2, 9.0)
