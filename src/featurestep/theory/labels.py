"""Moments of the label given κ (eqs. 6, 50), and the law of the step's residual r (section 19).

Beside κ the target depends on s_1 … s_r, independent normal variables. In the basis of (45) s_1 is
what the learned direction misses of E[y z], the others are the directions in which E[y z] has no
part. Results are told in the target's directions as they were given: there s_i belongs to the i-th,
s = (I − ΓΓᵀ)^{-1/2}(z − Γκ) with Γ_i the cosine of the learned direction with direction i.

Everything the weights' bulk needs is an average E[f(t) r^j T(r)] with f among 1, t, t² (and the
same for the direction of the initial readout, under the `full` residual). Gauss nodes of the law of
r, by Lanczos' method on a fine grid, serve them all: weights for other f are interpolatory. Lanczos
runs in asinh(2r/rms r), in which heavy tails do no harm. Noise is added to the law of the target.
One of several directions is first reduced to nodes, with weights for its directions and their
products.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import comb
from typing import Any, NamedTuple

import numpy as np

from ..core.problem import Problem
from ..core.spiked import spiked_weights
from ..core.types import FloatArray
from ..functions.activations import function
from ..functions.nonlinearity import Nonlinearity, gaussian_panels, normalised_hermite
from ..functions.quadrature import (
    Rule,
    gauss_from_measure,
    gauss_hermite,
    largest_expected,
    stretched_normal,
    trapezoid_normal,
    truncated_normal,
)
from ..functions.targets import FINEST, AlignedTarget, MeanSign, directions_rule
from .resolution import target_nodes

_CHUNK = 400_000  # values of the target at a time
_TEST_KAPPA = np.array([-3.7, -1.9, -0.4, 0.8, 2.6, 4.8])  # κ at which rules are compared
_TEST_ALIGNMENT = 0.9  # and the alignment γ
_RESOLVED = 1e-10  # of E y², with the weight that a κ has
MOST_DEGREE = 8  # of the error by degree, for several directions
KAPPA, WEIGHT = stretched_normal(((0.0, 0.25),), 1.0, 0.2, 9.5)
Index = tuple[int, ...]
Degrees = dict[int | str | Index, float]


def across_alignment(alignment: FloatArray) -> FloatArray:
    """q = √(1 − γ²), kept away from 0 where it rounds to it."""
    return np.sqrt(np.maximum((1.0 - alignment) * (1.0 + alignment), 1e-16))


@dataclass(frozen=True)
class Labels:
    """Moments of y given κ: parts along 1, s_i and s_is_k − δ_ik, and the rest of E y²."""

    mean: FloatArray  # (B, Q) y_0
    linear: FloatArray  # (B, r, Q) y_1i
    square: FloatArray  # (B, P, Q) y_ik = E[(s_is_k − δ_ik)y], in the order of `pairs`
    rest: FloatArray  # (B, Q) E y² − y_0² − Σy_1i²
    cubic: FloatArray | None = field(default=None, kw_only=True)  # (B, Q) E[h_3(s)y], r = 1

    @cached_property
    def by_degree(self) -> FloatArray:
        """E[h_b(s)y] for b = 0 … 3, (B, 4, Q), of one direction."""
        assert self.cubic is not None
        square = np.sqrt(0.5) * self.square[:, 0]
        return np.stack([self.mean, self.linear[:, 0], square, self.cubic], axis=1)

    def take(self, rows: Any) -> Labels:
        """The same for some of the problems."""
        parts = (part[rows] for part in (self.mean, self.linear, self.square, self.rest))
        return Labels(*parts, cubic=None if self.cubic is None else self.cubic[rows])

    def twice(self) -> Labels:
        """The same at all nodes of κ two times, one after the other."""

        def twice(part: FloatArray) -> FloatArray:
            return np.concatenate([part, part], axis=-1)

        parts = (twice(part) for part in (self.mean, self.linear, self.square, self.rest))
        return Labels(*parts, cubic=None if self.cubic is None else twice(self.cubic))


def pairs(count: int) -> list[tuple[int, int]]:
    """Pairs i ≤ k of directions."""
    return [(i, k) for i in range(count) for k in range(i, count)]


def label_moments(
    star: Nonlinearity | AlignedTarget, alignment: FloatArray, kappa: FloatArray
) -> Labels:
    """Moments of the label given κ, without noise (eqs. 6, 50).

    alignment: γ of B problems; kappa: (Q,). A target of one direction has closed forms or a rule of
    its own; several are averaged over s by the coarsest product rule that resolves the target.
    """
    if isinstance(star, AlignedTarget):
        place = np.ascontiguousarray(kappa).tobytes()
        found = [_of_aligned(star, float(gamma), place) for gamma in alignment]
        return Labels(*(np.stack(part) for part in zip(*found, strict=True)))
    return moments_at(star, across_alignment(alignment)[:, None], alignment[:, None] * kappa)


def moments_at(star: Nonlinearity, across: FloatArray, place: FloatArray) -> Labels:
    """The same for a target of place + across·s, (B, Q) and (B, 1)."""
    return _labels(across, star.averages(across, place, 3))


def _labels(across: FloatArray, averages: FloatArray) -> Labels:
    """Moments by the averages of a target, to the third order at least."""
    (y0, slope, curved, third), rest = averages[:4], averages[-1]
    square, cubic = (across**2 * curved)[:, None], across**3 * third / np.sqrt(6.0)
    return Labels(y0, (across * slope)[:, None], square, rest, cubic=cubic)


class LabelsAcross(NamedTuple):
    """Moments of the label given κ with the weight s² − 1."""

    parts: FloatArray  # (B, 4, Q) E[(s² − 1)h_b(s)y|κ]
    square: FloatArray  # (B, Q) E[(s² − 1)y²|κ]

    def take(self, rows: Any) -> LabelsAcross:
        """The same for some of the problems."""
        return LabelsAcross(self.parts[rows], self.square[rows])


def labels_across(
    star: Nonlinearity, alignment: FloatArray, kappa: FloatArray
) -> tuple[LabelsAcross, Labels]:
    """Moments of the label with the weight s² − 1, at nodes (κ, h), for γ of B problems and κ (Q,).

    (s² − 1) under the mean over s is q∂/∂q, as y depends on γκ + qs. With those of `label_moments`,
    from the same averages.
    """
    q, place = across_alignment(alignment)[:, None], alignment[:, None] * kappa
    means, growth = star.averages_with_growth(q, place, 5)  # (7, B, Q)
    y = [q**k * means[k] / math.sqrt(math.factorial(k)) for k in range(6)]
    parts = [
        math.sqrt((b + 1) * (b + 2)) * y[b + 2]
        + 2.0 * b * y[b]
        + (math.sqrt(b * (b - 1)) * y[b - 2] if b > 1 else 0.0)
        for b in range(4)
    ]
    every, square = np.stack(parts, axis=1), 2.0 * growth
    twice = (np.concatenate([part, part], axis=-1) for part in (every, square))
    return LabelsAcross(*twice), _labels(q, means)


Moments = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@lru_cache(maxsize=256)
def _of_aligned(star: AlignedTarget, gamma: float, place: bytes) -> Moments:
    """The moments at one alignment, by quadrature in s."""
    return _moments(star, gamma, np.frombuffer(place), fineness(star))


@lru_cache(maxsize=128)
def fineness(star: AlignedTarget) -> int:
    """The coarsest rule in s that the finest does not contradict."""
    weight = np.exp(-0.5 * _TEST_KAPPA**2)

    def moments_at(level: int) -> FloatArray:
        found = _moments(star, _TEST_ALIGNMENT, _TEST_KAPPA, level)
        return np.concatenate([np.atleast_2d(part) for part in found]) * weight

    finest = moments_at(FINEST)
    for level in range(FINEST):
        apart = np.abs(moments_at(level) - finest).max()
        if apart <= _RESOLVED * star.second_moment:
            return level
    return FINEST


def _moments(star: AlignedTarget, gamma: float, kappa: FloatArray, level: int) -> Moments:
    s, weight = directions_rule(star.directions, level)
    both = pairs(star.directions)
    products = np.stack([s[:, i] * s[:, k] - float(i == k) for i, k in both], axis=1)
    functions = np.concatenate([np.ones((len(s), 1)), s, products], axis=1) * weight[:, None]
    count = star.directions
    moments, rest = [], []
    for y in target_values(star, gamma, kappa, s):
        found = y @ functions  # (q, 1 + r + P)
        left = y - found[:, :1] - found[:, 1 : 1 + count] @ s.T
        moments.append(found)
        rest.append((left * left) @ weight)
    table = np.concatenate(moments).T
    return table[0], table[1 : 1 + count], table[1 + count :], np.concatenate(rest)


def left_by_kappa(problem: Problem) -> tuple[float, float]:
    """Mean squares of what functions of κ leave of the label, noise apart (eq. 52).

    The first is of what no s_i times a function of κ has either, the second of what these have.
    """
    weights = spiked_weights(problem)
    kappa, weight = target_nodes(problem, weights, degree=0)
    labels = label_moments(problem.star, np.array([weights.alignment]), kappa)
    return float(weight @ labels.rest[0]), float(weight @ (labels.linear[0] ** 2).sum(axis=0))


def quadratic_beside(problem: Problem) -> float:
    """Mean square of the part of the label in s_is_k − δ_ik times functions of κ."""
    weights = spiked_weights(problem)
    kappa, weight = target_nodes(problem, weights, degree=0)
    square = label_moments(problem.star, np.array([weights.alignment]), kappa).square[0]  # (P, Q)
    norms = np.array([2.0 if i == k else 1.0 for i, k in pairs(problem.directions)])
    return float(weight @ (square**2 / norms[:, None]).sum(axis=0))


def along_first(problem: Problem) -> Problem:
    """The problem with E[y|z_1] as its target and everything else as noise.

    Equivalent for the untrained bulk and for limits: there features have functions of κ and are
    linear in all other directions, in which E[y z] has no part.
    """
    star = problem.star
    if not isinstance(star, AlignedTarget):
        return problem
    target = _given_first(star)
    rest = max(star.second_moment - target.second_moment, 0.0)
    return problem.replace(target=target, noise_std=float(np.sqrt(problem.noise_std**2 + rest)))


@lru_cache(maxsize=64)
def _given_first(star: AlignedTarget) -> Nonlinearity:
    """E[g|z_1]."""
    s, weight = directions_rule(star.directions - 1, fineness(star))
    beside = np.concatenate([np.zeros((len(s), 1)), s], axis=1)

    def mean(t: FloatArray) -> FloatArray:
        found = [y @ weight for y in target_values(star, 1.0, t.ravel(), beside)]
        return np.concatenate(found).reshape(t.shape)

    return function(mean, name="E[y|z1]")


def target_values(
    star: AlignedTarget, gamma: float, kappa: FloatArray, s: FloatArray
) -> Iterator[FloatArray]:
    """The target at z_1 = γκ + qs_1, z_i = s_i (eq. 45), for some κ at a time: (q, points)."""
    across = float(across_alignment(np.array(gamma)))
    size = max(1, _CHUNK // len(s))
    for start in range(0, kappa.size, size):
        part = kappa[start : start + size]
        z = np.broadcast_to(s, (part.size, *s.shape)).copy()
        z[:, :, 0] = gamma * part[:, None] + across * s[:, 0]
        yield star(z)


def multi_indices(variables: int, highest: int) -> list[Index]:
    """Degrees of so many variables with a sum of at most `highest`, the lowest sums first."""
    every = itertools.product(range(highest + 1), repeat=variables)
    kept = [index for index in every if sum(index) <= highest]
    return sorted(kept, key=lambda index: (sum(index), [-degree for degree in index]))


def hermite_products(z: FloatArray, indices: Sequence[Index]) -> Iterator[FloatArray]:
    """Π_i H_{k_i}(z_i)/√k_i! at points (P, r), for one multi-index k after the other: (P,)."""
    highest = max(max(index) for index in indices)
    tables = [normalised_hermite(highest, column) for column in z.T]
    for index in indices:
        yield np.prod([table[k] for table, k in zip(tables, index, strict=True)], axis=0)


def missed_by_degree(
    star: AlignedTarget, gamma: float, parts: FloatArray, test_error: float, highest: int
) -> Degrees:
    """Squared coefficients of what is missed, for a prediction with `parts` f_0 … f_r at KAPPA.

    The values add up to the test error.
    """
    labels = label_moments(star, np.array([gamma]), KAPPA)
    beside = star.rotation.T @ labels.linear[0]  # along the directions as given
    missed = np.concatenate([labels.mean, beside]) - parts
    total = float(((missed**2).sum(axis=0) + labels.rest[0]) @ WEIGHT)
    found = _target_coefficients(star, gamma, highest)
    hermite = normalised_hermite(highest, KAPPA) * WEIGHT
    degrees: Degrees = {}
    for index, wanted in found.items():
        a, others = index[0], index[1:]
        learned = 0.0
        if sum(others) <= 1:
            place = 1 + others.index(1) if any(others) else 0
            learned = float(hermite[a] @ parts[place])
        degrees[index] = (wanted - learned) ** 2
    known = float(sum(degrees.values()))
    degrees["higher"] = max(total - known, 0.0)
    degrees["rest"] = test_error - known - degrees["higher"]
    return degrees


@lru_cache(maxsize=32)
def _target_coefficients(star: AlignedTarget, gamma: float, highest: int) -> dict[Index, float]:
    """E[y H_a(κ)H_b(s)]/√(a!b!) for every multi-index (a, b) up to a degree."""
    s, weight = directions_rule(star.directions, max(1, fineness(star)))
    beside = multi_indices(star.directions, highest)
    basis = np.stack([*hermite_products(s @ star.rotation, beside)], axis=1) * weight[:, None]
    values = np.concatenate([y @ basis for y in target_values(star, gamma, KAPPA, s)])
    table = normalised_hermite(highest, KAPPA) * WEIGHT @ values  # (highest + 1, indices)
    places = {index: i for i, index in enumerate(beside)}
    return {
        index: float(table[index[0], places[index[1:]]])
        for index in multi_indices(1 + star.directions, highest)
    }


MOST_MOMENT = 6
_NOISE_NODES = 15
_SPACING = 0.2
_TARGET_NODES = 54  # of the law of a target of several directions, before noise is added


@dataclass(frozen=True)
class ResidualLaw:
    """M nodes of r with weights for 1, for each special direction and for their products."""

    nodes: FloatArray  # (M,)
    weight: FloatArray  # (M,) of E f(r)
    first: FloatArray  # (S, M) of E[θ_s·x f(r)]
    second: FloatArray  # (S, S, M) of E[(θ_s·x)(θ_s′·x) f(r)]
    moments: FloatArray  # (7,) E r^j
    overlaps: FloatArray  # (S, 4) E[θ_s·x r^j]


@dataclass(frozen=True)
class Noise:
    """What is added to the target, a Gaussian variable.

    For `labels` the label noise alone. For `full` the initial output too, −c_1κ_a − ζ, whose part
    along w_a makes that direction special.
    """

    variance: float
    mean: float = 0.0
    leaning: float | None = None  # c_1 for the full residual

    def leaning_on(self, added: FloatArray) -> tuple[FloatArray, FloatArray]:
        """E[κ_a|noise] and E[κ_a²|noise], `full` only (section 17)."""
        assert self.leaning is not None
        share = self.leaning / self.variance
        along = -share * added
        return along, along**2 + 1.0 - self.leaning * share


@lru_cache(maxsize=512)
def residual_law(
    star: Nonlinearity | AlignedTarget, noise: Noise, count: int, samples: float | None = None
) -> ResidualLaw:
    """The law of r = target + `noise` on `count` nodes.

    With `samples`, target and noise are cut off at the largest value of so many draws. Of
    the special directions the target's come first, then that of the initial readout.
    """
    if isinstance(star, MeanSign) and noise.leaning is None:
        return _law_of_signs(star)
    target = _target_law(star, samples)
    added, w_x = noise_rule(noise, samples)

    def both(of_target: FloatArray, of_noise: FloatArray) -> FloatArray:
        return np.multiply.outer(of_target, of_noise).ravel()

    first = [both(f, w_x) for f in target.first]
    second = [[both(f, w_x) for f in row] for row in target.second]
    plain = _noise_powers(noise, w_x, added)
    overlaps = [_binomial(row, plain) for row in target.overlaps]
    if noise.leaning is not None:
        along, own = noise.leaning_on(added)
        mixed = [both(f, w_x * along) for f in target.first]
        second = [[*row, f] for row, f in zip(second, mixed, strict=True)]
        second.append([*mixed, both(target.weight, w_x * own)])
        first.append(both(target.weight, w_x * along))
        overlaps.append(_binomial(target.moments[:4], _noise_powers(noise, w_x * along, added)))
    return _on_nodes(
        np.add.outer(target.nodes, added + noise.mean).ravel(),
        both(target.weight, w_x),
        first,
        second,
        count,
        moments=_binomial(target.moments, plain),
        overlaps=np.stack(overlaps),
    )


def _law_of_signs(star: MeanSign) -> ResidualLaw:
    """The law of labels −1 and 1, which has two nodes."""
    plain, first, second = star.by_label
    mean, overlap = float(plain[1] - plain[0]), float(first[1] - first[0])
    return ResidualLaw(
        nodes=np.array([-1.0, 1.0]),
        weight=plain,
        first=first[None],
        second=second[None, None],
        moments=np.array([1.0, mean, 1.0, mean, 1.0, mean, 1.0]),
        overlaps=np.array([[0.0, overlap, 0.0, overlap]]),
    )


def typical_law(cut: ResidualLaw, full: ResidualLaw) -> ResidualLaw:
    """A law that was cut off, its nodes moved such that mean and mean square are the full law's."""
    mean, square = (float(cut.weight @ cut.nodes**j) for j in (1, 2))
    spread = np.sqrt((full.moments[2] - full.moments[1] ** 2) / max(square - mean**2, 1e-300))
    return replace(cut, nodes=full.moments[1] + spread * (cut.nodes - mean))


def typical_rule(samples: float) -> Rule:
    """A normal law that is cut off at the largest value of so many draws."""
    return truncated_normal(largest_expected(samples), 1.0, 1.0, _SPACING)


def target_rule(star: Nonlinearity, spacing: float = 0.1) -> Rule:
    """Values of t and their probabilities, fine enough for the target.

    `spacing` is that of the values where the target is smooth.
    """
    if not star.kinks and not star.breaks(10.0).size:
        return trapezoid_normal(10.0, spacing)
    z, w = gaussian_panels(star)
    keep = np.abs(z) < 10.0
    return z[keep], w[keep] / w[keep].sum()


def noise_rule(noise: Noise, samples: float | None, count: int = _NOISE_NODES) -> Rule:
    """Values of what is added to the target, its mean apart, and their probabilities."""
    if noise.variance == 0.0:
        return np.zeros(1), np.ones(1)
    x, w = gauss_hermite(count) if samples is None else typical_rule(samples)
    return np.sqrt(noise.variance) * x, w


@lru_cache(maxsize=128)
def _target_law(star: Nonlinearity | AlignedTarget, samples: float | None) -> ResidualLaw:
    """The law of the target by itself, with its directions: of one direction on a fine grid."""
    if isinstance(star, MeanSign):
        return _law_of_signs(star)
    if isinstance(star, Nonlinearity):
        t, w = target_rule(star) if samples is None else typical_rule(samples)
        y, along = star(t), (w * t)[None]
        powers = y ** np.arange(MOST_MOMENT + 1)[:, None]
        return ResidualLaw(y, w, along, (along * t)[None], powers @ w, along @ powers[:4].T)
    z, w = star.z, star.weight
    values = star.values
    if samples is not None:
        z, w = _typical_directions(star.directions, samples)
        values = star(z)
    first = [w * x for x in z.T]
    second = [[w * (x * y) for y in z.T] for x in z.T]
    moments = star.moments(MOST_MOMENT)
    return _on_nodes(
        values, w, first, second, _TARGET_NODES, moments=moments[0], overlaps=moments[1:, :4]
    )


def _typical_directions(count: int, samples: float) -> Rule:
    """Directions as so many samples show them: hardly one lies outside the ball."""
    end = largest_expected(samples)
    x, w = truncated_normal(end, 1.0, 1.0, _SPACING if count < 3 else 2.0 * _SPACING)
    z = np.stack(np.meshgrid(*[x] * count, indexing="ij"), axis=-1).reshape(-1, count)
    weight = np.ones(1)
    for _ in range(count):
        weight = np.multiply.outer(weight, w).ravel()
    kept = (z**2).sum(axis=1) <= end**2
    return z[kept], weight[kept] / weight[kept].sum()


def _noise_powers(noise: Noise, weight: FloatArray, added: FloatArray) -> FloatArray:
    """E[f (noise)^l] for l = 0 … 6."""
    return np.asarray((added + noise.mean) ** np.arange(MOST_MOMENT + 1)[:, None] @ weight)


def _binomial(target: FloatArray, noise: FloatArray) -> FloatArray:
    """Moments of a sum of independent parts from theirs."""
    return np.array(
        [
            sum(comb(j, k) * target[j - k] * noise[k] for k in range(j + 1))
            for j in range(target.size)
        ]
    )


def _on_nodes(
    r: FloatArray,
    w: FloatArray,
    first: list[FloatArray],
    second: list[list[FloatArray]],
    count: int,
    *,
    moments: FloatArray,
    overlaps: FloatArray,
) -> ResidualLaw:
    """A law of points r with weights for 1 and for the directions, on `count` nodes."""
    scale = 0.5 * np.sqrt(w @ r**2)
    rule = gauss_from_measure(np.arcsinh(r / scale), w, count)

    def padded(values: FloatArray) -> FloatArray:
        """Nodes that the law does not have get no weight."""
        return np.append(values, np.zeros(count - values.size))

    return ResidualLaw(
        nodes=padded(scale * np.sinh(rule.nodes)),
        weight=padded(rule.weights),
        first=np.stack([padded(rule.weights_for(f)) for f in first]),
        second=np.stack([[padded(rule.weights_for(f)) for f in row] for row in second]),
        moments=moments,
        overlaps=overlaps,
    )
