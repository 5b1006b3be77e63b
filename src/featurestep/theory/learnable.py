"""`learnable`: which parts of a target one step can learn, and which never (section 25).

To leading order the network computes f_0(κ) + Σ_i s_i f_i(κ) and noise, with f_0 in the span of
m_g, κμ_g and m′_g and every f_i in that of μ_g, g over the groups of neurons. What lies outside is
never learned, however many samples and neurons there are: the floor (52) is for every activation
and readout law, the class floor for the problem's own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar

import numpy as np

from ..core.display import Table
from ..core.errors import FeaturestepError
from ..core.problem import Grid, Problem
from ..core.results import GridResult, Progress, Result, over_grid, verb
from ..core.spiked import spiked_weights
from ..core.types import FloatArray
from ..functions.nonlinearity import Nonlinearity, normalised_coefficients, normalised_hermite
from ..functions.targets import FINEST, AlignedTarget, directions_rule
from .exact.solve import R_NODES
from .exact.step import build_step, rows_of
from .labels import (
    KAPPA,
    WEIGHT,
    Index,
    hermite_products,
    label_moments,
    left_by_kappa,
    multi_indices,
    quadratic_beside,
)
from .resolution import Effort, choose
from .validity import quadratic_floor_notes

LAWS = ("constant", "rademacher", "gaussian")
ACTIVATIONS = ("relu", "tanh", "gelu", "sigmoid")
HIGHEST = {1: 12, 2: 8, 3: 6}  # degree of the terms that are looked at, by number of directions
SMALL = 1e-4  # share of E y² below which a term is not reported
WHOLE, NOTHING = 0.99, 0.01  # shares of a term from which it counts as learned, or as not
MANY = 10**15  # samples of a step as n_step/d → ∞
_INDEPENDENT = 1e-7  # relative singular value below which a function is not in the class
_VISIBLE = 1e-9  # mean square of E[y z_i|z_1], as a share of E y², that a second step learns from
_ROUNDING = 1e-12
_EFFORT = Effort(groups=2.0)  # a span needs more groups of a continuous law than averages do


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
        """What would lower the floors, and where n or N is so large that they do not hold."""
        return (*self.advice, *quadratic_floor_notes(self.problem, self.floor_quadratic))

    @property
    def floor_quadratic(self) -> float:
        """The first floor where n and N are of the order of d².

        There quadratic functions in all directions are learned as well (section 50): products of
        the s_i, with any function of κ, count no longer as never learned.
        """
        return self.floor - quadratic_beside(self.problem)

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
        """Advice that lowers a floor by 5 % of what is above the noise, and by 0.5 % of E y²."""
        gain = max(0.05 * (self.class_floor - self.problem.noise_std**2), 0.005 * self.power)
        if spiked_weights(self.problem).alignment == 0.0:
            yield (
                "expect only the target's mean to be learned unless n_step is far larger than d: "
                "the target has no linear part (E[y z] = 0), so the step finds none of its "
                "directions"
            )
            return
        if self.class_floor - self.class_floor_many > gain:
            yield (
                "take more samples in the step: as n_step/d grows the class floor falls to "
                f"{self.class_floor_many:.4g}"
            )
        single = self.class_floor
        for what, tried in (
            ("readout law", self.other_laws),
            ("activation", self.other_activations),
        ):
            if tried:
                best = min(tried, key=lambda name: tried[name])
                single = min(single, tried[best])
                if self.class_floor - tried[best] > gain:
                    yield f"try another {what}: with {best} the class floor is {tried[best]:.4g}"
        activation, law, floor = self.best_pair
        if single - floor > gain:
            yield (
                f"try another activation and law: {activation} with {law} has a class floor of "
                f"{floor:.4g}"
            )
        if self.floor_many - self.floor_second > gain:
            yield (
                "take a second step on fresh samples: the floor falls to "
                f"{self.floor_second:.4g}, because it learns functions of directions in which the "
                "first step is only linear"
            )
        never = [term.name for term in self.terms if term.verdict == "never"]
        if never:
            yield (
                f"one step never learns {', '.join(never)}, with any activation, readout law or "
                "number of samples"
            )


@verb()
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
    classes = function_classes(problem)
    floor, class_floor = floors(problem, classes)
    endless = problem.replace(n_step=MANY)
    floor_many, class_many = (
        _in_the_limit(problem, value) for value in floors(endless, function_classes(endless))
    )
    gamma = spiked_weights(problem).alignment
    axes, names = _axes(star)
    terms = [
        Term(
            degrees=index,
            name=_term_name(index, names),
            size=size,
            possible=possible(index, gamma),
            possible_many=possible(index, 1.0 if gamma else 0.0),
            expressed=sum(each.share * each.expressed(index, gamma) for each in classes),
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
        **_alternatives(problem, class_floor),
    )


def _alternatives(problem: Problem, own: float) -> dict[str, Any]:
    """Class floors with another readout law, with another activation, and of the best pair of both.

    What the problem cannot be asked with is left out. The best pair is the problem's own where none
    of the named ones is lower.
    """

    @cache
    def floor_with(**changes: str) -> float:
        try:
            return _class_floor(problem.replace(**changes))
        except FeaturestepError:
            return math.inf

    def others(field: str, names: tuple[str, ...]) -> dict[str, float]:
        found = {v: floor_with(**{field: v}) for v in names if v != problem.given[field]}
        return {value: floor for value, floor in found.items() if floor < math.inf}

    best = (problem.sigma.name, problem.law.name, own)
    for activation, law in itertools.product(ACTIVATIONS, LAWS):
        pair = {"activation": activation, "readout": law}
        floor = floor_with(**{k: v for k, v in pair.items() if v != problem.given[k]})
        if floor < best[2] * (1.0 - 1e-6):
            best = (activation, law, floor)
    return {
        "other_laws": others("readout", LAWS),
        "other_activations": others("activation", ACTIVATIONS),
        "best_pair": best,
    }


@dataclass(frozen=True)
class FunctionClass:
    """Functions of κ that f_0 and every f_i are made of: orthonormal ones, at nodes of κ's law."""

    share: float  # probability of this initial offset (41)
    kappa: FloatArray  # (Q,)
    weight: FloatArray  # (Q,)
    plain: FloatArray  # (Q, ·) basis for f_0
    linear: FloatArray  # (Q, ·) basis for every f_i

    def inside(self, mean: FloatArray, linear: FloatArray) -> float:
        """Mean square of what f_0 can express of y_0 (Q,), and the f_i of y_1i (r, Q)."""
        parts = [self.plain.T @ (self.weight * mean), (linear * self.weight) @ self.linear]
        return float(sum((part**2).sum() for part in parts))

    def outside(self, mean: FloatArray, linear: FloatArray) -> float:
        """Mean square of what they miss."""
        whole = self.weight @ (mean**2 + (linear**2).sum(axis=0))
        return max(float(whole) - self.inside(mean, linear), 0.0)

    def expressed(self, index: Index, gamma: float) -> float:
        """The share of a Hermite term, alone, that lies in the class."""
        a, beside = index[0], sum(index[1:])
        if beside > 1:
            return 0.0
        hermite = normalised_hermite(a, self.kappa)
        mean, linear = gamma**a * hermite[a], np.zeros_like(self.kappa)
        if beside == 1:
            mean, linear = linear, mean
        else:
            linear = np.sqrt(a * (1.0 - gamma**2)) * gamma ** (a - 1) * hermite[a - 1]
        return self.inside(mean, linear[None])


def function_classes(problem: Problem) -> list[FunctionClass]:
    """What the problem's activation, law and step can express, for each initial offset (41).

    The functions m_g of all groups count with the shares of the groups, relative to their mean
    square, and likewise κμ_g and m′_g: so the result does not depend on how the readout law is cut
    into groups, nor on rounding in functions that vanish.
    """
    problem = problem.replace(ridge=1.0, initial="sphere")  # classes do not depend on them
    resolution = choose(problem, spiked_weights(problem), _EFFORT)
    groups, (kappa, weight) = resolution.group_rule(), resolution.node_rule()
    rows = rows_of(problem)
    step = build_step(rows, groups, R_NODES)
    norm, place = step.norm[:, None, :], step.shift[:, None, :] * kappa[:, None]
    mean, slope, bend, _ = problem.sigma.averages(norm, place, 2)  # (B, Q, K)
    least = _ROUNDING * problem.sigma.second_moment

    def span(row: int, *blocks: FloatArray) -> FloatArray:
        """Orthonormal functions that span those of every group, in L² of the law of κ."""
        root = np.sqrt(weight[:, None] * groups[1])
        scaled = [root * block[row] for block in blocks]
        sizes = [float((part**2).sum()) for part in scaled]
        kept = [x / size**0.5 for x, size in zip(scaled, sizes, strict=True) if size > least]
        columns = np.concatenate([*kept, np.zeros((kappa.size, 1))], axis=1)
        left, values, _ = np.linalg.svd(columns, full_matrices=False)
        inside = values > max(_INDEPENDENT * values[0], _ROUNDING)
        return np.asarray(left[:, inside] / np.maximum(np.sqrt(weight)[:, None], 1e-300))

    return [
        FunctionClass(
            share=row.share,
            kappa=kappa,
            weight=weight,
            plain=span(i, mean, kappa[:, None] * slope, bend),
            linear=span(i, slope),
        )
        for i, row in enumerate(rows)
    ]


def possible(index: Index, gamma: float) -> float:
    """The share of a Hermite term that (52) leaves: functions of κ, and these times an s_i."""
    a, beside = index[0], sum(index[1:])
    if beside == 0:
        return float(gamma ** (2 * a) + a * gamma ** (2 * a - 2) * (1.0 - gamma**2))
    return float(gamma ** (2 * a)) if beside == 1 else 0.0


def floors(problem: Problem, classes: Sequence[FunctionClass]) -> tuple[float, float]:
    """The floor of (52) with the noise, and the class floor: plus what the own class misses."""
    floor = left_by_kappa(problem)[0] + problem.noise_std**2
    alignment = np.array([spiked_weights(problem).alignment])
    missed = 0.0
    for each in classes:
        labels = label_moments(problem.star, alignment, each.kappa)
        missed += each.share * each.outside(labels.mean[0], labels.linear[0])
    return floor, floor + missed


def _in_the_limit(problem: Problem, floor: float) -> float:
    """The floor as n_step/d → ∞: of that at `MANY` samples, what is not of the order of d/MANY."""
    power = problem.star.second_moment + problem.noise_std**2
    return floor if floor > 100.0 * problem.d / MANY * power else 0.0


def _class_floor(problem: Problem) -> float:
    return floors(problem, function_classes(problem))[1]


def second_step_floor(problem: Problem) -> float:
    """(52) after a second step, n_step/d → ∞: every direction that it can see is known.

    Given z_1 a second step meets E[y z_i|z_1]: directions in which that vanishes stay unseen. Where
    E[y z] = 0 the first step has learned nothing, and the second is a first one again.
    """
    star, noise = problem.star, problem.noise_std**2
    if not isinstance(star, AlignedTarget):
        return noise if spiked_weights(problem).alignment else star.second_moment + noise
    if star.slope == 0.0:
        return noise + left_by_kappa(problem.replace(n_step=MANY))[0]
    return noise + _left_by_second_step(star)


@lru_cache(maxsize=128)
def _left_by_second_step(star: AlignedTarget) -> float:
    """(52) without noise where every direction is known that a second step can see."""
    beside = label_moments(star, np.ones(1), KAPPA).linear[0, 1:]  # E[y z_i|z_1], (r − 1, Q)
    sizes, vectors = np.linalg.eigh((beside * WEIGHT) @ beside.T)  # growing
    turn = np.eye(star.directions)
    turn[1:, 1:] = vectors[:, ::-1].T
    known = 1 + int(np.sum(sizes > _VISIBLE * star.second_moment))
    return _beyond_linear(star, turn, known)


def _beyond_linear(star: AlignedTarget, turn: FloatArray, known: int) -> float:
    """Mean square of g without its parts of degree 0 and 1 in the axes of `turn` after `known`."""
    if known == star.directions:
        return 0.0
    z, w = directions_rule(known, FINEST)
    s, v = directions_rule(star.directions - known, FINEST)
    places = np.concatenate([np.repeat(z, len(s), axis=0), np.tile(s, (len(z), 1))], axis=1)
    y = star(places @ turn).reshape(len(z), len(s))
    linear = np.concatenate([np.ones((len(s), 1)), s], axis=1)
    left = float(w @ ((y - (y * v) @ linear @ linear.T) ** 2 @ v))
    return left if left > _ROUNDING * star.second_moment else 0.0


def _sizes(star: Nonlinearity | AlignedTarget) -> list[tuple[Index, float]]:
    """Terms (a, b) of the target with a!b!c_ab², but the constant and the small ones."""
    if isinstance(star, AlignedTarget):
        indices = multi_indices(star.directions, HIGHEST[star.directions])
        z = star.z if star.slope else star.z @ star.rotation  # without E[y z] any basis will do
        weighted = star.weight * star.values
        c = [float(weighted @ term) for term in hermite_products(z, indices)]
    else:
        c = normalised_coefficients(star, HIGHEST[1]).tolist()
        indices = multi_indices(1, HIGHEST[1])
    least = SMALL * star.second_moment
    return [(k, v**2) for k, v in zip(indices, c, strict=True) if v**2 > least and any(k)]


def _axes(star: Nonlinearity | AlignedTarget) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The basis in words, and names of its axes: the given ones where it is made of them."""
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


def _term_name(index: Index, names: tuple[str, ...]) -> str:
    factors = [
        name if degree == 1 else f"H{degree}({name})"
        for name, degree in zip(names, index, strict=True)
        if degree
    ]
    return "*".join(factors)
