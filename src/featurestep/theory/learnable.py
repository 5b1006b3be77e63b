"""`learnable`: which parts of a target one step can learn, in words and numbers (eq. 52)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..core.display import Table
from ..core.problem import Grid, Problem
from ..core.results import GridResult, Progress, Result, over_grid, verb
from ..core.spiked import spiked_weights
from ..functions.nonlinearity import Nonlinearity, normalised_coefficients, normalised_hermite
from ..functions.targets import AlignedTarget
from .degrees import multi_indices
from .reach import (
    ACTIVATIONS,
    LAWS,
    MANY,
    best_pair,
    floors,
    others,
    possible,
    reaches,
    second_step_floor,
)
from .validity import quadratic_notes

HIGHEST = {1: 12, 2: 8, 3: 6}  # degree of the terms that are looked at, by number of directions
SMALL = 1e-4  # share of E y² below which a term is not told
WHOLE, NOTHING = 0.99, 0.01  # shares of a term from which it counts as learned, or as not


@dataclass(frozen=True)
class Term:
    """One Hermite term of the target, in the basis whose first axis is E[y z]."""

    degrees: tuple[int, ...]
    name: str
    size: float  # its part of E y²
    possible: float  # the share of it that (52) leaves to any activation and law, at this n_step
    possible_many: float  # the same as n_step/d → ∞
    expressed: float  # the share that this activation, law and step can express, by itself

    @property
    def verdict(self) -> str:
        """What becomes of it, as n and the width grow."""
        if self.possible_many <= NOTHING:
            return "never"
        if self.expressed <= NOTHING:
            return "not with this activation and law"
        return "learned" if self.expressed >= WHOLE else "in part"


@dataclass(frozen=True, eq=False, repr=False)
class Learnable(Result):
    """What one step can learn of a target, and what it cannot, whatever the samples and neurons."""

    MEANINGS: ClassVar[Mapping[str, str]] = {
        "power": "E y², noise included: the error of predicting 0",
        "floor": "test error that no law, activation, width, ridge, step or n ≪ d² can beat",
        "class_floor": "the same with this activation, readout law and step",
        "floor_many": "the first floor as n_step/d → ∞",
        "class_floor_many": "the second floor as n_step/d → ∞",
        "floor_second": "the first floor after a second step on fresh samples, as n_step/d → ∞",
    }

    problem: Problem
    power: float  # E y², noise included
    floor: float  # (52)
    class_floor: float
    floor_many: float
    class_floor_many: float
    floor_second: float
    alignments: tuple[float, ...]
    axes: tuple[str, ...]  # the basis, in the target's directions
    terms: tuple[Term, ...]
    other_laws: dict[str, float]  # class floors
    other_activations: dict[str, float]
    best_pair: tuple[str, str, float]  # of these activations and laws, with its class floor

    def as_dict(self) -> dict[str, Any]:
        """The numbers, ready for JSON."""
        terms = [{**vars(t), "degrees": list(t.degrees), "verdict": t.verdict} for t in self.terms]
        return {
            **super().as_dict(),
            "alignments": list(self.alignments),
            "axes": list(self.axes),
            "terms": terms,
            "other_laws": dict(self.other_laws),
            "other_activations": dict(self.other_activations),
            "best_pair": list(self.best_pair),
            "advice": list(self.advice),
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What would lower the floors, and where they do not bind."""
        return (*self.advice, *quadratic_notes(self.problem))

    def heading(self) -> list[str]:
        """The problem, and the basis where it is not the target's own."""
        own = not any("=" in axis for axis in self.axes)
        return [*super().heading(), *(() if own else ("in the basis " + ", ".join(self.axes),))]

    def tables(self) -> list[Table]:
        """The floors, then the terms."""
        rows = [
            (t.name, t.size, f"{t.possible:.0%}", f"{t.expressed:.0%}", t.verdict)
            for t in self.terms
        ]
        header = ("", "size", "possible", "expressed", "verdict")
        return [*super().tables(), Table.of(header, rows)]

    @property
    def advice(self) -> tuple[str, ...]:
        """What would lower the floors, one line each."""
        return tuple(self._advice())

    def _advice(self) -> Iterator[str]:
        gain = max(0.05 * (self.class_floor - self.problem.noise_std**2), 0.005 * self.power)
        if spiked_weights(self.problem).alignment == 0.0:
            yield (
                "E[y z] = 0: the step finds no direction of the target, and nothing but its mean "
                "is learned at n_step of order d"
            )
            return
        if self.class_floor - self.class_floor_many > gain:
            yield f"more samples in the step: the floor falls to {self.class_floor_many:.4g}"
        single = self.class_floor
        for what, tried in (
            ("readout law", self.other_laws),
            ("activation", self.other_activations),
        ):
            if tried:
                best = min(tried, key=lambda name: tried[name])
                single = min(single, tried[best])
                if self.class_floor - tried[best] > gain:
                    yield f"another {what}: {best} has a floor of {tried[best]:.4g}"
        activation, law, floor = self.best_pair
        if single - floor > gain:
            yield f"another activation and law: {activation} with {law} has a floor of {floor:.4g}"
        if self.floor_many - self.floor_second > gain:
            yield (
                "a second step, on fresh samples: it sees directions that the first one could only "
                f"use linearly, and the floor falls to {self.floor_second:.4g}"
            )
        never = [term.name for term in self.terms if term.verdict == "never"]
        if never:
            yield f"no activation, law or number of samples makes one step learn {', '.join(never)}"


@verb
def learnable(
    problem: Problem | Grid, *, progress: Progress | None = None
) -> Learnable | GridResult:
    """Which Hermite terms of the target one step can learn, in part or never (section 25).

    >>> p = Problem(n=2000, d=1000, width=1500, step_exponent=0.5, ridge=0.01, activation="tanh",
    ...             target="z1 + z1*z2 + z2^2 - 1", readout="rademacher")
    >>> for term in learnable(p).terms:
    ...     print(term.name, term.verdict)
    z1 in part
    z1*z2 not with this activation and law
    H2(z2) never
    """
    if isinstance(problem, Grid):
        return over_grid(Learnable, problem, learnable, progress)
    star = problem.star
    floor, class_floor = floors(problem)
    floor_many, class_many = floors(problem.replace(n_step=MANY))
    gamma = spiked_weights(problem).alignment
    axes, names = _axes(problem)
    own = reaches(problem)
    terms = [
        Term(
            degrees=index,
            name=_named(index, names),
            size=size,
            possible=possible(index, gamma),
            possible_many=possible(index, 1.0 if gamma else 0.0),
            expressed=sum(share * reach.expressed(index, gamma) for share, reach in own),
        )
        for index, size in _sizes(star)
    ]
    first = star.rotation[0] if isinstance(star, AlignedTarget) else np.ones(1)
    return Learnable(
        problem=problem,
        power=star.second_moment + problem.noise_std**2,
        floor=floor,
        class_floor=class_floor,
        floor_many=floor_many,
        class_floor_many=class_many,
        floor_second=second_step_floor(problem),
        alignments=tuple(float(gamma * c) + 0.0 for c in first),
        axes=axes,
        terms=tuple(terms),
        other_laws=others(problem, "readout", LAWS),
        other_activations=others(problem, "activation", ACTIVATIONS),
        best_pair=best_pair(problem, class_floor),
    )


def _sizes(star: Nonlinearity | AlignedTarget) -> list[tuple[tuple[int, ...], float]]:
    """Terms (a, b) of the target with a!b!c_ab², but the constant and the small ones."""
    if isinstance(star, AlignedTarget):
        found = _aligned_sizes(star)
    else:
        c = normalised_coefficients(star, HIGHEST[1])
        found = {(k,): float(value) ** 2 for k, value in enumerate(c)}
    least = SMALL * star.second_moment
    return [(index, size) for index, size in found.items() if size > least and any(index)]


def _aligned_sizes(star: AlignedTarget) -> dict[tuple[int, ...], float]:
    z = star.z if star.slope else star.z @ star.rotation  # without E[y z] any basis will do
    tables = [normalised_hermite(HIGHEST[star.directions], column) for column in z.T]
    weighted = star.weight * star.values
    return {
        index: float(weighted @ np.prod([t[k] for t, k in zip(tables, index, strict=True)], axis=0))
        ** 2
        for index in multi_indices(star.directions, HIGHEST[star.directions])
    }


def _axes(problem: Problem) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The basis in words, and names of its axes: the given ones where it is made of them."""
    star = problem.star
    if not isinstance(star, AlignedTarget):
        return ("z1",), ("z1",)
    labels = star.teacher.labels
    if star.slope == 0.0:
        return labels, labels
    plain = np.abs(np.abs(star.rotation).max(axis=1) - 1.0).max() < 1e-9
    if plain:
        places = np.abs(star.rotation).argmax(axis=1)
        names = tuple(labels[i] for i in places)
        return names, names
    names = tuple(f"u{i + 1}" for i in range(star.directions))
    texts = tuple(
        f"{name} = " + " ".join(f"{c:+.3f} {label}" for c, label in zip(row, labels, strict=True))
        for name, row in zip(names, star.rotation, strict=True)
    )
    return texts, names


def _named(index: tuple[int, ...], names: tuple[str, ...]) -> str:
    factors = [
        name if degree == 1 else f"H{degree}({name})"
        for name, degree in zip(names, index, strict=True)
        if degree
    ]
    return "*".join(factors)
